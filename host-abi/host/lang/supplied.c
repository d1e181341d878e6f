/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in supplied.h. */
#include "host/lang/supplied.h"

#include "base/arena.h"
#include "base/vec.h"
#include "host/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	struct arena arena;
	const char *id, *export_name;
	struct andiron_value value;
};

struct supplied {
	VEC(struct entry *) all;
};

struct supplied *supplied_new(void)
{
	return calloc(1, sizeof(struct supplied));
}

static void entry_free(struct entry *e)
{
	if (!e)
		return;
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

static bool is_text(const struct andiron_value *v, uint64_t *n)
{
	*n += v->string.len;
	return v->kind == ANDIRON_VALUE_STRING && *n <= SUPPLIED_MAX_BYTES &&
	       str_utf8(text_of(v->string));
}

static bool is_value(const struct andiron_value *v)
{
	uint64_t n = 0;

	if (v->kind != ANDIRON_VALUE_MAP)
		return is_text(v, &n);
	if (v->n_items > SUPPLIED_MAX_BYTES)
		return false;
	for (uint64_t i = 0; i < v->n_items; i++) {
		n += v->keys[i].len;
		if (!is_text(&v->items[i], &n) || !str_utf8(text_of(v->keys[i])))
			return false;
	}
	return true;
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
		if (!same_text(a->keys[i], b->keys[i]) || !same(&a->items[i], &b->items[i]))
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
			r = copy_text(arena, value->keys[i], &keys[i]);
			if (r == 0)
				r = supplied_copy(arena, &value->items[i], &items[i]);
		}
	}
	if (r == 0)
		*ret = v;
	return r;
}

static struct entry *entry_new(const char *id, const char *export_name,
			       const struct andiron_value *value)
{
	struct entry *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->id = arena_str(&e->arena, str_of(id)).p;
	e->export_name = arena_str(&e->arena, str_of(export_name)).p;
	if (e->id && e->export_name && supplied_copy(&e->arena, value, &e->value) == 0)
		return e;
	entry_free(e);
	return NULL;
}

static size_t find(const struct supplied *s, const char *id, const char *export_name)
{
	size_t i = 0;

	while (i < s->all.n && (strcmp(s->all.p[i]->id, id) != 0 ||
				strcmp(s->all.p[i]->export_name, export_name) != 0))
		i++;
	return i;
}

int supplied_set(struct supplied *s, const char *id, const char *export_name,
		 const struct andiron_value *value)
{
	size_t at = find(s, id, export_name);
	struct entry *e;

	if (!is_value(value))
		return -EINVAL;
	e = vec_reserve(&s->all, 1) ? entry_new(id, export_name, value) : NULL;
	if (!e)
		return -ENOMEM;
	if (at == s->all.n) {
		s->all.p[s->all.n++] = e;
		return 1;
	}
	if (same(&e->value, &s->all.p[at]->value)) {
		entry_free(e);
		return 0;
	}
	entry_free(s->all.p[at]);
	s->all.p[at] = e;
	return 1;
}

const struct andiron_value *supplied_get(const struct supplied *s, const char *id,
					 const char *export_name)
{
	size_t at = s ? find(s, id, export_name) : 0;

	return s && at < s->all.n ? &s->all.p[at]->value : NULL;
}

static bool has(const struct plan *plan, const char *id)
{
	vec_each (&plan->nodes, node)
		if (strcmp(node->id, id) == 0)
			return true;
	vec_each (&plan->waiting, node)
		if (strcmp(node->id, id) == 0)
			return true;
	return false;
}

void supplied_prune(struct supplied *s, const struct plan *plan)
{
	size_t n = 0;

	for (size_t i = 0; i < s->all.n; i++) {
		struct entry *e = s->all.p[i];

		if (has(plan, e->id))
			s->all.p[n++] = e;
		else
			entry_free(e);
	}
	s->all.n = n;
}
