/* SPDX-License-Identifier: Apache-2.0 */
/* The evaluator: the functions of the library, by name. */
#include "host/lang/values/eval.h"
#include "host/lang/values/library.h"

#include "base/check.h"

#include <stdlib.h>

#define MAX_LIBRARY 50 /* functions among which a misspelt one is sought */

static bool call_env(struct lang *l, const struct expr *e, struct andiron_value *ret)
{
	const struct expr *argument = e->items;
	struct andiron_value name;
	struct str copy;
	const char *value;

	if (e->n_items != 1) {
		lang_error(l, e->place, "write sys.env(\"NAME\")",
			   "sys.env takes one name, not %u values", e->n_items);
		return false;
	}
	if (!eval(l, argument, &name))
		return false;
	if (name.kind != ANDIRON_VALUE_STRING) {
		lang_error(l, argument->place, NULL, "sys.env takes a string, not %s",
			   eval_describe(l, &name));
		return false;
	}
	copy = lang_str(l, (struct str){name.string.ptr, name.string.len});
	value = copy.p ? getenv(copy.p) : NULL;
	if (value && !str_utf8(str_of(value))) {
		lang_error(l, e->place, NULL, "the variable %s is not UTF-8 text", copy.p);
		return false;
	}
	copy = lang_str(l, value ? str_of(value) : STR(""));
	*ret = eval_value(e, ANDIRON_VALUE_STRING);
	ret->string = (struct andiron_str){copy.p, copy.n};
	return copy.p;
}

/* How many parts an argument brings: the parts of targets (concat within concat is flat), or the
 * elements of a list. */
static bool count_parts(struct lang *l, const struct expr *argument, struct andiron_value *v,
			bool *handles, size_t *n)
{
	if (!eval(l, argument, v))
		return false;
	if (eval_is_targets(l, v)) {
		*handles = true;
		*n += v->n_items ? v->n_items : 1;
		return true;
	}
	if (v->kind == ANDIRON_VALUE_LIST) {
		*n += v->n_items + 1;
		return true;
	}
	lang_error(l, argument->place, NULL, "array.concat takes lists, not %s",
		   eval_describe(l, v));
	return false;
}

/* With targets of components among the arguments, parts are these and whole lists; otherwise the
 * elements. */
static size_t add_parts(struct andiron_value *out, const struct andiron_value *v, bool handles)
{
	bool whole = handles && (v->kind == ANDIRON_VALUE_LIST || !v->n_items);
	size_t n = whole ? 1 : (size_t)v->n_items;

	for (size_t i = 0; i < n; i++)
		out[i] = whole ? *v : v->items[i];
	return n;
}

static bool call_concat(struct lang *l, const struct expr *e, struct andiron_value *ret)
{
	struct andiron_value *arguments = lang_array(l, struct andiron_value, e->n_items), *parts;
	size_t i = 0, n = 0, used = 0;
	bool handles = false, good = arguments;

	for (const struct expr *a = e->items; arguments && a; a = a->next)
		good &= count_parts(l, a, &arguments[i++], &handles, &n);
	parts = good ? lang_array(l, struct andiron_value, n) : NULL;
	if (!parts)
		return false;
	for (i = 0; i < e->n_items; i++)
		used += add_parts(parts + used, &arguments[i], handles);
	check(used <= n);
	*ret = eval_value(e, handles ? ANDIRON_VALUE_CAPSULE : ANDIRON_VALUE_LIST);
	ret->items = parts;
	ret->n_items = used;
	return true;
}

/* Nothing, or empty, or 0. */
static bool is_zero(const struct andiron_value *v)
{
	switch (v->kind) {
	case ANDIRON_VALUE_BOOL:
	case ANDIRON_VALUE_INT:
		return v->integer == 0;
	case ANDIRON_VALUE_FLOAT:
		return v->number == 0;
	case ANDIRON_VALUE_STRING:
		return v->string.len == 0;
	default:
		return v->n_items == 0 && v->kind != ANDIRON_VALUE_CAPSULE;
	}
}

/* The first argument that is not zero, or else the last. */
static bool call_coalesce(struct lang *l, const struct expr *e, struct andiron_value *ret)
{
	struct andiron_value chosen = eval_value(e, ANDIRON_VALUE_NULL), value;
	bool good = true;

	for (const struct expr *a = e->items; a; a = a->next) {
		if (!eval_open(l, a, &value))
			good = false;
		else if (is_zero(&chosen))
			chosen = value;
	}
	*ret = chosen;
	return good;
}

static const struct {
	const char *name, *instead; /* of a deprecated name */
	bool (*call)(struct lang *l, const struct expr *e, struct andiron_value *ret);
} functions[] = {
	{"sys.env", NULL, call_env},         {"env", "sys.env", call_env},
	{"array.concat", NULL, call_concat}, {"concat", "array.concat", call_concat},
	{"coalesce", NULL, call_coalesce},
};

#define N_FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

static const char *nearest_function(struct lang *l, struct str name)
{
	const char *names[N_FUNCTIONS + MAX_LIBRARY];
	size_t n = 0;

	for (size_t i = 0; i < N_FUNCTIONS; i++)
		names[n++] = functions[i].name;
	for (size_t i = 0; library_functions[i].name && i < MAX_LIBRARY; i++)
		names[n++] = library_functions[i].name;
	return diag_suggest(l->diags, name, names, n);
}

bool eval_call(struct lang *l, const struct expr *e, struct andiron_value *ret)
{
	struct str name = eval_path(l, e->left);

	for (size_t i = 0; i < N_FUNCTIONS; i++) {
		if (!str_is(name, functions[i].name))
			continue;
		if (functions[i].instead)
			lang_warning(l, e->left->place, NULL, "%s is deprecated; write %s",
				     functions[i].name, functions[i].instead);
		return functions[i].call(l, e, ret);
	}
	for (const struct library_function *f = library_functions; f->name; f++) {
		bool before = f->before && str_is(name, f->before);

		if (before)
			lang_warning(l, e->left->place, NULL, "%s is deprecated; write %s",
				     f->before, f->name);
		if (before || str_is(name, f->name))
			return library_call(l, e, f, ret);
	}
	if (!name.n)
		lang_error(l, e->place, NULL, "only a function can be called");
	else
		lang_error(l, e->left->place, nearest_function(l, name),
			   "there is no function \"%.*s\"", STR_FMT(str_first(name, 200)));
	return false;
}
