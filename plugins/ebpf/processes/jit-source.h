/* SPDX-License-Identifier: Apache-2.0 */
/* JIT source: the file that names a process's JIT-compiled code. It is a jitdump, which the runtime
 * maps executable to announce it, else a perf map in /tmp of the process's root. Both carry the pid
 * of the process's own PID namespace. Both are untrusted: the file must belong to the process's
 * user, and no link may leave its root. A perf map older than the process belongs to a former one
 * with its pid.
 *
 * Sources: Linux, tools/perf/Documentation/jitdump-specification.txt and jit-interface.txt. */
#pragma once

#include "ebpf/processes/maps.h"

/* A process, while its directory in /proc is open. */
struct jit_source_process {
	int dir; /* /proc/PID */
	uint32_t pid;
	uint64_t start_ns; /* since boot */
	bool own_root;     /* it sees the root that we see */
	uint32_t *own_pid; /* in its own PID namespace; 0: not read yet */
};

/* A descriptor of the file, to close, -1 without one; `reopen`, of n bytes, is a path of ours that
 * leads there. `maps` is the text of its mappings. It may still be empty. Some ten system calls. */
int jit_source_open(const struct jit_source_process *p, struct str maps, char *reopen, size_t n);

/* Whether there is a perf map by now. Some three system calls. */
bool jit_source_has_map(const struct jit_source_process *p);

/* The regular file that is mapped there, by map_files, or by path inside the process's root for who
 * may not follow that; -1 without one. */
int jit_source_open_mapped(const struct jit_source_process *p, const struct maps_line *line);
/* A path of ours, of n bytes at most, that leads to a path of the process's. */
void jit_source_put_path(const struct jit_source_process *p, struct str path, char *ret, size_t n);
