/* SPDX-License-Identifier: Apache-2.0 */
/* The known objects, one block of memory each (object.h), and which of them changed since they were
 * published.
 *
 * An object keeps its slot until its removal is published, so the publisher can name it by the
 * slot's number. A relist marks and sweeps: objects that the new list lacks are removed. */
#pragma once

#include "base/index.h"
#include "base/vec.h"

#include <stdint.h>
#include "k8s-discovery/objects/object.h"

/* One block: namespace, name and what is kept follow one another. */
struct stored {
	uint32_t n; /* bytes kept */
	uint32_t annotation_bytes;
	uint16_t n_namespace, n_name;
	char bytes[];
};

static inline struct str stored_namespace(const struct stored *s)
{
	return (struct str){s->bytes, s->n_namespace};
}

static inline struct str stored_name(const struct stored *s)
{
	return (struct str){s->bytes + s->n_namespace, s->n_name};
}

static inline struct str stored_kept(const struct stored *s)
{
	return (struct str){s->bytes + s->n_namespace + s->n_name, s->n};
}

struct slot {
	struct stored *object; /* NULL: the slot is free */
	uint32_t space;
	uint16_t rows; /* the publisher's: how many of its targets are published */
	uint8_t kind;
	bool gone : 1;   /* removed, which is not published yet */
	bool dirty : 1;  /* changed, which is not published yet */
	bool listed : 1; /* by the list that is being read */
};

struct store {
	VEC(struct slot) slots;
	VEC(uint32_t) unused;
	VEC(uint32_t) dirty; /* slots, in the order of change, each once */
	struct index index;
	size_t n[N_KINDS];                /* objects that exist */
	uint64_t bytes, annotation_bytes; /* of these, as kept */
};

void store_free(struct store *store);

/* An object as it is now; nothing is dirty that is as it was. `space` tells watches apart: a sweep
 * concerns its own only. 0, -ENOMEM (it is as before), or -EINVAL for a name of 64 KiB. O(bytes
 * kept). */
int store_set(struct store *store, uint32_t space, enum kind kind, const struct object *object);
/* 0 or -ENOMEM (it is as before). */
int store_remove(struct store *store, enum kind kind, struct str namespace_, struct str name);

/* The object, NULL if there is none. O(1). */
const struct stored *store_find(const struct store *store, enum kind kind, struct str namespace_,
				struct str name);
/* Whether such an object was added, changed or removed since the last publication. */
bool store_changed(const struct store *store, enum kind kind, struct str namespace_,
		   struct str name);

/* Between begin and sweep every object of the list is set; sweep removes the others of that space.
 * 0 or -ENOMEM (some are left). */
void store_begin(struct store *store, uint32_t space);
int store_sweep(struct store *store, uint32_t space);
/* Removes the objects of all spaces below this one. */
int store_sweep_below(struct store *store, uint32_t space);

/* Makes a slot dirty; 0 or -ENOMEM. */
int store_touch(struct store *store, uint32_t slot);
/* The slot's change is published: it is clean, and free if its object was removed. */
void store_settle(struct store *store, uint32_t slot);
