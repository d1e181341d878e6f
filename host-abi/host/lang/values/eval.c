/* SPDX-License-Identifier: Apache-2.0 */
/* The evaluator: literals, lists, objects, members. It recurses as deep as the parser allows. */
#include "host/lang/values/eval.h"
#include "host/lang/values/scope.h"

#include "base/check.h"
#include "base/hash.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct andiron_value eval_value(const struct expr *e, uint32_t kind)
{
	return (struct andiron_value){
		.kind = kind,
		.file = e->place.source ? e->place.source->name : NULL,
		.line = e->place.line,
		.column = e->place.column,
	};
}

const char *eval_describe(const struct lang *l, const struct andiron_value *value)
{
	static const char *const kinds[] = {"null",     "false",  "a number", "a number",
					    "a string", "a list", "an object"};

	if (value->kind == ANDIRON_VALUE_BOOL && value->integer)
		return "true";
	if (value->kind < sizeof(kinds) / sizeof(kinds[0]))
		return kinds[value->kind];
	if (eval_is_targets(l, value))
		return "a list of targets";
	return eval_is_receiver(l, value) ? "a receiver of profiles" : eval_export(l, value)->name;
}

static bool decimal(struct str text, struct andiron_value *ret)
{
	bool negative = text.n && text.p[0] == '-';
	uint64_t n;

	if (!str_u64(str_skip(text, negative), &n) || (negative && n > (uint64_t)INT64_MAX + 1))
		return false;
	ret->kind = negative || n <= INT64_MAX ? ANDIRON_VALUE_INT : ANDIRON_VALUE_FLOAT;
	ret->integer = (int64_t)(negative ? -n : n);
	ret->number = (double)n;
	return true;
}

static bool octal_number(struct str text, struct andiron_value *ret)
{
	uint64_t n = 0;

	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '7' || n > INT64_MAX >> 3)
			return false;
		n = n << 3 | (uint64_t)(text.p[i] - '0');
	}
	ret->kind = ANDIRON_VALUE_INT;
	ret->integer = (int64_t)n;
	return true;
}

bool eval_number(struct lang *l, struct str text, bool octal, struct andiron_value *ret)
{
	bool leading_zero = octal && text.n > 1 && text.p[0] == '0';
	struct str copy;
	char *end;
	double number;

	if (leading_zero ? octal_number(text, ret) : decimal(text, ret))
		return true;
	/* strtod would also take "inf", "0x1" and blanks. */
	for (size_t i = 0; i < text.n; i++)
		if (!strchr("0123456789.eE+-", text.p[i]))
			return false;
	copy = lang_str(l, text);
	if (!copy.n)
		return false;
	number = str_parse_fraction(copy.p, &end);
	if (end != copy.p + copy.n || !isfinite(number))
		return false;
	ret->kind = ANDIRON_VALUE_FLOAT;
	ret->number = number;
	return true;
}

struct str eval_number_text(struct lang *l, const struct andiron_value *v)
{
	char digits[64];

	if (v->kind == ANDIRON_VALUE_INT) {
		snprintf(digits, sizeof(digits), "%lld", (long long)v->integer);
	} else if (v->integer) { /* 2^63 and more */
		snprintf(digits, sizeof(digits), "%llu", (unsigned long long)v->integer);
	} else {
		for (int precision = 1; precision <= 17; precision++) {
			str_print_fraction(digits, sizeof(digits), precision, v->number);
			if (str_parse_fraction(digits, NULL) == v->number)
				break;
		}
	}
	return lang_str(l, str_of(digits));
}

static bool eval_literal(struct lang *l, const struct expr *e, struct andiron_value *ret)
{
	*ret = eval_value(e, ANDIRON_VALUE_NULL);
	if (e->kind == EXPR_BOOL) {
		ret->kind = ANDIRON_VALUE_BOOL;
		ret->integer = str_is(e->text, "true");
	} else if (e->kind == EXPR_STRING) {
		ret->kind = ANDIRON_VALUE_STRING;
		ret->string = (struct andiron_str){e->text.p, e->text.n};
	} else if (e->kind == EXPR_NUMBER && !eval_number(l, e->text, true, ret)) {
		lang_error(l, e->place, NULL, "this number is too large");
		return false;
	}
	return true;
}

static bool eval_list(struct lang *l, const struct expr *e, struct andiron_value *ret)
{
	struct andiron_value *items = lang_array(l, struct andiron_value, e->n_items);
	bool good = items;
	size_t n = 0;

	for (const struct expr *item = e->items; items && item; item = item->next)
		good &= eval(l, item, &items[n++]);
	check(!items || n == e->n_items);
	*ret = eval_value(e, ANDIRON_VALUE_LIST);
	ret->items = items;
	ret->n_items = n;
	return good;
}

struct sought {
	const struct andiron_str *keys;
	struct str key;
};

static bool same_key(const void *context, uint32_t position)
{
	const struct sought *s = context;
	struct andiron_str key = s->keys[position];

	return str_eq((struct str){key.ptr, key.len}, s->key);
}

/* Of two fields with one key the later counts. */
static bool eval_map(struct lang *l, const struct expr *e, struct andiron_value *ret)
{
	struct andiron_value *items = lang_array(l, struct andiron_value, e->n_items);
	struct andiron_str *keys = lang_array(l, struct andiron_str, e->n_items);
	struct index seen = INDEX_NULL;
	bool good = items && keys;
	size_t n = 0;

	for (const struct expr *f = good ? e->items : NULL; f; f = f->next) {
		struct sought sought = {keys, f->text};
		uint32_t at = index_find(&seen, hash_str(f->text), same_key, &sought);

		if (at != INDEX_NONE) {
			lang_warning(l, f->place, NULL,
				     "the key %.*s is given twice; this one counts",
				     STR_FMT(str_first(f->text, 200)));
		} else {
			at = (uint32_t)n++;
			l->no_memory |= index_add(&seen, hash_str(f->text), at) < 0;
			keys[at] = (struct andiron_str){f->text.p, f->text.n};
		}
		good &= eval(l, f->left, &items[at]);
	}
	check(n <= e->n_items);
	index_free(&seen);
	*ret = eval_value(e, ANDIRON_VALUE_MAP);
	ret->keys = keys;
	ret->items = items;
	ret->n_items = n;
	return good && !l->no_memory;
}

const struct andiron_value *eval_member(const struct andiron_value *map, struct str key)
{
	for (uint64_t i = map->n_items; i-- > 0;)
		if (str_eq((struct str){map->keys[i].ptr, map->keys[i].len}, key))
			return &map->items[i];
	return NULL;
}

/* x.f: a missing member is an error. */
static bool eval_access(struct lang *l, const struct expr *e, struct andiron_value *ret)
{
	const struct andiron_value *found;
	struct andiron_value map;
	struct str path;

	path = eval_path(l, e);
	if (path.n && !scope_leads_inside(l, path))
		return eval_reference(l, e, ret);
	if (!eval_open(l, e->left, &map))
		return false;
	found = map.kind == ANDIRON_VALUE_MAP ? eval_member(&map, e->text) : NULL;
	if (found)
		*ret = *found;
	else if (map.kind == ANDIRON_VALUE_MAP)
		lang_error(l, e->place, NULL, "this object has no member %.*s",
			   STR_FMT(str_first(e->text, 200)));
	else
		lang_error(l, e->place, NULL, "%s has no members", eval_describe(l, &map));
	return found;
}

/* x["f"]: a missing member is null. x[0]: a missing element is an error. */
static bool eval_index(struct lang *l, const struct expr *e, struct andiron_value *ret)
{
	const struct andiron_value *found = NULL;
	struct andiron_value whole, at;

	if (!eval_open(l, e->left, &whole) || !eval(l, e->right, &at))
		return false;
	if (whole.kind == ANDIRON_VALUE_MAP && at.kind == ANDIRON_VALUE_STRING) {
		found = eval_member(&whole, (struct str){at.string.ptr, at.string.len});
		*ret = found ? *found : eval_value(e, ANDIRON_VALUE_NULL);
		return true;
	}
	if (whole.kind != ANDIRON_VALUE_LIST || at.kind != ANDIRON_VALUE_INT) {
		lang_error(l, e->place, NULL, "%s cannot be indexed with %s",
			   eval_describe(l, &whole), eval_describe(l, &at));
		return false;
	}
	if (at.integer < 0 || (uint64_t)at.integer >= whole.n_items) {
		if (whole.string.len) /* it may have it once they are known */
			l->waits_for = whole.string.ptr;
		else
			lang_error(l, e->right->place, NULL,
			   "this list has no element %lld (it holds %llu)", (long long)at.integer,
			   (unsigned long long)whole.n_items);
		return false;
	}
	*ret = whole.items[at.integer];
	return true;
}

bool eval(struct lang *l, const struct expr *e, struct andiron_value *ret)
{
	static bool (*const by_kind[EXPR_KINDS])(struct lang *, const struct expr *,
						 struct andiron_value *) = {
		[EXPR_NULL] = eval_literal,   [EXPR_BOOL] = eval_literal,
		[EXPR_NUMBER] = eval_literal, [EXPR_STRING] = eval_literal,
		[EXPR_NAME] = eval_reference, [EXPR_LIST] = eval_list,
		[EXPR_MAP] = eval_map,        [EXPR_ACCESS] = eval_access,
		[EXPR_INDEX] = eval_index,    [EXPR_CALL] = eval_call,
		[EXPR_UNARY] = eval_unary,    [EXPR_BINARY] = eval_binary,
	};

	check(e->kind < EXPR_KINDS && by_kind[e->kind]);
	return by_kind[e->kind](l, e, ret) && !l->no_memory;
}
