/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a target stands for: by the rule of Alloy's pyroscope.ebpf the process of
 * `__process_pid__`, else all processes of a container; and what its labels tell
 * of why there may be none. Labels in any order.
 */
#ifndef ABI_SUBJECT_H
#define ABI_SUBJECT_H

#include "abi/target-list.h"

/* One of the two is set, or neither: then it stands for nothing. */
struct subject {
	uint32_t pid;         /* 0: none */
	struct str container; /* the id without "RUNTIME://"; borrowed from the labels */
};

/* The value of a label; STR_NULL where there is none. O(n). */
struct str subject_label(const struct target_label *labels, size_t n, const char *name);

/* Whether the two below look at a label of this name: who keeps targets for them keeps it. */
bool subject_reads(struct str label);

struct subject subject_of(const struct target_label *labels, size_t n);

/*
 * Why a target for which nobody was found stands for nobody, for people, without
 * a full stop: as far as the labels say it, else NULL (it may be that nobody
 * looked well enough). `node` is the name of this node, NULL or "" if it is not known. O(n).
 */
const char *subject_absent(const struct target_label *labels, size_t n, const char *node);

#endif
