/* SPDX-License-Identifier: Apache-2.0 */
/* The evaluator: operators. Integers wrap as in Go; mixed numbers become floats; both sides of &&
 * and || are always evaluated; values of different types are unequal, never an error. */
#include "host/lang/values/eval.h"
#include "host/lang/syntax/scan.h"

#include "base/check.h"

#include <math.h>

static bool is_number(const struct andiron_value *v)
{
	return v->kind == ANDIRON_VALUE_INT || v->kind == ANDIRON_VALUE_FLOAT;
}

static double number(const struct andiron_value *v)
{
	return v->kind == ANDIRON_VALUE_INT ? (double)v->integer : v->number;
}

static struct str text(const struct andiron_value *v)
{
	return (struct str){v->string.ptr, v->string.len};
}

static const char *operator_text(const struct expr *e)
{
	static const char *const names[] = {
		[TOKEN_OR] = "||", [TOKEN_AND] = "&&", [TOKEN_EQ] = "==", [TOKEN_NE] = "!=",
		[TOKEN_LT] = "<",  [TOKEN_LE] = "<=",  [TOKEN_GT] = ">",  [TOKEN_GE] = ">=",
		[TOKEN_ADD] = "+", [TOKEN_SUB] = "-",  [TOKEN_MUL] = "*", [TOKEN_DIV] = "/",
		[TOKEN_MOD] = "%", [TOKEN_POW] = "^",  [TOKEN_NOT] = "!",
	};

	check(e->op < sizeof(names) / sizeof(names[0]) && names[e->op]);
	return names[e->op];
}

bool eval_unary(struct lang *l, const struct expr *e, struct andiron_value *ret)
{
	struct andiron_value v;

	if (!eval(l, e->left, &v))
		return false;
	*ret = eval_value(e, v.kind);
	if (e->op == TOKEN_NOT && v.kind == ANDIRON_VALUE_BOOL)
		ret->integer = !v.integer;
	else if (e->op == TOKEN_SUB && v.kind == ANDIRON_VALUE_INT)
		ret->integer = (int64_t) - (uint64_t)v.integer;
	else if (e->op == TOKEN_SUB && v.kind == ANDIRON_VALUE_FLOAT)
		ret->number = -v.number;
	else {
		lang_error(l, e->place, NULL, "%s cannot stand before %s", operator_text(e),
			   eval_describe(l, &v));
		return false;
	}
	return true;
}

/* Where b, which is as long, has the key of a's item i; for lists that is i. Most maps that are
 * compared have one order, so that it is looked for from there on. */
static uint64_t counterpart(const struct andiron_value *a, const struct andiron_value *b,
			    uint64_t i)
{
	if (a->kind != ANDIRON_VALUE_MAP)
		return i;
	for (uint64_t n = 0, j = i; n < b->n_items; n++, j = (j + 1) % b->n_items)
		if (str_eq((struct str){a->keys[i].ptr, a->keys[i].len},
			   (struct str){b->keys[j].ptr, b->keys[j].len}))
			return j;
	return b->n_items;
}

bool eval_equal(const struct andiron_value *a, const struct andiron_value *b)
{
	if (is_number(a) && is_number(b) && a->kind != b->kind)
		return number(a) == number(b);
	if (a->kind == ANDIRON_VALUE_FLOAT && b->kind == ANDIRON_VALUE_FLOAT)
		return a->number == b->number;
	if (a->kind != b->kind || a->n_items != b->n_items || a->integer != b->integer)
		return false;
	if (a->kind == ANDIRON_VALUE_STRING)
		return str_eq(text(a), text(b));
	for (uint64_t i = 0; i < a->n_items; i++) {
		uint64_t j = counterpart(a, b, i);

		if (j == b->n_items || !eval_equal(&a->items[i], &b->items[j]))
			return false;
	}
	return true;
}

static bool ordered(uint8_t op, int order)
{
	switch (op) {
	case TOKEN_LT:
		return order < 0;
	case TOKEN_LE:
		return order <= 0;
	case TOKEN_GT:
		return order > 0;
	default:
		return order >= 0;
	}
}

/* As Go's: a negative exponent leaves the base. */
static int64_t power(int64_t base, int64_t exponent)
{
	uint64_t result = 1, square = (uint64_t)base;

	if (exponent < 0)
		return base;
	for (; exponent; exponent >>= 1) {
		if (exponent & 1)
			result *= square;
		square *= square;
	}
	return (int64_t)result;
}

static int64_t integer_result(uint8_t op, int64_t a, int64_t b)
{
	switch (op) {
	case TOKEN_ADD:
		return (int64_t)((uint64_t)a + (uint64_t)b);
	case TOKEN_SUB:
		return (int64_t)((uint64_t)a - (uint64_t)b);
	case TOKEN_MUL:
		return (int64_t)((uint64_t)a * (uint64_t)b);
	case TOKEN_DIV:
		return b == -1 ? (int64_t) - (uint64_t)a : a / b;
	case TOKEN_MOD:
		return b == -1 ? 0 : a % b;
	default:
		return power(a, b);
	}
}

static double float_result(uint8_t op, double a, double b)
{
	switch (op) {
	case TOKEN_ADD:
		return a + b;
	case TOKEN_SUB:
		return a - b;
	case TOKEN_MUL:
		return a * b;
	case TOKEN_DIV:
		return a / b;
	case TOKEN_MOD:
		return fmod(a, b);
	default:
		return pow(a, b);
	}
}

static bool arithmetic(struct lang *l, const struct expr *e, const struct andiron_value side[2],
		       struct andiron_value *ret)
{
	bool integers = side[0].kind == ANDIRON_VALUE_INT && side[1].kind == ANDIRON_VALUE_INT;

	if ((e->op == TOKEN_DIV || e->op == TOKEN_MOD) && number(&side[1]) == 0.0) {
		lang_error(l, e->right->place, NULL, "division by zero");
		return false;
	}
	ret->kind = integers ? ANDIRON_VALUE_INT : ANDIRON_VALUE_FLOAT;
	if (integers)
		ret->integer = integer_result(e->op, side[0].integer, side[1].integer);
	else
		ret->number = float_result(e->op, number(&side[0]), number(&side[1]));
	return true;
}

static bool join(struct lang *l, const struct andiron_value side[2], struct andiron_value *ret)
{
	struct str a = text(&side[0]), b = text(&side[1]);
	char *p = lang_array(l, char, a.n + b.n + 1);

	if (!p)
		return false;
	if (a.n)
		memcpy(p, a.p, a.n);
	if (b.n)
		memcpy(p + a.n, b.p, b.n);
	ret->kind = ANDIRON_VALUE_STRING;
	ret->flags = (side[0].flags | side[1].flags) & ANDIRON_VALUE_SECRET;
	ret->string = (struct andiron_str){p, a.n + b.n};
	return true;
}

static bool logic(uint8_t op, const struct andiron_value *a, const struct andiron_value *b,
		  int64_t *ret)
{
	if (a->kind != ANDIRON_VALUE_BOOL || b->kind != ANDIRON_VALUE_BOOL)
		return false;
	*ret = op == TOKEN_AND ? a->integer && b->integer : a->integer || b->integer;
	return true;
}

static bool relate(uint8_t op, const struct andiron_value *a, const struct andiron_value *b,
		   int64_t *ret)
{
	int order;

	if (a->kind == ANDIRON_VALUE_INT && b->kind == ANDIRON_VALUE_INT)
		order = (a->integer > b->integer) - (a->integer < b->integer);
	else if (is_number(a) && is_number(b))
		order = (number(a) > number(b)) - (number(a) < number(b));
	else if (a->kind == ANDIRON_VALUE_STRING && b->kind == ANDIRON_VALUE_STRING)
		order = str_cmp(text(a), text(b));
	else
		return false;
	*ret = ordered(op, order);
	return true;
}

/* Those that give true or false; false if the operator or the types are other. */
static bool compare(uint8_t op, const struct andiron_value side[2], int64_t *ret)
{
	if (op == TOKEN_AND || op == TOKEN_OR)
		return logic(op, &side[0], &side[1], ret);
	if (op >= TOKEN_LT && op <= TOKEN_GE)
		return relate(op, &side[0], &side[1], ret);
	if (op != TOKEN_EQ && op != TOKEN_NE)
		return false;
	*ret = eval_equal(&side[0], &side[1]) == (op == TOKEN_EQ);
	return true;
}

bool eval_binary(struct lang *l, const struct expr *e, struct andiron_value *ret)
{
	struct andiron_value side[2];
	bool good = eval_open(l, e->left, &side[0]);

	if (!eval_open(l, e->right, &side[1]) || !good)
		return false;
	*ret = eval_value(e, ANDIRON_VALUE_BOOL);
	if (compare(e->op, side, &ret->integer))
		return true;
	if (e->op >= TOKEN_ADD && is_number(&side[0]) && is_number(&side[1]))
		return arithmetic(l, e, side, ret);
	if (e->op == TOKEN_ADD && side[0].kind == ANDIRON_VALUE_STRING &&
	    side[1].kind == ANDIRON_VALUE_STRING)
		return join(l, side, ret);
	lang_error(l, e->place,
		   e->op == TOKEN_ADD && side[0].kind == ANDIRON_VALUE_LIST
			   ? "array.concat joins lists"
			   : NULL,
		   "%s cannot stand between %s and %s", operator_text(e),
		   eval_describe(l, &side[0]), eval_describe(l, &side[1]));
	return false;
}
