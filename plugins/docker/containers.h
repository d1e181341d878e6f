/* SPDX-License-Identifier: Apache-2.0 */
/* The containers that are known, and the targets that they are: one for each network and TCP port,
 * one for each network where there is no port. A container without a network has those of the one
 * whose network it shares.
 *
 * A target's row is its container's slot and its position among the container's targets, so a
 * container changes only its own rows. */
#pragma once

#include "base/index.h"
#include "docker/container.h"

struct target_options {
	uint16_t port; /* of a container that has none */
	struct str host_networking_host;
	bool first_network;   /* of several networks only the first by name */
	bool without_network; /* a container without a network is a target, without an address */
};

struct container_slot {
	struct container *container; /* NULL: free */
	uint32_t n_rows;             /* that are in the list */
	bool dirty, listed;
};

struct containers {
	struct target_options options; /* its strings are borrowed */
	struct target_list *list;
	VEC(struct container_slot) slots;
	VEC(uint32_t) unused;
	struct index by_id;
	struct network_list networks; /* by id */
	size_t n, n_targets;
	bool changed; /* some slot is dirty */
};

/* 0 or -ENOMEM. */
int containers_init(struct containers *c, uint64_t producer, const struct target_options *options);
void containers_fini(struct containers *c);

bool containers_has(const struct containers *c, struct str id);

/* Adds or replaces one; `fresh` is theirs from here on, also on failure. 0 or -ENOMEM. */
int containers_set(struct containers *c, struct container *fresh);
/* Forgets one; an unknown one is no error. */
void containers_remove(struct containers *c, struct str id);
/* These are all there are. Takes what is in `list`, also on failure, when some are not replaced. 0
 * or -ENOMEM. */
int containers_replace(struct containers *c, struct container_list *list);
/* Takes the networks in `list`. */
void containers_use_networks(struct containers *c, struct network_list *list);
/* Whether a container is in a network that is not known. O(containers + log networks) */
bool containers_lack_network(const struct containers *c);

/* The targets' changes since the last flush, as target_list_flush gives them. 0 or -ENOMEM, and
 * then nothing is lost. */
int containers_flush(struct containers *c, const struct andiron_targets **ret);
