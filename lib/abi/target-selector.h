/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes a target selects, by the rule of Alloy's pyroscope.ebpf: the process of
 * `__process_pid__`, else all processes of a container. Labels may come in any order. */
#pragma once

#include "abi/target-list.h"

/* At most one of the two is set; with neither, the target selects nothing. */
struct target_selector {
	uint32_t pid;         /* 0: none */
	struct str container; /* the id without "RUNTIME://"; borrowed from the labels */
};

/* The value of a label; STR_NULL where there is none. O(n). */
struct str target_selector_label(const struct target_label *labels, size_t n, const char *name);

/* Whether the two below read a label of this name: who keeps targets for them keeps it. */
bool target_selector_reads(struct str label);

struct target_selector target_selector_of(const struct target_label *labels, size_t n);

/* Why a target without processes has none, for people and without a full stop, as far as its labels
 * say so; else NULL. `node` is the name of this node, NULL or "" if it is not known. O(n). */
const char *target_selector_absent(const struct target_label *labels, size_t n, const char *node);
