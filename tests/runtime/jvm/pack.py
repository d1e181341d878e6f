#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pack.py OUT.tar.xz FOLDER...: of each folder eight recordings that differ in their code, and two
of walks that were given up.

To record again: run java/Load.java, M.java and V.java by each JVM, with -Xint, C1 and C2, and
`probe PID 700 FOLDER` for each (FORGET=1: registers are not known). The JVMs are those that the
tests fetch, all of OpenJDK (GPL-2.0 with Classpath Exception). A recording holds the registers and
some hundred words of a thread.

Behind them stand walks from within stubs, and where code has pushed words: of java/Stubs.java, of a
program that JNI calls, of one in Clojure, and of ones that search texts (also near a page's end),
compute powers (JDK 8), check types (C1), divide doubles (C2), call an upcall's address, call small
methods (C1), and call from compiled methods what is interpreted, chosen by hand."""

import io
import os
import struct
import sys
import tarfile

HEAD = struct.Struct("<4IQ32Q4I")  # struct recording_head


def main():
    out, folders = sys.argv[1], sys.argv[2:]
    with tarfile.open(out, "w:xz", preset=9) as archive:
        for folder in folders:
            seen, left = set(), {True: 8, False: 2}
            for name in sorted(os.listdir(folder), key=lambda x: int(x.split(".")[0])):
                with open(os.path.join(folder, name), "rb") as f:
                    data = f.read()
                head = HEAD.unpack_from(data)
                n_text, pc, whole = head[3], head[4], head[-2] == 0
                way = (n_text, pc & 0xFFF)
                if way in seen or left[whole] == 0:
                    continue
                seen.add(way)
                left[whole] -= 1
                info = tarfile.TarInfo(os.path.basename(folder).replace("-", "") + "-" + name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
            print(folder, left)


main()
