/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in scope.h. */
#include "host/lang/values/scope.h"

#include "host/lang/values/eval.h"
#include "host/lang/values/file-content.h"

#include "base/check.h"

enum { UNKNOWN, OPEN, KNOWN, FAILED, WAITING };

struct binding *binding_find(struct binding *all, size_t n, struct str name)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(all[i].name, name))
			return &all[i];
	return NULL;
}

uint32_t scope_window(struct lang *l)
{
	uint32_t before = l->window;

	l->window = ++l->n_windows;
	return before;
}

void scope_names_value(struct lang *l, const struct value_use *use)
{
	while (l->told.n <= use->node && !l->no_memory)
		l->no_memory |= !vec_push(&l->told, 0);
	if (l->no_memory || l->told.p[use->node] == l->window)
		return;
	l->told.p[use->node] = l->window;
	l->no_memory |= !vec_push(&l->value_uses, *use);
}

static void tell_uses(struct lang *l, const struct binding *b)
{
	for (size_t i = b->first_use; i < b->end_use; i++) {
		struct value_use use = l->value_uses.p[i]; /* the list grows meanwhile */

		scope_names_value(l, &use);
	}
}

static bool evaluate(struct lang *l, struct binding *b)
{
	const struct scope *scope = l->scope;
	uint32_t window = scope_window(l);
	bool good;

	b->state = OPEN;
	b->first_use = l->value_uses.n;
	l->waits_for = NULL;
	l->scope = b->scope;
	l->depth += b->expr->depth;
	good = eval(l, b->expr, &b->value) && (!b->file || file_content(l, b, b->expr));
	l->depth -= b->expr->depth;
	l->scope = scope;
	l->window = window;
	b->end_use = l->value_uses.n;
	b->state = good ? KNOWN : l->early ? UNKNOWN : l->waits_for ? WAITING : FAILED;
	b->early = l->early;
	b->waits_for = l->waits_for;
	return good;
}

bool binding_value(struct lang *l, struct binding *b, const struct expr *e,
		   struct andiron_value *ret)
{
	const char *waits_for = l->waits_for;
	bool good;

	tell_uses(l, b);
	if (!b->expr || b->state == KNOWN) {
		*ret = b->value;
		return true;
	}
	if (b->state == WAITING)
		l->waits_for = b->waits_for;
	if (b->state == FAILED || b->state == WAITING || (l->early && b->early == l->early))
		return false;
	if (b->state == OPEN) {
		lang_error(l, e->place, NULL, "the value of %.*s needs itself",
			   STR_FMT(str_first(b->name, 200)));
		return false;
	}
	if (l->depth + b->expr->depth > VALUE_DEPTH_MAX) {
		lang_error(l, e->place, NULL, "this value leads through too many others");
		return false;
	}
	good = evaluate(l, b);
	if (good)
		l->waits_for = waits_for;
	*ret = b->value;
	return good;
}

/* argument.NAME.value, or a foreach's variable. */
static bool find_binding(struct lang *l, const struct scope *scope, struct str path,
			 struct meaning *ret)
{
	struct str rest = path, first = str_cut(&rest, '.'), second = str_cut(&rest, '.');

	if (scope->variable && str_eq(first, scope->variable->name)) {
		l->n_bindings_named++;
		ret->binding = scope->variable;
		ret->rest = str_skip(path, first.n);
		return true;
	}
	if (!scope->custom || !str_is(first, "argument"))
		return false;
	ret->binding = binding_find(scope->arguments, scope->n_arguments, second);
	ret->rest = str_skip(path, first.n + 1 + second.n);
	if (ret->binding && str_is(str_cut(&rest, '.'), "value"))
		ret->rest = str_skip(ret->rest, strlen(".value"));
	else
		ret->binding = NULL;
	l->n_bindings_named += ret->binding != NULL;
	return ret->binding;
}

static bool find_id(struct lang *l, const struct scope *scope, struct str path, struct meaning *ret)
{
	struct str id = path;

	while (id.n) {
		const char *whole = *scope->prefix ? arena_printf(l->arena, "%s%.*s", scope->prefix,
								  STR_FMT(id))
						   : NULL;
		struct str name = whole ? str_of(whole) : id;
		size_t dot = str_rfind(id, '.');
		uint32_t custom = names_find(&l->customs, name);

		if (*scope->prefix && !whole) {
			l->no_memory = true;
			return false;
		}
		ret->node = names_find(&l->names, name);
		ret->custom = custom == INDEX_NONE ? NULL : l->custom.p[custom];
		ret->lost = names_find(&l->lost, name) != INDEX_NONE;
		ret->rest = str_skip(path, id.n);
		if (ret->node != INDEX_NONE || ret->custom || ret->lost)
			return true;
		id = str_first(id, dot < id.n ? dot : 0);
	}
	return false;
}

bool scope_find(struct lang *l, struct str path, struct meaning *ret)
{
	for (const struct scope *scope = l->scope; scope && !l->no_memory; scope = scope->around) {
		*ret = (struct meaning){.node = INDEX_NONE};
		if (find_binding(l, scope, path, ret) || find_id(l, scope, path, ret))
			return true;
	}
	*ret = (struct meaning){.node = INDEX_NONE};
	return false;
}

bool scope_leads_inside(struct lang *l, struct str path)
{
	struct meaning m;
	struct str rest;

	if (!scope_find(l, path, &m))
		return false;
	rest = str_skip(m.rest, 1);
	if (m.binding)
		return rest.n;
	return m.custom && str_find(rest, '.') < rest.n;
}
