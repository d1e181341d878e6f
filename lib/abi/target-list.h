/* SPDX-License-Identifier: Apache-2.0 */
/* The two ends of target updates (andiron/target.h).
 *
 * A `target_list` is a producer's: rows are set and removed by id, and target_list_flush makes the
 * update since the last flush. Setting a row to the labels that it has is no change.
 *
 * A `target_table` is a consumer's: it applies updates of any number of producers and says, row by
 * row, what changed. */
#pragma once

#include "base/str.h"

#include <andiron/target.h>

struct target_label {
	struct str name;
	struct str value;
};

/* Labels by name, for qsort. */
static inline int target_label_compare(const void *a, const void *b)
{
	return str_cmp(((const struct target_label *)a)->name,
		       ((const struct target_label *)b)->name);
}

/* A row as the table and the list hold it: labels sorted by name, names unique, values not empty.
 * Borrowed until the row changes. */
struct target_row {
	uint64_t producer;
	uint64_t row;
	uint64_t order;
	uint64_t fingerprint;
	const struct target_label *labels;
	uint32_t n_labels;
	void *user; /* the consumer's own; NULL in a new row */
};

/* The value of a label, STR_NULL where it has none. O(log n). */
struct str target_label_value(const struct target_row *row, const char *name);

struct target_list;

struct target_list *target_list_new(uint64_t producer);
void target_list_free(struct target_list *list);

/* Sets a row. Labels in any order; empty values are left out, of equal names the last wins; all is
 * copied. 0 or -ENOMEM (unchanged). */
int target_list_set(struct target_list *list, uint64_t row, uint64_t order,
		    const struct target_label *labels, size_t n);
/* Removes a row; an unknown one is no error. */
void target_list_remove(struct target_list *list, uint64_t row);
/* Removes all rows. */
void target_list_clear(struct target_list *list);

/* The changes since the last flush as an update with one reference, the first
 * one a SNAPSHOT. *ret is NULL if nothing changed (never for the first). 0 or
 * -ENOMEM, and then the changes stay pending. */
int target_list_flush(struct target_list *list, const struct andiron_targets **ret);

/* All rows as a SNAPSHOT of the generation flushed last. */
int target_list_snapshot(struct target_list *list, const struct andiron_targets **ret);

#define TARGET_ADDED   1
#define TARGET_CHANGED 2
#define TARGET_REMOVED 3

/* `row` is the row as it is now, for TARGET_REMOVED as it was. */
typedef void (*target_change_fn)(void *context, int change, struct target_row *row);

/* To be called from such a function: the labels that a changed or removed row had until now become
 * the caller's, who frees them by free(). Their strings lie in the same block. */
struct target_label *target_row_take_former(struct target_row *row);

/* The order in which rows are visited: producers by id, then by order, then by row. */
int target_row_compare(const struct target_row *a, const struct target_row *b);

struct target_table;

struct target_table *target_table_new(void);

/* One that keeps only labels whose name `keeps` says yes to: what a consumer does not look at need
 * not be in memory. A row in which only others change has not changed. */
typedef bool (*target_keeps_fn)(struct str name);
struct target_table *target_table_new_keeping(target_keeps_fn keeps);

void target_table_free(struct target_table *table);

/* Applies an update and calls `fn` for every row that came, changed (only if
 * labels or order differ) or went. 0, -EINVAL for an update that breaks
 * target.h (nothing applied), -ENOMEM, or -EAGAIN when a generation is
 * missing: the table keeps what it has until the next SNAPSHOT. */
int target_table_apply(struct target_table *table, const struct andiron_targets *update,
		       target_change_fn fn, void *context);

/* Visits all rows, as target_row_compare has them. O(n log n) */
void target_table_each(struct target_table *table, target_change_fn fn, void *context);
size_t target_table_count(const struct target_table *table);
