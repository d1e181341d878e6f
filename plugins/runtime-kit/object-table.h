/* SPDX-License-Identifier: Apache-2.0 */
/* What a runtime has found in files, by object id (andiron/object.h). Each file is read once.
 *
 * Most files have nothing of a runtime. They have an entry, too, so that they are not read again.
 * Entries are the plugin's own structures, on the heap, that begin with a struct object_entry; the
 * table links them and frees none. Those that no process uses leave when there are too many, the
 * one that was looked up longest ago first.
 *
 * A file that processes use may have a slot: an index into an array map of the BPF program, where
 * the plugin writes what the program is to know of the file.
 *
 * Not locked: one thread at a time. */
#pragma once

#include <andiron/host.h>

#include <stdbool.h>
#include <stdint.h>

#define OBJECT_NO_SLOT UINT32_MAX

struct object_entry {
	uint64_t object;
	struct object_entry *next;          /* of its bucket */
	struct object_entry *older, *newer; /* by use */
	uint32_t n_users;
	uint32_t slot; /* OBJECT_NO_SLOT: none at the moment */
};

struct object_table {
	const struct andiron_extension *objects; /* andiron.objects/1 */
	uint32_t n, max, n_buckets, n_slots;
	struct object_entry **buckets;
	struct object_entry **slots; /* who has which */
	struct object_entry *oldest, *newest;
};

/* At most max entries that no process uses, and n_slots slots. The extension outlives the table.
 * 0 or -ENOMEM. */
int object_table_init(struct object_table *t, const struct andiron_extension *objects, uint32_t max,
		      uint32_t n_slots);
/* The entries have been taken out. */
void object_table_fini(struct object_table *t);

/* The entry of an object; NULL: none has been added. O(1). */
struct object_entry *object_table_find(struct object_table *t, uint64_t object);

/* Opens the file of an object that has no entry, to be read: 0 and a descriptor, the caller's to
 * close, or a negative errno. After a failure no entry is to be added: the file is tried again. */
int object_table_open(const struct object_table *t, uint64_t object, int *ret_fd);

/* Adds what was found in an object that has no entry. O(1). */
void object_table_add(struct object_table *t, struct object_entry *e, uint64_t object);

/* A process uses the object, and it has a slot. 1: a new one, whose value in the map is to be
 * written; 0: it had it; -ENOSPC: none is free, and nothing has changed. O(slots) for a new one. */
int object_table_retain(struct object_table *t, struct object_entry *e);
/* A process uses it no longer. The slot stays its own until another needs one. */
void object_table_release(struct object_entry *e);

/* An entry that nobody uses, out of the table and the caller's to free, as long as there are more
 * than there may be; then NULL. After object_table_add(). */
struct object_entry *object_table_excess(struct object_table *t);

/* Any entry, out of the table and the caller's to free; NULL: it is empty. */
struct object_entry *object_table_take(struct object_table *t);
