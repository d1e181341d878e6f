/* SPDX-License-Identifier: Apache-2.0 */
/* Known cgroups: which container they are, so that not each process of one is asked. Beside a
 * compiler, asking is a fifth of the agent's work.
 *
 * The kernel says in which cgroup a process was, by its id; /proc says its path, a moment later. By
 * then the process may have moved. So a path is believed only where the file system of cgroups says
 * that it has that id: no id is given twice, and a cgroup of version 2 keeps its path. With version
 * 1 a path may change, and a process has several; in a container others' paths cannot be looked at.
 * There nothing is learnt, and each process is asked.
 *
 * Source: cgroups(7); the id is the inode's number, kernfs_id_ino() in include/linux/kernfs.h. */
#pragma once

#include "proc/container.h"

#include <stdbool.h>
#include <stdint.h>

#define KNOWN_CGROUPS       256u
#define KNOWN_CGROUPS_TRIES 4u /* to learn one, until it is forgotten */

struct known_cgroup {
	uint64_t id; /* 0: none */
	uint32_t n_tries;
	bool known;
	char container[CONTAINER_ID_MAX];
};

struct known_cgroups {
	int root; /* of the hierarchy; -1: nothing is learnt */
	struct known_cgroup all[KNOWN_CGROUPS];
};

/* Opens the hierarchy of this machine, if the ids are those of version 2. */
void known_cgroups_init(struct known_cgroups *k);
void known_cgroups_fini(struct known_cgroups *k);

/* The container that a cgroup is, empty for none; NULL if that is not known. O(1). */
const char *known_cgroups_find(const struct known_cgroups *k, uint64_t id);

/* A process that was seen in a cgroup has this text in its /proc/PID/cgroup. One stat, unless it is
 * known already or was tried too often; one that another of 256 displaces is learnt anew. */
void known_cgroups_learn(struct known_cgroups *k, uint64_t id, struct str text);
