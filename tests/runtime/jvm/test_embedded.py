#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libandiron in a JVM's own process, java/Embedded.java: the JVM's handlers of signals stay and
work, the methods have their names, and what was opened is closed."""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(HERE, "../../scenario")]
import profiles  # noqa: E402
import runtimes  # noqa: E402
from tap import Skip, case, main, need_root, run, write  # noqa: E402

CONFIG = """discovery.process "all" {}
discovery.relabel "java" {
  targets = discovery.process.all.targets
  rule {
    source_labels = ["__meta_process_exe"]
    regex         = ".*/java"
    action        = "keep"
  }
}
pyroscope.ebpf "e" {
  forward_to       = [embed.profiles.mine.receiver, profile.file.out.receiver]
  targets          = discovery.relabel.java.output
  targets_only     = true
  sample_rate      = 499
  collect_interval = "1s"
}
profile.file "out" {
  paths = ["out.pb.gz"]
}
embed.profiles "mine" {}
"""


@case
def a_jvm_profiles_itself():
    """Three times in one process, and each time all is put back."""
    need_root()
    javas = [java for java in runtimes.javas() if java.major >= 11]
    if not javas:
        raise Skip("no JVM here")
    java = javas[-1]
    folder = runtimes.compiled_java(os.path.join(HERE, "java/Embedded.java"))
    library = os.environ["EMBEDDED_LIBRARY"]
    ran = run(
        *[*java.command, "-Xmx64m", "-Xcheck:jni", "-cp", folder, "Embedded"],
        *[library, write("e.alloy", CONFIG)],
    )
    print(f"# {java}:", *f"{ran.out}{ran.err}".split("\n"), sep="\n# ")
    ran.expect(0)
    rounds = re.findall(r"samples (\d+), the process is what it was", ran.out)
    assert len(rounds) == 3 and ran.out.endswith("ended\n"), ran.out
    assert all(int(n) > 50 for n in rounds), rounds
    # Of the JVM's threads: what it costs to begin is in the process too, and on a busy machine as
    # much as the work of so short a time.
    stacks = [
        ([f.function for f in frames], n)
        for frames, n, _ in profiles.read()
        if any(re.match(r"\[|.*thread_native_entry", f.function) for f in frames[:3])
    ]
    named = sum(n for frames, n in stacks if "Embedded.burn" in frames)
    assert named > 0.5 * sum(n for _, n in stacks), stacks


main()
