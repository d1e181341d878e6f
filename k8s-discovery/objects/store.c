/* SPDX-License-Identifier: Apache-2.0 */
/* Known objects. Contract in store.h. */
#include "k8s-discovery/objects/store.h"

#include "base/check.h"
#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>

void store_free(struct store *store)
{
	vec_each (&store->slots, s)
		free(s->object);
	vec_free(&store->slots);
	vec_free(&store->unused);
	vec_free(&store->dirty);
	index_free(&store->index);
}

struct probe {
	const struct store *store;
	struct str namespace_, name;
	enum kind kind;
};

static bool same(const void *context, uint32_t position)
{
	const struct probe *p = context;
	const struct slot *s = &p->store->slots.p[position];

	return s->kind == p->kind && str_eq(stored_name(s->object), p->name) &&
	       str_eq(stored_namespace(s->object), p->namespace_);
}

static uint64_t hash_of(enum kind kind, struct str namespace_, struct str name)
{
	return hash_mix(hash_mix(kind, hash_str(namespace_)), hash_str(name));
}

static uint32_t find(const struct store *store, enum kind kind, struct str namespace_,
		     struct str name)
{
	struct probe probe = {store, namespace_, name, kind};

	return index_find(&store->index, hash_of(kind, namespace_, name), same, &probe);
}

const struct stored *store_find(const struct store *store, enum kind kind, struct str namespace_,
				struct str name)
{
	uint32_t at = find(store, kind, namespace_, name);

	return at == INDEX_NONE || store->slots.p[at].gone ? NULL : store->slots.p[at].object;
}

bool store_changed(const struct store *store, enum kind kind, struct str namespace_,
		   struct str name)
{
	uint32_t at = find(store, kind, namespace_, name);

	return at != INDEX_NONE && store->slots.p[at].dirty;
}

int store_touch(struct store *store, uint32_t slot)
{
	struct slot *s = &store->slots.p[slot];

	if (s->dirty)
		return 0;
	if (!vec_push(&store->dirty, slot))
		return -ENOMEM;
	s->dirty = true;
	return 0;
}

/* Adds (sign 1) or takes away (-1) what an object counts for. */
static void account(struct store *store, const struct slot *s, int sign)
{
	store->n[s->kind] += (size_t)sign;
	store->bytes += (uint64_t)(sign * (int64_t)s->object->n);
	store->annotation_bytes += (uint64_t)(sign * (int64_t)s->object->annotation_bytes);
}

static struct stored *stored_new(const struct object *o)
{
	struct stored *s;
	char *at;

	s = malloc(sizeof(*s) + o->namespace_.n + o->name.n + o->kept.n);
	if (!s)
		return NULL;
	*s = (struct stored){.n = (uint32_t)o->kept.n,
			     .annotation_bytes = o->annotation_bytes,
			     .n_namespace = (uint16_t)o->namespace_.n,
			     .n_name = (uint16_t)o->name.n};
	at = s->bytes;
	if (o->namespace_.n)
		memcpy(at, o->namespace_.p, o->namespace_.n);
	memcpy(at + o->namespace_.n, o->name.p, o->name.n);
	if (o->kept.n)
		memcpy(at + o->namespace_.n + o->name.n, o->kept.p, o->kept.n);
	return s;
}

/* A slot for an object that has none; INDEX_NONE when memory is short. */
static uint32_t new_slot(struct store *store, uint64_t hash)
{
	bool fresh = store->unused.n == 0;
	uint32_t at;

	if (fresh && (store->slots.n >= INDEX_NONE || !vec_reserve(&store->slots, 1)))
		return INDEX_NONE;
	at = fresh ? (uint32_t)store->slots.n : store->unused.p[store->unused.n - 1];
	/* Giving the slot back later must not fail. */
	if (fresh && !vec_grow((void **)&store->unused.p, &store->unused.capacity,
			       store->slots.n + 1, sizeof(*store->unused.p)))
		return INDEX_NONE;
	if (index_add(&store->index, hash, at) < 0)
		return INDEX_NONE;
	if (fresh)
		store->slots.n++;
	else
		store->unused.n--;
	store->slots.p[at] = (struct slot){0};
	return at;
}

int store_set(struct store *store, uint32_t space, enum kind kind, const struct object *o)
{
	uint32_t at = find(store, kind, o->namespace_, o->name);
	struct slot *s = at == INDEX_NONE ? NULL : &store->slots.p[at];
	struct stored *stored;

	if (s && !s->gone && str_eq(stored_kept(s->object), buf_str(&o->kept))) {
		s->space = space;
		s->listed = true;
		return 0;
	}
	if (o->name.n > UINT16_MAX || o->namespace_.n > UINT16_MAX || o->kept.n > UINT32_MAX)
		return -EINVAL;
	/* Room for the mark first: what is set must be seen. */
	stored = vec_reserve(&store->dirty, 1) ? stored_new(o) : NULL;
	if (!stored)
		return -ENOMEM;
	if (!s) {
		at = new_slot(store, hash_of(kind, o->namespace_, o->name));
		if (at == INDEX_NONE) {
			free(stored);
			return -ENOMEM;
		}
		s = &store->slots.p[at];
		s->kind = (uint8_t)kind;
	} else {
		if (!s->gone)
			account(store, s, -1);
		free(s->object);
	}
	s->object = stored;
	s->space = space;
	s->gone = false;
	s->listed = true;
	account(store, s, 1);
	return store_touch(store, at);
}

static int remove_at(struct store *store, uint32_t at)
{
	int r = store_touch(store, at);

	if (r == 0) {
		account(store, &store->slots.p[at], -1);
		store->slots.p[at].gone = true;
	}
	return r;
}

int store_remove(struct store *store, enum kind kind, struct str namespace_, struct str name)
{
	uint32_t at = find(store, kind, namespace_, name);

	return at == INDEX_NONE || store->slots.p[at].gone ? 0 : remove_at(store, at);
}

void store_begin(struct store *store, uint32_t space)
{
	vec_each (&store->slots, s)
		if (s->space == space)
			s->listed = false;
}

static bool exists(const struct slot *s)
{
	return s->object && !s->gone;
}

int store_sweep(struct store *store, uint32_t space)
{
	int r = 0;

	for (uint32_t i = 0; i < store->slots.n && r == 0; i++) {
		const struct slot *s = &store->slots.p[i];

		if (exists(s) && s->space == space && !s->listed)
			r = remove_at(store, i);
	}
	return r;
}

int store_sweep_below(struct store *store, uint32_t space)
{
	int r = 0;

	for (uint32_t i = 0; i < store->slots.n && r == 0; i++)
		if (exists(&store->slots.p[i]) && store->slots.p[i].space < space)
			r = remove_at(store, i);
	return r;
}

void store_settle(struct store *store, uint32_t slot)
{
	struct slot *s = &store->slots.p[slot];

	s->dirty = false;
	if (!s->gone)
		return;
	index_remove(&store->index,
		     hash_of(s->kind, stored_namespace(s->object), stored_name(s->object)), slot);
	free(s->object);
	*s = (struct slot){0};
	check(store->unused.n < store->unused.capacity);
	store->unused.p[store->unused.n++] = slot;
}
