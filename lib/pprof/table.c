/* SPDX-License-Identifier: Apache-2.0 */
/* Distinct records. Contract in table.h. */
#include "pprof/table.h"

#include "base/check.h"
#include "base/hash.h"

void table_free(struct table *t)
{
	buf_free(&t->bytes);
	vec_free(&t->ends);
	index_free(&t->index);
}

struct probe {
	const struct table *table;
	struct str sought;
};

static bool same(const void *context, uint32_t position)
{
	const struct probe *probe = context;

	return str_eq(table_get(probe->table, position), probe->sought);
}

uint32_t table_add(struct table *t, struct str s, bool *ret_new)
{
	struct probe probe = {t, s};
	uint64_t hash = hash_str(s);
	uint32_t id = index_find(&t->index, hash, same, &probe);

	if (id != INDEX_NONE) {
		*ret_new = false;
		return id;
	}
	id = (uint32_t)t->ends.n;
	/* Room first, then the index, then what cannot fail. buf keeps below 1 GiB, so ends fit 32
	 * bits and ids stay below INDEX_NONE. */
	if (!vec_reserve(&t->ends, 1) || !buf_reserve(&t->bytes, s.n) ||
	    index_add(&t->index, hash, id) < 0)
		return INDEX_NONE;
	buf_str_append(&t->bytes, s);
	check(t->bytes.n <= UINT32_MAX);
	t->ends.p[t->ends.n++] = (uint32_t)t->bytes.n;
	*ret_new = true;
	return id;
}
