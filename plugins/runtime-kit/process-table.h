/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a session: those that live and are claimed, and those that have gone and whose
 * names may still be asked for.
 *
 * A process is its pid, its start and its exec generation. A pid has at most one living entry.
 * Entries are the plugin's own structures, on the heap, that begin with a struct process_entry;
 * the table links them and frees none.
 *
 * Not locked: one thread at a time. */
#pragma once

#include <andiron/runtime.h>

#include <stdbool.h>
#include <stdint.h>

struct process_entry {
	struct andiron_runtime_process key;
	uint32_t id; /* from 1; no other process of the session had it */
	bool gone;
	struct process_entry *next;          /* of its bucket */
	struct process_entry *older, *newer; /* of those that have gone, by when */
};

struct process_table {
	uint32_t n_living, n_gone, max_living, max_gone;
	uint32_t last_id, n_buckets;
	struct process_entry **buckets;
	struct process_entry *oldest, *newest;
};

/* Room for max_living entries that live, and as many others as have gone last. 0 or -ENOMEM. */
int process_table_init(struct process_table *t, uint32_t max_living, uint32_t max_gone);
/* The entries have been taken out. */
void process_table_fini(struct process_table *t);

/* What a claim of a process finds. */
struct process_claim {
	struct process_entry *entry; /* the process's, alive; NULL: it has none */
	bool revived;  /* it was gone: the plugin has told its program so, and puts it back */
	bool replaced; /* the pid's entry of another process or program has gone by this: what the
	                  program has by the pid is no longer true */
};

/* A process is claimed. O(1). */
struct process_claim process_table_claim(struct process_table *t,
					 const struct andiron_runtime_process *key);

/* Adds an entry for a process whose claim found none. 0, or -ENOSPC if too many live. O(1). */
int process_table_add(struct process_table *t, struct process_entry *e,
		      const struct andiron_runtime_process *key);

/* The process has ended. The entry that it had, which was its pid's living one; NULL if it had
 * none, or the pid is another process's by now: the program then keeps what it has by the pid.
 * O(1). */
struct process_entry *process_table_gone(struct process_table *t,
					 const struct andiron_runtime_process *key);

/* The living entry of a pid; NULL: none. O(1). */
struct process_entry *process_table_living(const struct process_table *t, uint32_t pid);

/* The entry of a process that lives or has gone; NULL: none. That of another exec generation if
 * there is none of its own: names of a stack that was taken before an exec. O(1). */
struct process_entry *process_table_find(const struct process_table *t,
					 const struct andiron_runtime_process *key);

/* An entry that has gone, the longest ago, out of the table and the caller's to free, as long as
 * there are more than there may be; then NULL. After each call that may let one go. */
struct process_entry *process_table_excess(struct process_table *t);

/* Any entry, out of the table and the caller's to free; NULL: it is empty. */
struct process_entry *process_table_take(struct process_table *t);
