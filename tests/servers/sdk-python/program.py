# SPDX-License-Identifier: Apache-2.0
"""program.py URL: profiles itself with Pyroscope's Python client, until it has pushed."""

import sys
import time

import pyroscope

# The client pushes every ten seconds of the clock.
SECONDS = 11

pyroscope.configure(
    application_name="sdk.python",
    server_address=sys.argv[1],
    sample_rate=100,
    tags={"region": "eu"},
)
end = time.monotonic() + SECONDS
while time.monotonic() < end:
    sum(i * i for i in range(1000))
pyroscope.shutdown()
