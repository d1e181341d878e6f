/* SPDX-License-Identifier: Apache-2.0 */
/* array.combine_maps: objects of two lists, joined where they agree. Every pair is looked at, so
 * their number is bounded, and so is what comes of them.
 *
 * Source: grafana/alloy, syntax/internal/stdlib, and its reference on array.combine_maps. */
#include "host/lang/values/library-text.h"

#define MAX_PAIRS 1000000

static struct str key_of(const struct andiron_value *map, uint64_t i)
{
	return (struct str){map->keys[i].ptr, map->keys[i].len};
}

static bool is_list_of(const struct andiron_value *v, uint32_t kind)
{
	for (uint64_t i = 0; v->kind == ANDIRON_VALUE_LIST && i < v->n_items; i++)
		if (v->items[i].kind != kind)
			return false;
	return v->kind == ANDIRON_VALUE_LIST;
}

/* Whether both have all the keys, with equal values. */
static bool agree(const struct andiron_value *left, const struct andiron_value *right,
		  const struct andiron_value *keys)
{
	for (uint64_t i = 0; i < keys->n_items; i++) {
		struct str key = {keys->items[i].string.ptr, keys->items[i].string.len};
		const struct andiron_value *a = eval_member(left, key);
		const struct andiron_value *b = eval_member(right, key);

		if (!a || !b || !eval_equal(a, b))
			return false;
	}
	return true;
}

/* All members of both; of a key in both the right one's. */
static bool merge(struct lang *l, const struct andiron_value *left,
		  const struct andiron_value *right, struct andiron_value *ret)
{
	size_t n = left->n_items + right->n_items;
	struct andiron_str *keys = lang_array(l, struct andiron_str, n);
	struct andiron_value *items = lang_array(l, struct andiron_value, n);

	if (!keys || !items)
		return false;
	*ret = *left;
	ret->keys = keys;
	ret->items = items;
	for (uint64_t i = 0; i < left->n_items; i++) {
		const struct andiron_value *other = eval_member(right, key_of(left, i));

		keys[i] = left->keys[i];
		items[i] = other ? *other : left->items[i];
	}
	for (uint64_t i = 0; i < right->n_items; i++) {
		if (eval_member(left, key_of(right, i)))
			continue;
		keys[ret->n_items] = right->keys[i];
		items[ret->n_items++] = right->items[i];
	}
	return true;
}

struct joined {
	struct andiron_value *items; /* NULL: they are only counted */
	size_t n, n_members;
};

/* What comes of one object of the left list. False without memory. */
static bool join(struct lang *l, const struct andiron_value *args, uint64_t at, bool keep,
		 struct joined *all)
{
	const struct andiron_value *left = &args[0].items[at];
	size_t before = all->n;

	for (uint64_t i = 0; i < args[1].n_items; i++) {
		const struct andiron_value *right = &args[1].items[i];

		if (!agree(left, right, &args[2]))
			continue;
		if (all->items && !merge(l, left, right, &all->items[all->n]))
			return false;
		all->n++;
		all->n_members += left->n_items + right->n_items;
	}
	if (keep && all->n == before) {
		if (all->items)
			all->items[all->n] = *left;
		all->n++;
	}
	return true;
}

/* Says that argument i is no such list, or what is wrong with its items. */
static bool refuse_list(struct lang *l, const struct expr *e, size_t i, const char *of,
			const struct andiron_value *v)
{
	if (v->kind != ANDIRON_VALUE_LIST)
		return library_refuse(l, e, i, arena_printf(l->arena, "a list of %s", of), v);
	lang_error(l, library_argument(e, i)->place, NULL,
		   "array.combine_maps takes a list of %s here; this one holds %s", of,
		   v->n_items ? "something else" : "nothing");
	return false;
}

static bool check_arguments(struct lang *l, const struct expr *e, const struct andiron_value *args)
{
	for (size_t i = 0; i < 2; i++)
		if (!is_list_of(&args[i], ANDIRON_VALUE_MAP))
			return refuse_list(l, e, i, "objects", &args[i]);
	if (!is_list_of(&args[2], ANDIRON_VALUE_STRING) || args[2].n_items == 0)
		return refuse_list(l, e, 2, "keys", &args[2]);
	if (e->n_items > 3 && args[3].kind != ANDIRON_VALUE_BOOL)
		return library_refuse(l, e, 3, "true or false", &args[3]);
	if (args[0].n_items <= MAX_PAIRS && args[1].n_items <= MAX_PAIRS &&
	    args[0].n_items * args[1].n_items <= MAX_PAIRS)
		return true;
	lang_error(l, e->place, NULL, "these lists have more than %d pairs of objects", MAX_PAIRS);
	return false;
}

LIBRARY_FUNCTION(combine_maps)
{
	bool keep = e->n_items > 3 && args[3].integer;
	struct joined all = {.items = NULL};

	if (!check_arguments(l, e, args))
		return false;
	for (uint64_t i = 0; i < args[0].n_items; i++)
		join(l, args, i, keep, &all);
	if (all.n_members > MAX_PAIRS) {
		lang_error(l, e->place, "keep fewer targets or labels, by discovery.relabel",
			   "what comes of these lists has more than %d labels", MAX_PAIRS);
		return false;
	}
	all.items = lang_array(l, struct andiron_value, all.n);
	all.n = 0;
	for (uint64_t i = 0; i < args[0].n_items; i++)
		if (!all.items || !join(l, args, i, keep, &all))
			return false;
	*ret = eval_value(e, ANDIRON_VALUE_LIST);
	ret->items = all.items;
	ret->n_items = all.n;
	return true;
}
