/* SPDX-License-Identifier: Apache-2.0 */
/* The table. Contract in numbered.h. */
#include "http/sender/numbered.h"

#include "base/check.h"
#include "base/hash.h"

#include <errno.h>

struct probe {
	const struct numbered_table *table;
	uint64_t id;
};

static bool same(const void *context, uint32_t position)
{
	const struct probe *probe = context;

	return probe->table->items.p[position]->id == probe->id;
}

struct numbered *numbered_find(const struct numbered_table *table, uint64_t id)
{
	const struct probe probe = {table, id};
	uint32_t at = index_find(&table->by_id, hash_u64(id), same, &probe);

	return at == INDEX_NONE ? NULL : table->items.p[at];
}

int numbered_add(struct numbered_table *table, struct numbered *item)
{
	uint32_t place = (uint32_t)table->items.n;

	if (!vec_reserve(&table->items, 1) ||
	    index_add(&table->by_id, hash_u64(item->id), place) < 0)
		return -ENOMEM;
	item->place = place;
	table->items.p[table->items.n++] = item;
	return 0;
}

void numbered_remove(struct numbered_table *table, struct numbered *item)
{
	struct numbered *last = table->items.p[table->items.n - 1];

	check(table->items.p[item->place] == item);
	index_remove(&table->by_id, hash_u64(item->id), item->place);
	table->items.n--;
	if (last == item)
		return;
	index_move(&table->by_id, hash_u64(last->id), last->place, item->place);
	last->place = item->place;
	table->items.p[last->place] = last;
}

void numbered_free(struct numbered_table *table)
{
	vec_free(&table->items);
	index_free(&table->by_id);
}
