/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in supplied.h. */
#include "host/lang/supplied.h"

#include "base/arena.h"
#include "base/check.h"
#include "base/vec.h"
#include "host/lang/values/names.h"
#include "host/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct kept {
	struct arena arena;
	struct andiron_value value;
};

struct entry {
	struct arena arena;
	const char *id, *export_name;
	/* Of each at most one, from the oldest on. */
	struct kept *taken, *refused, *tried, *fresh;
	bool again;     /* the fresh one was refused before */
	uint64_t round; /* in which it was tried alone last */
};

struct supplied {
	VEC(struct entry *) all;
	uint64_t round;
};

struct supplied *supplied_new(void)
{
	return calloc(1, sizeof(struct supplied));
}

static void kept_free(struct kept **kept)
{
	if (*kept)
		arena_free(&(*kept)->arena);
	free(*kept);
	*kept = NULL;
}

/* `from` takes the place of `to`. */
static void kept_move(struct kept **to, struct kept **from)
{
	kept_free(to);
	*to = *from;
	*from = NULL;
}

static void entry_free(struct entry *e)
{
	if (!e)
		return;
	kept_free(&e->taken);
	kept_free(&e->refused);
	kept_free(&e->tried);
	kept_free(&e->fresh);
	arena_free(&e->arena);
	free(e);
}

void supplied_free(struct supplied *s)
{
	if (!s)
		return;
	vec_each (&s->all, e)
		entry_free(*e);
	vec_free(&s->all);
	free(s);
}

static struct str text_of(struct andiron_str s)
{
	return (struct str){s.ptr, s.len};
}

static bool is_text(const struct andiron_value *v, uint64_t *left)
{
	bool good = v->kind == ANDIRON_VALUE_STRING && v->string.len <= *left;

	*left -= good ? v->string.len : 0;
	return good && str_utf8(text_of(v->string));
}

static bool is_map(const struct andiron_value *v, uint64_t *left)
{
	bool good = v->kind == ANDIRON_VALUE_MAP && v->n_items <= *left;

	for (uint64_t i = 0; good && i < v->n_items; i++) {
		good = v->keys[i].len <= *left && str_utf8(text_of(v->keys[i]));
		*left -= good ? v->keys[i].len : 0;
		good = good && is_text(&v->items[i], left);
	}
	return good;
}

static bool is_value(const struct andiron_value *v)
{
	uint64_t left = SUPPLIED_MAX_BYTES, left_of_list = SUPPLIED_MAX_LIST_BYTES;
	bool good = v->kind == ANDIRON_VALUE_LIST && v->n_items <= left_of_list;

	for (uint64_t i = 0; good && i < v->n_items; i++)
		good = is_map(&v->items[i], &left_of_list);
	return good || is_text(v, &left) || is_map(v, &left);
}

static bool same_text(struct andiron_str a, struct andiron_str b)
{
	return str_eq(text_of(a), text_of(b));
}

static bool same(const struct andiron_value *a, const struct andiron_value *b)
{
	if (a->kind != b->kind || a->flags != b->flags || a->n_items != b->n_items)
		return false;
	if (a->kind == ANDIRON_VALUE_STRING)
		return same_text(a->string, b->string);
	for (uint64_t i = 0; i < a->n_items; i++)
		if ((a->kind == ANDIRON_VALUE_MAP && !same_text(a->keys[i], b->keys[i])) ||
		    !same(&a->items[i], &b->items[i]))
			return false;
	return true;
}

static int copy_text(struct arena *arena, struct andiron_str text, struct andiron_str *ret)
{
	struct str copy = arena_str(arena, text_of(text));

	*ret = (struct andiron_str){copy.p, copy.n};
	return copy.p ? 0 : -ENOMEM;
}

int supplied_copy(struct arena *arena, const struct andiron_value *value, struct andiron_value *ret)
{
	struct andiron_value v = {.kind = value->kind,
				  .flags = value->flags & ANDIRON_VALUE_SECRET};
	struct andiron_value *items;
	struct andiron_str *keys;
	int r = 0;

	if (v.kind == ANDIRON_VALUE_STRING) {
		r = copy_text(arena, value->string, &v.string);
	} else {
		items = arena_array(arena, struct andiron_value, value->n_items + 1);
		keys = arena_array(arena, struct andiron_str, value->n_items + 1);
		if (!items || !keys)
			return -ENOMEM;
		v.items = items;
		v.keys = keys;
		v.n_items = value->n_items;
		for (uint64_t i = 0; i < v.n_items && r == 0; i++) {
			if (v.kind == ANDIRON_VALUE_MAP)
				r = copy_text(arena, value->keys[i], &keys[i]);
			if (r == 0)
				r = supplied_copy(arena, &value->items[i], &items[i]);
		}
	}
	if (r == 0)
		*ret = v;
	return r;
}

static struct kept *kept_new(const struct andiron_value *value)
{
	struct kept *kept = calloc(1, sizeof(*kept));

	if (kept && supplied_copy(&kept->arena, value, &kept->value) < 0)
		kept_free(&kept);
	return kept;
}

static struct entry *entry_new(const char *id, const char *export_name)
{
	struct entry *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->id = arena_str(&e->arena, str_of(id)).p;
	e->export_name = arena_str(&e->arena, str_of(export_name)).p;
	if (e->id && e->export_name)
		return e;
	entry_free(e);
	return NULL;
}

static struct entry *find(const struct supplied *s, const char *id, const char *export_name)
{
	vec_each (&s->all, e)
		if (strcmp((*e)->id, id) == 0 && strcmp((*e)->export_name, export_name) == 0)
			return *e;
	return NULL;
}

static struct entry *find_or_add(struct supplied *s, const char *id, const char *export_name)
{
	struct entry *e = find(s, id, export_name);

	if (e || !vec_reserve(&s->all, 1))
		return e;
	e = entry_new(id, export_name);
	if (e)
		s->all.p[s->all.n++] = e;
	return e;
}

int supplied_set(struct supplied *s, const char *id, const char *export_name,
		 const struct andiron_value *value)
{
	struct kept *fresh = is_value(value) ? kept_new(value) : NULL, *last;
	struct entry *e = fresh ? find_or_add(s, id, export_name) : NULL;

	if (!e) {
		kept_free(&fresh);
		return is_value(value) ? -ENOMEM : -EINVAL;
	}
	last = e->fresh ?: e->tried ?: e->refused ?: e->taken;
	if (last && same(&fresh->value, &last->value)) {
		kept_free(&fresh);
		return last == e->refused ? -EPERM : 0;
	}
	kept_move(&e->fresh, &fresh);
	kept_free(&e->refused);
	e->again = false;
	return 1;
}

size_t supplied_try_all(struct supplied *s)
{
	size_t n = 0;

	s->round++;
	vec_each (&s->all, e) {
		check(!(*e)->tried);
		(*e)->tried = (*e)->fresh;
		(*e)->fresh = NULL;
		n += (*e)->tried != NULL;
	}
	return n;
}

const char *supplied_try_one(struct supplied *s, bool *ret_again)
{
	vec_each (&s->all, at) {
		struct entry *e = *at;

		check(!e->tried);
		if (!e->fresh || e->round == s->round)
			continue;
		e->round = s->round;
		e->tried = e->fresh;
		e->fresh = NULL;
		*ret_again = e->again;
		return e->id;
	}
	return NULL;
}

bool supplied_is_refusal(int result)
{
	return result == -EINVAL || result == -EPERM;
}

void supplied_end(struct supplied *s, int result)
{
	vec_each (&s->all, at) {
		struct entry *e = *at;

		if (!e->tried)
			continue;
		if (result == 0)
			kept_move(&e->taken, &e->tried);
		else if (e->fresh)
			kept_free(&e->tried); /* another has come meanwhile */
		else if (supplied_is_refusal(result))
			kept_move(&e->refused, &e->tried);
		else
			kept_move(&e->fresh, &e->tried);
	}
}

bool supplied_renew(struct supplied *s)
{
	bool any = false;

	vec_each (&s->all, at) {
		struct entry *e = *at;

		if (!e->refused)
			continue;
		kept_move(&e->fresh, &e->refused);
		e->again = any = true;
	}
	return any;
}

bool supplied_refused(const struct supplied *s, const char *id)
{
	vec_each (&s->all, e)
		if (((*e)->refused || ((*e)->fresh && (*e)->again)) && strcmp((*e)->id, id) == 0)
			return true;
	return false;
}

const struct andiron_value *supplied_get(const struct supplied *s, const char *id,
					 const char *export_name)
{
	const struct entry *e = s ? find(s, id, export_name) : NULL;
	const struct kept *kept = e ? e->tried ?: e->taken : NULL;

	return kept ? &kept->value : NULL;
}

static bool add_name(struct names *names, const char *id)
{
	return names_find(names, str_of(id)) != INDEX_NONE || names_add(names, id, NULL) == 0;
}

static bool add_plan(struct names *names, const struct plan *plan)
{
	bool room = true;

	vec_each (&plan->nodes, node)
		room = room && add_name(names, node->id);
	vec_each (&plan->waiting, node)
		room = room && add_name(names, node->id);
	return room;
}

void supplied_prune(struct supplied *s, const struct plan *plan)
{
	struct names names = {0};
	size_t n = 0;

	/* Without memory they are kept until the next time. */
	if (s->all.n && add_plan(&names, plan)) {
		for (size_t i = 0; i < s->all.n; i++) {
			struct entry *e = s->all.p[i];

			if (names_find(&names, str_of(e->id)) != INDEX_NONE)
				s->all.p[n++] = e;
			else
				entry_free(e);
		}
		s->all.n = n;
	}
	names_free(&names);
}
