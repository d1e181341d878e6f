/* SPDX-License-Identifier: Apache-2.0 */
/* Known pods. Contract in store.h. */
#include "store.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/index.h"

#include <errno.h>
#include <stdlib.h>

/* Row ids of pod number p are p << ROW_BITS and what follows. A pod with more
 * targets than fit keeps the first ones. */
#define ROW_BITS 16
#define ROW_MAX  ((size_t)1 << ROW_BITS)

struct entry {
	char *key;
	uint64_t number;
	size_t n_rows;
	uint32_t space;
	bool listed;
};

struct store {
	struct target_list *list;
	VEC(struct entry) pods;
	struct index index;
	uint64_t next_number;
};

struct store *store_new(uint64_t producer)
{
	struct store *store = calloc(1, sizeof(*store));

	if (!store)
		return NULL;
	store->next_number = 1;
	store->list = target_list_new(producer);
	if (!store->list) {
		free(store);
		return NULL;
	}
	return store;
}

void store_free(struct store *store)
{
	if (!store)
		return;
	vec_each(&store->pods, e)
		free(e->key);
	vec_free(&store->pods);
	index_free(&store->index);
	target_list_free(store->list);
	free(store);
}

struct probe {
	const struct store *store;
	struct str key;
};

static bool same(const void *context, uint32_t position)
{
	const struct probe *p = context;

	return str_is(p->key, p->store->pods.p[position].key);
}

static uint32_t find(const struct store *store, struct str key)
{
	struct probe probe = {store, key};

	return index_find(&store->index, hash_str(key), same, &probe);
}

static struct entry *append(struct store *store, struct str key)
{
	struct entry e = {.key = str_dup(key), .number = store->next_number};

	if (!e.key || !vec_reserve(&store->pods, 1) ||
	    index_add(&store->index, hash_str(key), (uint32_t)store->pods.n) < 0) {
		free(e.key);
		return NULL;
	}
	store->next_number++;
	store->pods.p[store->pods.n] = e;
	return &store->pods.p[store->pods.n++];
}

int store_set(struct store *store, uint32_t space, const struct pod *pod)
{
	uint32_t at = find(store, pod->key);
	struct entry *e = at == INDEX_NONE ? append(store, pod->key) : &store->pods.p[at];
	size_t n = pod->targets.n < ROW_MAX ? pod->targets.n : ROW_MAX;
	int r = e ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && r == 0; i++) {
		const struct pod_target *t = &pod->targets.p[i];
		uint64_t row = e->number << ROW_BITS | i;

		r = target_list_set(store->list, row, row, t->labels, t->n_labels);
		if (r == 0 && i >= e->n_rows)
			e->n_rows = i + 1;
	}
	if (r < 0)
		return r;
	while (e->n_rows > n)
		target_list_remove(store->list, e->number << ROW_BITS | --e->n_rows);
	e->space = space;
	e->listed = true;
	return 0;
}

static void remove_at(struct store *store, uint32_t at)
{
	struct entry *e = &store->pods.p[at];
	uint32_t last = (uint32_t)store->pods.n - 1;

	while (e->n_rows)
		target_list_remove(store->list, e->number << ROW_BITS | --e->n_rows);
	index_remove(&store->index, hash_str(str_of(e->key)), at);
	free(e->key);
	if (at != last) {
		*e = store->pods.p[last];
		index_move(&store->index, hash_str(str_of(e->key)), last, at);
	}
	store->pods.n--;
}

void store_remove(struct store *store, struct str key)
{
	uint32_t at = find(store, key);

	if (at != INDEX_NONE)
		remove_at(store, at);
}

void store_begin(struct store *store, uint32_t space)
{
	vec_each(&store->pods, e)
		if (e->space == space)
			e->listed = false;
}

void store_sweep(struct store *store, uint32_t space)
{
	for (size_t i = store->pods.n; i-- > 0;)
		if (store->pods.p[i].space == space && !store->pods.p[i].listed)
			remove_at(store, (uint32_t)i);
}

void store_sweep_below(struct store *store, uint32_t space)
{
	for (size_t i = store->pods.n; i-- > 0;)
		if (store->pods.p[i].space < space)
			remove_at(store, (uint32_t)i);
}

struct target_list *store_list(struct store *store)
{
	return store->list;
}

size_t store_pods(const struct store *store)
{
	return store->pods.n;
}
