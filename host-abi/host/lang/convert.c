/* SPDX-License-Identifier: Apache-2.0 */
/* The binder: one value to its option's type. Numbers and strings become each other where the
 * option wants it, as in Alloy; null becomes the empty value of the type. What is LENIENT keeps a
 * value of another type as it is. */
#include "host/lang/bind.h"
#include "host/lang/values/eval.h"

#include "base/check.h"
#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* What one component may refer to. */
#define MAX_USES 4096

static struct str text(const struct andiron_value *v)
{
	return (struct str){v->string.ptr, v->string.len};
}

/* A number that a string spells becomes one. */
static void parse_number(struct lang *l, struct andiron_value *v)
{
	struct andiron_value parsed = {0};

	if (v->kind == ANDIRON_VALUE_STRING && eval_number(l, text(v), false, &parsed)) {
		v->kind = parsed.kind;
		v->integer = parsed.integer;
		v->number = parsed.number;
	}
}

static bool to_int(struct lang *l, struct andiron_value *v)
{
	parse_number(l, v);
	if (v->kind == ANDIRON_VALUE_FLOAT && fabs(v->number) < 0x1p63) {
		v->kind = ANDIRON_VALUE_INT;
		v->integer = (int64_t)v->number;
	}
	return v->kind == ANDIRON_VALUE_INT;
}

static bool to_uint(struct lang *l, struct andiron_value *v)
{
	parse_number(l, v);
	if (v->kind == ANDIRON_VALUE_INT)
		return v->integer >= 0;
	if (v->kind != ANDIRON_VALUE_FLOAT)
		return false;
	if (!v->integer && !(v->number > -1 && v->number < 0x1p64))
		return false;
	v->kind = ANDIRON_VALUE_INT;
	if (!v->integer)
		v->integer = (int64_t)(uint64_t)v->number;
	return true;
}

static bool to_float(struct lang *l, struct andiron_value *v)
{
	parse_number(l, v);
	if (v->kind == ANDIRON_VALUE_INT) {
		v->kind = ANDIRON_VALUE_FLOAT;
		v->number = (double)v->integer;
	}
	return v->kind == ANDIRON_VALUE_FLOAT;
}

static bool to_string(struct lang *l, struct andiron_value *v)
{
	struct str copy;

	if (v->kind != ANDIRON_VALUE_INT && v->kind != ANDIRON_VALUE_FLOAT)
		return v->kind == ANDIRON_VALUE_STRING;
	copy = eval_number_text(l, v);
	v->kind = ANDIRON_VALUE_STRING;
	v->string = (struct andiron_str){copy.p, copy.n};
	return copy.p;
}

static bool to_secret(struct lang *l, struct andiron_value *v)
{
	v->flags |= ANDIRON_VALUE_SECRET;
	return to_string(l, v);
}

static bool to_duration(struct lang *l, struct andiron_value *v)
{
	int64_t ns;

	if (!to_string(l, v) || !duration_parse(text(v), &ns))
		return false;
	v->kind = ANDIRON_VALUE_INT;
	v->integer = ns;
	return true;
}

/* The items of a LIST or MAP, each by `fn`; the value was ours alone, its items may be shared and
 * are copied. */
static bool each_item(struct lang *l, struct andiron_value *v, uint32_t kind,
		      bool (*fn)(struct lang *l, struct andiron_value *v))
{
	struct andiron_value *items;

	if (v->kind != kind)
		return false;
	items = lang_array(l, struct andiron_value, v->n_items);
	for (uint64_t i = 0; items && i < v->n_items; i++) {
		items[i] = v->items[i];
		if (!fn(l, &items[i]))
			return false;
	}
	v->items = items;
	return items;
}

static bool to_strings(struct lang *l, struct andiron_value *v)
{
	return each_item(l, v, ANDIRON_VALUE_LIST, to_string);
}

static bool to_map(struct lang *l, struct andiron_value *v)
{
	return each_item(l, v, ANDIRON_VALUE_MAP, to_string);
}

static bool to_secret_or_list(struct lang *l, struct andiron_value *v)
{
	if (v->kind != ANDIRON_VALUE_LIST)
		return to_secret(l, v);
	v->flags |= ANDIRON_VALUE_SECRET;
	return each_item(l, v, ANDIRON_VALUE_LIST, to_secret);
}

static bool to_secrets(struct lang *l, struct andiron_value *v)
{
	v->flags |= ANDIRON_VALUE_SECRET;
	return each_item(l, v, ANDIRON_VALUE_MAP, to_secret_or_list);
}

static bool to_bool(struct lang *l, struct andiron_value *v)
{
	return v->kind == ANDIRON_VALUE_BOOL;
}

static const struct {
	const char *what;
	uint32_t kind;
	bool (*convert)(struct lang *l, struct andiron_value *v);
} types[] = {
	[ANDIRON_TYPE_BOOL] = {"true or false", ANDIRON_VALUE_BOOL, to_bool},
	[ANDIRON_TYPE_INT] = {"a whole number", ANDIRON_VALUE_INT, to_int},
	[ANDIRON_TYPE_UINT] = {"a whole number from 0 to 18446744073709551615", ANDIRON_VALUE_INT,
			       to_uint},
	[ANDIRON_TYPE_FLOAT] = {"a number", ANDIRON_VALUE_FLOAT, to_float},
	[ANDIRON_TYPE_STRING] = {"a string", ANDIRON_VALUE_STRING, to_string},
	[ANDIRON_TYPE_SECRET] = {"a string", ANDIRON_VALUE_STRING, to_secret},
	[ANDIRON_TYPE_DURATION] = {"a duration such as \"15s\" or \"1m30s\"", ANDIRON_VALUE_INT,
				   to_duration},
	[ANDIRON_TYPE_STRINGS] = {"a list of strings", ANDIRON_VALUE_LIST, to_strings},
	[ANDIRON_TYPE_MAP] = {"an object of strings, {\"name\" = \"value\"}", ANDIRON_VALUE_MAP,
			      to_map},
	[ANDIRON_TYPE_SECRETS] = {"an object of strings, or of lists of strings", ANDIRON_VALUE_MAP,
				  to_secrets},
	[ANDIRON_TYPE_TARGETS] = {"a list of targets, each an object of strings",
				  ANDIRON_VALUE_LIST, NULL},
	[ANDIRON_TYPE_RECEIVERS] = {"a list of receivers, [pyroscope.write.NAME.receiver]",
				    ANDIRON_VALUE_LIST, NULL},
};

/* What in a list or object is neither string nor number, with its key. Lists of targets hold
 * objects, so these are looked into. */
static const struct andiron_value *find_culprit(const struct andiron_value *v, bool targets,
						struct andiron_str *ret_key)
{
	for (uint64_t i = 0; i < v->n_items; i++) {
		const struct andiron_value *item = &v->items[i], *inner = NULL;
		bool whole = targets && item->kind == ANDIRON_VALUE_MAP;

		if (whole)
			inner = find_culprit(item, false, ret_key);
		else if (targets || item->kind < ANDIRON_VALUE_INT ||
			 item->kind > ANDIRON_VALUE_STRING)
			inner = item;
		if (!inner)
			continue;
		if (!whole && v->kind == ANDIRON_VALUE_MAP)
			*ret_key = v->keys[i];
		return inner;
	}
	return NULL;
}

/* The container is right and something in it is not: points at that. */
static bool refuse_item(struct binder *b, const struct andiron_option *option, const struct expr *e,
			const struct andiron_value *v)
{
	struct andiron_str key = {0};
	const struct andiron_value *item =
		find_culprit(v, option->type == ANDIRON_TYPE_TARGETS, &key);
	struct place place = e->place;

	if (!item || option->type == ANDIRON_TYPE_SECRETS)
		return false;
	if (item->line) {
		place.line = item->line;
		place.column = item->column;
		place.length = 0;
	}
	if (key.ptr)
		lang_error(b->l, place, NULL, "%s must be %s, but its %.*s is %s", option->name,
			   types[option->type].what,
			   STR_FMT(str_first((struct str){key.ptr, key.len}, 200)),
			   eval_describe(b->l, item));
	else
		lang_error(b->l, place, NULL, "%s must be %s, but holds %s", option->name,
			   types[option->type].what, eval_describe(b->l, item));
	return true;
}

static bool refuse(struct binder *b, const struct andiron_option *option, const struct expr *e,
		   const struct andiron_value *v, const char *hint)
{
	if (v->kind == types[option->type].kind && !hint && refuse_item(b, option, e, v))
		return false;
	lang_error(b->l, e->place, hint, "%s must be %s, not %s", option->name,
		   types[option->type].what, eval_describe(b->l, v));
	return false;
}

/* Of a value that was converted, so that it is as deep as its type. */
static bool holds_secret(const struct andiron_value *v)
{
	if (v->flags & ANDIRON_VALUE_SECRET)
		return true;
	for (uint64_t i = 0; i < v->n_items; i++)
		if (holds_secret(&v->items[i]))
			return true;
	return false;
}

/* What is no secret to its component may be shown by anybody, a finding among them; Alloy refuses
 * it, too. */
static bool refuse_secret(struct binder *b, const struct andiron_option *option,
			  const struct expr *e, const struct andiron_value *v)
{
	if (option->type == ANDIRON_TYPE_SECRET || option->type == ANDIRON_TYPE_SECRETS ||
	    !holds_secret(v))
		return false;
	lang_error(b->l, e->place, "convert.nonsensitive(…) says that it may be shown",
		   "%s takes no secret", option->name);
	return true;
}

static bool add_use(struct binder *b, const struct andiron_option *option, const struct expr *e,
		    const struct andiron_value *capsule, const struct andiron_value *literal)
{
	struct use use = {.type = option->type, .port = option->name, .place = e->place};

	if (b->uses.n >= MAX_USES) {
		lang_error(b->l, e->place, NULL, "%s refers to more than %d others", option->name,
			   MAX_USES);
		return false;
	}
	use.literal = literal;
	if (capsule) {
		use.node = eval_node(capsule);
		use.export = eval_export(b->l, capsule);
		use.place.line = capsule->line;
		use.place.column = capsule->column;
		use.place.length = 0;
	}
	vec_each (&b->uses, other)
		use.order += other->type == use.type && strcmp(other->port, use.port) == 0;
	if (!vec_push(&b->uses, use))
		b->l->no_memory = true;
	return !b->l->no_memory;
}

static bool add_literal(struct binder *b, const struct andiron_option *option, const struct expr *e,
			const struct andiron_value *list)
{
	struct andiron_value *copy = lang_array(b->l, struct andiron_value, 1);

	if (!copy)
		return false;
	*copy = *list;
	for (uint64_t i = 0; i < list->n_items; i++)
		if (list->items[i].kind == ANDIRON_VALUE_CAPSULE)
			return refuse(b, option, e, list,
				      eval_is_targets(b->l, &list->items[i])
					      ? "targets are a list already: leave out the [ ], or "
						"join several with array.concat(a, b)"
					      : NULL);
	if (!each_item(b->l, copy, ANDIRON_VALUE_LIST, to_map))
		return refuse(b, option, e, list, NULL);
	if (refuse_secret(b, option, e, copy))
		return false;
	return !copy->n_items || add_use(b, option, e, NULL, copy);
}

/* A part of a TARGETS option. */
static bool add_targets(struct binder *b, const struct andiron_option *option, const struct expr *e,
			const struct andiron_value *v)
{
	if (v->kind == ANDIRON_VALUE_LIST)
		return add_literal(b, option, e, v);
	if (!eval_is_targets(b->l, v))
		return refuse(b, option, e, v, NULL);
	return add_use(b, option, e, v, NULL);
}

static bool convert_targets(struct binder *b, const struct andiron_option *option,
			    const struct expr *e, const struct andiron_value *v)
{
	bool concat = v->kind == ANDIRON_VALUE_CAPSULE && v->n_items, good = true;

	if (v->kind == ANDIRON_VALUE_NULL)
		return true;
	for (uint64_t i = 0; concat && good && i < v->n_items; i++)
		good = add_targets(b, option, e, &v->items[i]);
	return concat ? good : add_targets(b, option, e, v);
}

static bool known_receiver(const struct binder *b, const struct andiron_option *option,
			   uint32_t node)
{
	vec_each (&b->uses, use)
		if (use->type == ANDIRON_TYPE_RECEIVERS && use->node == node &&
		    strcmp(use->port, option->name) == 0)
			return true;
	return false;
}

static bool convert_receivers(struct binder *b, const struct andiron_option *option,
			      const struct expr *e, struct andiron_value *v)
{
	if (eval_is_receiver(b->l, v))
		return refuse(b, option, e, v, "put it between [ ]");
	if (v->kind == ANDIRON_VALUE_NULL)
		v->kind = ANDIRON_VALUE_LIST;
	if (v->kind != ANDIRON_VALUE_LIST)
		return refuse(b, option, e, v, NULL);
	for (uint64_t i = 0; i < v->n_items; i++) {
		const struct andiron_value *item = &v->items[i];

		if (!eval_is_receiver(b->l, item)) {
			lang_error(b->l, e->place, NULL, "%s must be %s, but holds %s",
				   option->name, types[option->type].what,
				   eval_describe(b->l, item));
			return false;
		}
		if (known_receiver(b, option, eval_node(item)))
			lang_warning(b->l, e->place, NULL,
				     "%.*s is given twice; it gets every profile once",
				     (int)item->string.len, item->string.ptr);
		else if (!add_use(b, option, e, item, NULL))
			return false;
	}
	return true;
}

static const char *list_choices(struct lang *l, const struct andiron_option *option)
{
	const char *all = "one of", *separator = "";

	for (const char *const *c = option->choices; all && *c; c++, separator = ",")
		all = arena_printf(l->arena, "%s%s \"%s\"", all, separator, *c);
	return all;
}

static bool check_choice(struct binder *b, const struct andiron_option *option,
			 const struct expr *e, struct str word)
{
	const char *hint;
	size_t n = 0;

	while (option->choices[n]) {
		if (str_is(word, option->choices[n]))
			return true;
		n++;
	}
	hint = diag_suggest(b->l->diags, word, option->choices, n);
	lang_error(b->l, e->place, hint ? hint : list_choices(b->l, option),
		   "%s cannot be \"%.*s\"", option->name, STR_FMT(str_first(word, 200)));
	return false;
}

static bool check_bounds(struct binder *b, const struct andiron_option *option,
			 const struct expr *e, int64_t n)
{
	char least[32], most[32];

	if (option->min == option->max || (n >= option->min && n <= option->max))
		return true;
	if (option->type == ANDIRON_TYPE_DURATION) {
		duration_format(option->min, least, sizeof(least));
		duration_format(option->max, most, sizeof(most));
	} else {
		snprintf(least, sizeof(least), "%lld", (long long)option->min);
		snprintf(most, sizeof(most), "%lld", (long long)option->max);
	}
	if (n < option->min)
		lang_error(b->l, e->place, NULL, "%s must be at least %s", option->name, least);
	else
		lang_error(b->l, e->place, NULL, "%s must be at most %s", option->name, most);
	return false;
}

/* Null is the empty value of the type. */
static void fill_null(const struct andiron_option *option, struct andiron_value *v)
{
	v->kind = types[option->type].kind;
	if (v->kind == ANDIRON_VALUE_STRING)
		v->string = (struct andiron_str){"", 0};
}

bool bind_convert(struct binder *b, const struct andiron_option *option, const struct expr *e,
		  struct andiron_value *v)
{
	struct andiron_value written = *v;

	if (option->type >= sizeof(types) / sizeof(types[0]) || !types[option->type].what) {
		lang_error(b->l, e->place, "the plugin is newer than this version, or broken",
			   "%s has a type that this version does not know", option->name);
		return false;
	}
	if (option->type == ANDIRON_TYPE_TARGETS)
		return convert_targets(b, option, e, v);
	if (option->type == ANDIRON_TYPE_RECEIVERS)
		return convert_receivers(b, option, e, v);
	if (v->kind == ANDIRON_VALUE_NULL)
		fill_null(option, v);
	else if (!types[option->type].convert(b->l, v)) {
		*v = written;
		return !b->l->no_memory && ((option->flags & ANDIRON_OPTION_LENIENT) ||
					    refuse(b, option, e, &written, NULL));
	}
	check(v->kind == types[option->type].kind);
	if (refuse_secret(b, option, e, v))
		return false;
	if (option->choices && v->kind == ANDIRON_VALUE_STRING)
		return check_choice(b, option, e, text(v));
	if (v->kind == ANDIRON_VALUE_INT)
		return check_bounds(b, option, e, v->integer);
	return true;
}
