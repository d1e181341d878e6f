/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of names. Contract in cache.h. */
#include "symbolize/cache.h"

#include "base/check.h"
#include "base/hash.h"

#include <stdlib.h>

void cache_init(struct cache *c, const struct andiron_extension *objects, size_t limit)
{
	*c = (struct cache){
		.objects = objects->table, .objects_self = objects->self, .limit = limit};
}

static void free_object(struct cache *c, struct cached_object *o)
{
	if (o->id != CACHE_VDSO)
		c->objects->release(c->objects_self, o->id);
	vec_free(&o->frames);
	vec_free(&o->results);
	index_free(&o->by_address);
	intern_free(&o->names);
	free(o);
}

void cache_fini(struct cache *c)
{
	vec_each (&c->list, o)
		free_object(c, *o);
	vec_free(&c->list);
	index_free(&c->by_id);
	c->bytes = 0;
}

static size_t size_of(const struct cached_object *o)
{
	return sizeof(*o) + o->frames.capacity * sizeof(*o->frames.p) +
	       o->results.capacity * sizeof(*o->results.p) +
	       o->by_address.capacity * sizeof(struct index_slot) + o->names.arena.bytes +
	       o->names.index.capacity * sizeof(struct index_slot) +
	       o->names.strings.capacity * sizeof(struct str);
}

struct id_probe {
	const struct cache *cache;
	uint64_t id;
};

static bool same_id(const void *context, uint32_t position)
{
	const struct id_probe *probe = context;

	return probe->cache->list.p[position]->id == probe->id;
}

struct cached_object *cache_object(struct cache *c, uint64_t id, int64_t now_ns)
{
	struct id_probe probe = {c, id};
	uint32_t at = index_find(&c->by_id, hash_u64(id), same_id, &probe);
	struct cached_object *o;

	if (at != INDEX_NONE) {
		c->list.p[at]->used_ns = now_ns;
		return c->list.p[at];
	}
	if (!vec_reserve(&c->list, 1))
		return NULL;
	o = calloc(1, sizeof(*o));
	if (!o || index_add(&c->by_id, hash_u64(id), (uint32_t)c->list.n) < 0) {
		free(o);
		return NULL;
	}
	if (id != CACHE_VDSO)
		c->objects->retain(c->objects_self, id);
	o->id = id;
	o->used_ns = now_ns;
	c->list.p[c->list.n++] = o;
	return o;
}

static void evict(struct cache *c, size_t at)
{
	struct cached_object *o = c->list.p[at], *last = c->list.p[c->list.n - 1];

	check(c->bytes >= o->bytes);
	check(index_remove(&c->by_id, hash_u64(o->id), (uint32_t)at));
	if (last != o)
		index_move(&c->by_id, hash_u64(last->id), (uint32_t)(c->list.n - 1), (uint32_t)at);
	c->list.p[at] = last;
	c->list.n--;
	c->bytes -= o->bytes;
	free_object(c, o);
}

void cache_clear(struct cache *c)
{
	while (c->list.n)
		evict(c, c->list.n - 1);
}

/* Position of what was used least recently, besides `keep`; n if there is none. */
static size_t oldest(const struct cache *c, const struct cached_object *keep)
{
	size_t best = c->list.n;

	for (size_t i = 0; i < c->list.n; i++)
		if (c->list.p[i] != keep &&
		    (best == c->list.n || c->list.p[i]->used_ns < c->list.p[best]->used_ns))
			best = i;
	return best;
}

static void evict_excess(struct cache *c, const struct cached_object *keep)
{
	while (c->bytes > c->limit || c->list.n > CACHE_OBJECTS_MAX) {
		size_t at = oldest(c, keep);

		if (at == c->list.n)
			return;
		evict(c, at);
	}
}

void cache_count(struct cache *c, struct cached_object *o)
{
	size_t bytes = size_of(o);

	check(c->bytes >= o->bytes);
	c->bytes = c->bytes - o->bytes + bytes;
	o->bytes = bytes;
	evict_excess(c, o);
}

void cache_trim(struct cache *c, int64_t now_ns)
{
	for (size_t i = c->list.n; i--;)
		if (now_ns - c->list.p[i]->used_ns >= CACHE_IDLE_NS)
			evict(c, i);
	evict_excess(c, NULL);
}

static uint64_t hash_of(uint64_t address, uint32_t demangle)
{
	return hash_mix(address, demangle);
}

struct address_probe {
	const struct cached_object *object;
	uint64_t address;
	uint32_t demangle;
};

static bool same_address(const void *context, uint32_t position)
{
	const struct address_probe *probe = context;
	const struct cached_name *name = &probe->object->results.p[position];

	return name->address == probe->address && name->demangle == probe->demangle;
}

const struct cached_name *cache_find(const struct cached_object *o, uint64_t address,
				     uint32_t demangle)
{
	struct address_probe probe = {o, address, demangle};
	uint32_t at = index_find(&o->by_address, hash_of(address, demangle), same_address, &probe);

	return at == INDEX_NONE ? NULL : &o->results.p[at];
}

struct cached_name *cache_add(struct cached_object *o, const struct cached_name *name)
{
	check(o->results.n < INDEX_NONE && o->frames.n < INDEX_NONE);
	if (!vec_reserve(&o->results, 1) ||
	    index_add(&o->by_address, hash_of(name->address, name->demangle),
		      (uint32_t)o->results.n) < 0)
		return NULL;
	o->results.p[o->results.n] = *name;
	o->results.p[o->results.n].first = (uint32_t)o->frames.n;
	o->results.p[o->results.n].n = 0;
	return &o->results.p[o->results.n++];
}

bool cache_add_frame(struct cached_object *o, const struct cached_frame *frame)
{
	check(o->results.n > 0);
	if (!vec_push(&o->frames, *frame))
		return false;
	o->results.p[o->results.n - 1].n++;
	return true;
}
