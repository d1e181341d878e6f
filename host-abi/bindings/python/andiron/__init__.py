# SPDX-License-Identifier: Apache-2.0
"""Continuous profiling from Python, by libandiron: see README.md.

import andiron

with andiron.Profile(pid=1234) as p:
    ...
p.write("x.pb.gz")
"""

from .agent import Agent, FinishedProfile
from .library import DeadlineError, Error, version
from .profile import Profile

__all__ = ["Agent", "DeadlineError", "Error", "FinishedProfile", "Profile", "version"]
