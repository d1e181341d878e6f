# SPDX-License-Identifier: Apache-2.0
"""What the plan needs, built for another architecture by packaging/cross."""

import os

import crossbuild
import plan


def targets(arch):
    """What the plan packs, by the names that ninja knows."""
    names = [f"plugins/{name}/andiron-{name}.so" for name in plan.PLUGINS]
    return sorted(set(names + [program for step in plan.steps(arch) for program in step.programs]))


def build(arch, beside, say):
    """(build folder, sysroot), the plan's programs built."""
    folder = os.path.join(beside, "kernels", f"build-{arch}")
    libs, log = crossbuild.configure(arch, folder, say)
    say(f"building for {arch} ...")
    crossbuild.run(["ninja", "-C", folder, *targets(arch)], log)
    return folder, libs
