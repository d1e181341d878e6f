/* SPDX-License-Identifier: Apache-2.0 */
/* What components that profile read of a target's labels, by the rules of Alloy: which processes it
 * selects (the process of `__process_pid__`, else all processes of a container), and the name of
 * its service. Labels may come in any order. */
#pragma once

#include "abi/target-list.h"
#include "base/arena.h"

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

/* The name of its service: the first of `service_name`, pod annotation pyroscope.io/service_name,
 * PREFIX NAMESPACE/CONTAINER, the docker container, the swarm service, "unspecified". Borrowed from
 * the labels, or made in the arena; STR_NULL when memory is short. O(n). */
struct str target_service_name(struct arena *arena, const char *prefix,
			       const struct target_label *labels, size_t n);
/* Whether that reads a label of this name. */
bool target_service_reads(struct str label);
