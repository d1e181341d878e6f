/* SPDX-License-Identifier: Apache-2.0 */
/* Targets: label sets that say what to profile and how to name it. A producer owns a list of rows;
 * what travels is a snapshot or the difference to the generation before, so that ten thousand pods
 * are not resent because one changed.
 *
 * A row's identity is (producer, row); `order` places it in the list (rows are read by ascending
 * order, ties by row) and duplicates are legal. A consumer is given a producer of its own for each
 * place where its option refers to targets, and their ids ascend in the order of these places. The
 * fingerprint is a hint for comparing label sets, never an identity.
 *
 * An update is self-contained: its strings are deduplicated within it and labels index them. It is
 * immutable; a consumer that keeps it past the call retains it. */
#ifndef ANDIRON_TARGET_H
#define ANDIRON_TARGET_H

#include <andiron/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Indices into strings[] of the update. Frozen. */
struct andiron_label {
	uint32_t name;
	uint32_t value;
};

/* labels[label_start .. +n_labels) of the update, sorted by name, names unique, values not empty.
 * Frozen. */
struct andiron_target {
	uint64_t row;
	uint64_t order;
	uint64_t fingerprint;
	uint32_t label_start;
	uint32_t n_labels;
};

/* One update. `generation` rises by one per update of a producer; a consumer that sees a gap waits
 * for the next SNAPSHOT. rows[0..n_added) are new, rows[n_added..n_rows) replace the row of the
 * same id, or are new where the consumer has none of it (`resend` of component.h); a row may be
 * resent unchanged. removed[] lists row ids that are gone, after the rows. In a SNAPSHOT all rows
 * are `added` and replace whatever the consumer had of this producer.
 *
 * retain and release: [any], O(1); the memory lives until the last release. */
#define ANDIRON_TARGETS_SNAPSHOT 1u

struct andiron_targets {
	uint32_t size;
	uint32_t flags;
	uint64_t producer;
	uint64_t generation;
	const struct andiron_str *strings;
	uint64_t n_strings;
	const struct andiron_label *labels;
	uint64_t n_labels;
	const struct andiron_target *rows;
	uint64_t n_rows;
	uint64_t n_added;
	const uint64_t *removed;
	uint64_t n_removed;
	void *owner;
	void (*retain)(void *owner);
	void (*release)(void *owner);
};

#ifdef __cplusplus
}
#endif

#endif
