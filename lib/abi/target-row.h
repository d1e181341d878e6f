/* SPDX-License-Identifier: Apache-2.0 */
/* What target-list.c and target-table.c share: label sets in one block of memory, and the making of
 * updates. For them, and for a producer that keeps its rows in a form of its own; and texts. */
#pragma once

#include "abi/target-list.h"
#include "base/arena.h"
#include "base/intern.h"
#include "base/vec.h"

/* A sorted, deduplicated copy of labels in one block, to be freed; NULL when memory is short. Empty
 * values are left out, of equal names the last wins. */
struct target_label *target_labels_copy(const struct target_label *labels, size_t n,
					uint32_t *ret_n);
bool target_labels_equal(const struct target_label *a, uint32_t n_a, const struct target_label *b,
			 uint32_t n_b);
uint64_t target_labels_hash(const struct target_label *labels, uint32_t n);

/* Texts that discoveries make for labels, as Prometheus makes them; STR_NULL when memory is short.
 * The first is prefix + name, every character of `name` (not byte) that a label name may not have
 * replaced by one underscore; the second "host:port", with brackets where the host has colons. */
struct str target_text_name(struct arena *arena, const char *prefix, struct str name);
struct str target_text_address(struct arena *arena, struct str host, uint64_t port);

/* An update in the making: add rows (added ones first), then finish. */
struct update_builder {
	struct intern strings;
	VEC(struct andiron_label) labels;
	VEC(struct andiron_target) rows;
	VEC(uint64_t) removed;
	uint64_t n_added;
	bool failed;
};

void update_add(struct update_builder *u, const struct target_row *row);
void update_remove(struct update_builder *u, uint64_t row);
/* Frees a builder that is not finished. */
void update_discard(struct update_builder *u);
/* Uses the builder up, also on failure: 0 or -ENOMEM. */
int update_finish(struct update_builder *u, uint64_t producer, uint64_t generation, uint32_t flags,
		  const struct andiron_targets **ret);
