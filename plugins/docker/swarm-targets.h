/* SPDX-License-Identifier: Apache-2.0 */
/* What a manager lists of its swarm, as targets. Rows, names and values are those of Prometheus's
 * dockerswarm_sd_configs, with two differences: a single address that is absent costs its own
 * target only, and an option makes targets of tasks that have no address.
 *
 * Source: the Docker Engine API, GET /services, /tasks, /nodes, /networks; Prometheus,
 * discovery/moby. */
#pragma once

#include "base/error.h"
#include "discovery/target-rows.h"

#define SWARM_META "__meta_dockerswarm_"

enum swarm_list {
	SWARM_SERVICES,
	SWARM_TASKS,
	SWARM_NODES,
	SWARM_NETWORKS,
	SWARM_LISTS,
};

/* Which lists a role wants; the first is that of its objects, and the one that is filtered. */
struct swarm_role {
	const char *name; /* "services", "tasks", "nodes" */
	enum swarm_list lists[SWARM_LISTS];
	size_t n_lists;
	const char *events; /* JSON: those that can change them */
	bool settling;      /* changes go on after the last event that tells of them */
};

extern const char *const swarm_role_names[]; /* NULL at the end */
/* NULL for any other name. */
const struct swarm_role *swarm_role(struct str name);
/* "services"; also what follows "/" in the API's path. */
const char *swarm_list_name(enum swarm_list list);

struct swarm_options {
	const struct swarm_role *role;
	uint16_t port;        /* of nodes, and of what publishes none */
	bool without_network; /* a task without an address is a target, too */
};

/* Where a row stands among the targets: the same object's row at the same position keeps its key.
 */
struct swarm_key {
	uint64_t row, order;
};

struct swarm_targets {
	struct target_rows rows;
	VEC(struct swarm_key) keys; /* one for each row */
	size_t n_objects;           /* that are listed */
	void *lists[SWARM_LISTS];   /* JSON that the labels borrow from */
};

/* Reads the answers for the role's lists, in its order: 0, -ENOMEM, or -EINVAL and -E2BIG with a
 * text. */
int swarm_targets_read(const struct swarm_options *o, const struct str *answers,
		       struct swarm_targets *ret, struct error *err);
void swarm_targets_free(struct swarm_targets *t);
