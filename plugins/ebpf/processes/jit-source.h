/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tells of the code that a process compiles while it runs: a jitdump, which the runtime has
 * mapped executable to say where it is (its only use of that mapping), else a perf map, which lies
 * in /tmp of the process's own root. Both bear the pid that the process has in its own PID
 * namespace. Only its own user's word counts, no link leads out of its root, and a map that was last written before the
 * process began is that of another one, which had its pid: nobody removes them.
 * Sources: Linux, tools/perf/Documentation/jitdump-specification.txt and jit-interface.txt.
 */
#ifndef EBPF_PROCESSES_JIT_SOURCE_H
#define EBPF_PROCESSES_JIT_SOURCE_H

#include "ebpf/processes/maps.h"

/* A process, while its directory in /proc is open. */
struct jit_source_process {
	int dir; /* /proc/PID */
	uint32_t pid;
	uint64_t start_ns; /* since boot */
	bool own_root; /* it sees the root that we see */
};

/*
 * A descriptor of the file, to close, -1 without one; `reopen`, of n bytes, is a path in our view
 * that leads there. `maps` is the text of its mappings. It may still be empty. Some ten system
 * calls.
 */
int jit_source_open(const struct jit_source_process *p, struct str maps, char *reopen, size_t n);

/* Whether there is a perf map by now. Some five system calls. */
bool jit_source_has_map(const struct jit_source_process *p);

/* The file that is mapped there, by path inside the process's root, for who may not follow
 * map_files: -1 where that is not the mapped one. */
int jit_source_open_in_root(const struct jit_source_process *p, const struct maps_line *line);

#endif
