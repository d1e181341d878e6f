/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of this machine that belong to a target (abi/target-selector.h), and why there are
 * none. */
#pragma once

#include "abi/target-list.h"
#include "base/arena.h"
#include "base/vec.h"
#include "proc/container.h"

struct machine_process {
	uint32_t pid;
	char comm[16];
	char container[CONTAINER_ID_MAX]; /* "": in none that is known */
};

/* Those that run now, by pid. */
struct machine_processes {
	VEC(struct machine_process) list;
	size_t n_in_containers; /* of these */
	bool partial;           /* this PID namespace is not the machine's */
};

struct matched {
	const struct machine_process **processes;
	size_t n;
	const char *why; /* there is none; NULL if there is */
};

/* 0, or a negative errno when /proc cannot be read. */
int machine_processes_read(struct machine_processes *ret);
void machine_processes_fini(struct machine_processes *p);

/* All is copied into the arena. Reads NODE_NAME, as discovery.kubernetes does. 0 or -ENOMEM.
 * O(processes). */
int matched_find(const struct machine_processes *processes, const struct target_label *labels,
		 size_t n_labels, struct arena *arena, struct matched *ret);
