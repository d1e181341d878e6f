/* SPDX-License-Identifier: Apache-2.0 */
/* array.group_by: the objects of a list, by the text that one of their keys has. Alloy's groups
 * come in no order; here they come as their first object does, so that a reload makes the same
 * components again.
 *
 * Source: grafana/alloy, syntax/internal/stdlib, and its reference on array.group_by. */
#include "host/lang/values/library-text.h"

#include "base/hash.h"
#include "base/index.h"
#include "base/vec.h"

#define NO_GROUP SIZE_MAX /* of an object that is dropped */

struct group {
	struct str name;
	struct andiron_value *items;
	uint64_t n, used;
	uint32_t flags; /* of its name: a secret one stays one */
};

struct groups {
	VEC(struct group) list;
	struct index by_name;
	size_t *of; /* each object's, by position */
};

struct sought {
	const struct groups *g;
	struct str name;
};

static bool same_name(const void *context, uint32_t position)
{
	const struct sought *s = context;

	return str_eq(s->g->list.p[position].name, s->name);
}

/* Counts one more object; its group is made if there is none. False without memory. */
static bool count_object(struct groups *g, struct str name, size_t *ret)
{
	struct sought sought = {g, name};
	uint64_t hash = hash_str(name);
	uint32_t at = index_find(&g->by_name, hash, same_name, &sought);

	if (at == INDEX_NONE) {
		at = (uint32_t)g->list.n;
		if (!vec_push(&g->list, (struct group){.name = name}) ||
		    index_add(&g->by_name, hash, at) < 0)
			return false;
	}
	g->list.p[at].n++;
	*ret = at;
	return true;
}

/* Of a list that stands in the call, the item; otherwise the list. */
static struct place place_of_item(const struct expr *e, uint64_t i)
{
	const struct expr *list = library_argument(e, 0), *item = list->items;

	if (list->kind != EXPR_LIST)
		return list->place;
	while (item && i--)
		item = item->next;
	return item ? item->place : list->place;
}

/* Which group each object is in. */
static bool sort_objects(struct lang *l, const struct expr *e, const struct andiron_value *args,
			 struct groups *g)
{
	struct str key = {args[1].string.ptr, args[1].string.len};

	for (uint64_t i = 0; i < args[0].n_items; i++) {
		const struct andiron_value *object = &args[0].items[i], *value;
		struct str name = STR("");

		if (object->kind != ANDIRON_VALUE_MAP) {
			lang_error(l, place_of_item(e, i), NULL,
				   "array.group_by takes a list of objects here, and this is %s",
				   eval_describe(l, object));
			return false;
		}
		value = eval_member(object, key);
		g->of[i] = NO_GROUP;
		if (!value && args[2].integer)
			continue;
		if (value && value->kind != ANDIRON_VALUE_STRING) {
			lang_error(l, place_of_item(e, i),
				   "string.format(\"%v\", VALUE) makes a string of a number",
				   "array.group_by groups by strings, and the %.*s of this object "
				   "is %s",
				   STR_FMT(str_first(key, 200)), eval_describe(l, value));
			return false;
		}
		if (value)
			name = (struct str){value->string.ptr, value->string.len};
		if (!count_object(g, name, &g->of[i])) {
			l->no_memory = true;
			return false;
		}
		if (value)
			g->list.p[g->of[i]].flags |= value->flags;
	}
	return true;
}

/* {KEY = name, items = […]}; if KEY is "items", the list alone. */
static bool make_object(struct lang *l, const struct expr *e, const struct andiron_value *key,
			struct group *g, struct andiron_value *ret)
{
	struct andiron_str *keys = lang_array(l, struct andiron_str, 2);
	struct andiron_value *items = lang_array(l, struct andiron_value, 2);
	struct str named = {key->string.ptr, key->string.len};
	uint64_t n = 0;

	g->items = lang_array(l, struct andiron_value, g->n);
	if (!keys || !items || !g->items)
		return false;
	if (!str_is(named, "items")) {
		keys[n] = key->string;
		items[n] = eval_value(e, ANDIRON_VALUE_STRING);
		items[n].flags = g->flags;
		items[n++].string = (struct andiron_str){g->name.p, g->name.n};
	}
	keys[n] = (struct andiron_str){"items", strlen("items")};
	items[n] = eval_value(e, ANDIRON_VALUE_LIST);
	items[n].items = g->items;
	items[n++].n_items = g->n;
	*ret = eval_value(e, ANDIRON_VALUE_MAP);
	ret->keys = keys;
	ret->items = items;
	ret->n_items = n;
	return true;
}

static bool make_list(struct lang *l, const struct expr *e, const struct andiron_value *args,
		      struct groups *g, struct andiron_value *ret)
{
	struct andiron_value *made = lang_array(l, struct andiron_value, g->list.n);

	if (!made)
		return false;
	for (size_t i = 0; i < g->list.n; i++)
		if (!make_object(l, e, &args[1], &g->list.p[i], &made[i]))
			return false;
	for (uint64_t i = 0; i < args[0].n_items; i++)
		if (g->of[i] != NO_GROUP) {
			struct group *group = &g->list.p[g->of[i]];

			check(group->used < group->n);
			group->items[group->used++] = args[0].items[i];
		}
	*ret = eval_value(e, ANDIRON_VALUE_LIST);
	ret->items = made;
	ret->n_items = g->list.n;
	return true;
}

LIBRARY_FUNCTION(group_by)
{
	struct groups g = {.by_name = INDEX_NULL};
	bool good;

	if (args[0].kind != ANDIRON_VALUE_LIST)
		return library_refuse(l, e, 0, "a list of objects", &args[0]);
	if (args[1].kind != ANDIRON_VALUE_STRING)
		return library_refuse(l, e, 1, "a key", &args[1]);
	if (args[2].kind != ANDIRON_VALUE_BOOL)
		return library_refuse(l, e, 2, "true or false", &args[2]);
	g.of = lang_array(l, size_t, args[0].n_items);
	good = g.of && sort_objects(l, e, args, &g) && make_list(l, e, args, &g, ret);
	vec_free(&g.list);
	index_free(&g.by_name);
	return good;
}
