/* SPDX-License-Identifier: Apache-2.0 */
/* json_path, and how a path is followed: depth first, in the document's order; behind .. what is
 * within a value comes before the value's own. A path of many steps may look at everything again
 * and again, so what it looks at is counted and bounded. */
#include "host/lang/values/json-path.h"
#include "host/lang/values/library-text.h"

#include "base/vec.h"

#define MAX_WORK 10000000 /* values looked at; a tenth of a second */

struct walk {
	struct lang *l;
	const struct andiron_value *document;
	VEC(const struct andiron_value *) found;
	uint64_t work;
};

static bool follow(struct walk *w, const struct json_path *step, const struct andiron_value *v);

static bool is_container(const struct andiron_value *v)
{
	return v->kind == ANDIRON_VALUE_LIST || v->kind == ANDIRON_VALUE_MAP;
}

/* False when it was enough. */
static bool spend(struct walk *w, uint64_t work)
{
	w->work += work;
	return w->work <= MAX_WORK;
}

/* What a NAME or an INDEX leads to, or NULL. */
static const struct andiron_value *child(struct walk *w, const struct json_path *step,
					 const struct andiron_value *v)
{
	uint64_t at = (uint64_t)step->from;

	if (step->kind == PATH_NAME) {
		if (v->kind != ANDIRON_VALUE_MAP || !spend(w, v->n_items))
			return NULL;
		return eval_member(v, step->name);
	}
	if (v->kind != ANDIRON_VALUE_LIST)
		return NULL;
	if (step->from < 0)
		at += v->n_items;
	return at < v->n_items ? &v->items[at] : NULL;
}

/* NULL where nothing is. */
static const struct andiron_value *operand(struct walk *w, const struct json_path_operand *o,
					   const struct andiron_value *item)
{
	const struct andiron_value *v = o->from == OPERAND_ITEM ? item : w->document;

	if (o->from == OPERAND_VALUE)
		return &o->value;
	for (const struct json_path *step = o->path; step && v; step = step->next)
		v = child(w, step, v);
	return v;
}

/* A list or an object is never equal to anything. Two absent values are equal. */
static bool equal(const struct andiron_value *a, const struct andiron_value *b)
{
	if (!a || !b)
		return a == b;
	return !is_container(a) && !is_container(b) && eval_equal(a, b);
}

/* Numbers among themselves, and texts; others are neither less nor more. */
static bool ordered(const struct andiron_value *a, const struct andiron_value *b, int *ret)
{
	double x, y;

	if (!a || !b)
		return false;
	if (a->kind == ANDIRON_VALUE_STRING && b->kind == ANDIRON_VALUE_STRING) {
		*ret = str_cmp((struct str){a->string.ptr, a->string.len},
			       (struct str){b->string.ptr, b->string.len});
		return true;
	}
	if (a->kind == ANDIRON_VALUE_INT && b->kind == ANDIRON_VALUE_INT) {
		*ret = (a->integer > b->integer) - (a->integer < b->integer);
		return true;
	}
	if ((a->kind != ANDIRON_VALUE_INT && a->kind != ANDIRON_VALUE_FLOAT) ||
	    (b->kind != ANDIRON_VALUE_INT && b->kind != ANDIRON_VALUE_FLOAT))
		return false;
	x = a->kind == ANDIRON_VALUE_INT ? (double)a->integer : a->number;
	y = b->kind == ANDIRON_VALUE_INT ? (double)b->integer : b->number;
	*ret = (x > y) - (x < y);
	return true;
}

static bool compare(struct walk *w, const struct json_path_condition *c,
		    const struct andiron_value *item)
{
	const struct andiron_value *a = operand(w, &c->a, item);
	const struct andiron_value *b = operand(w, &c->b, item);
	int order;

	if (c->kind == CONDITION_EQ || c->kind == CONDITION_NE)
		return equal(a, b) == (c->kind == CONDITION_EQ);
	if (!ordered(a, b, &order))
		return false;
	switch (c->kind) {
	case CONDITION_LT:
		return order < 0;
	case CONDITION_LE:
		return order <= 0;
	case CONDITION_GT:
		return order > 0;
	default:
		return order >= 0;
	}
}

/* The parser bounds the depth. */
static bool holds(struct walk *w, const struct json_path_condition *c,
		  const struct andiron_value *item)
{
	if (!spend(w, 1))
		return false;
	switch (c->kind) {
	case CONDITION_AND:
		return holds(w, c->left, item) && holds(w, c->right, item);
	case CONDITION_OR:
		return holds(w, c->left, item) || holds(w, c->right, item);
	case CONDITION_NOT:
		return !holds(w, c->left, item);
	case CONDITION_EXISTS:
		return operand(w, &c->a, item);
	default:
		return compare(w, c, item);
	}
}

static bool follow_each(struct walk *w, const struct json_path *step,
			const struct json_path *then, const struct andiron_value *v)
{
	for (uint64_t i = 0; is_container(v) && i < v->n_items; i++) {
		if (step->kind == PATH_FILTER && !holds(w, step->condition, &v->items[i]))
			continue;
		if (!follow(w, then, &v->items[i]))
			return false;
	}
	return spend(w, 0);
}

/* As Alloy's: the end is as far as the list goes also where one goes backwards, so that [::-1]
 * finds nothing. */
static bool follow_slice(struct walk *w, const struct json_path *step,
			 const struct andiron_value *v)
{
	int64_t n = (int64_t)v->n_items, from = step->from, to = step->to;

	if (v->kind != ANDIRON_VALUE_LIST || step->by == 0)
		return true;
	if (from < 0)
		from = from + n < 0 ? 0 : from + n;
	if (to < 0)
		to = to + n < -1 ? -1 : to + n;
	if (to > n)
		to = n;
	for (int64_t i = from; i < n && (step->by > 0 ? i < to : i > to); i += step->by) {
		if (i < 0)
			return true;
		if (!follow(w, step->next, &v->items[i]))
			return false;
	}
	return true;
}

static bool follow_union(struct walk *w, const struct json_path *step,
			 const struct andiron_value *v)
{
	for (const struct json_path *one = step->of; one; one = one->next) {
		const struct andiron_value *found = child(w, one, v);

		if (!spend(w, 1) || (found && !follow(w, step->next, found)))
			return false;
	}
	return true;
}

/* False when it was too much, or memory is short. It calls itself where a path forks: as deep as
 * the document and the path are, and both are bounded. */
static bool follow(struct walk *w, const struct json_path *step, const struct andiron_value *v)
{
	for (; step; step = step->next) {
		if (!spend(w, 1))
			return false;
		switch (step->kind) {
		case PATH_SELF:
			break;
		case PATH_NAME:
		case PATH_INDEX:
			v = child(w, step, v);
			if (!v)
				return spend(w, 0);
			break;
		case PATH_SLICE:
			return follow_slice(w, step, v);
		case PATH_UNION:
			return follow_union(w, step, v);
		case PATH_DEEP:
			if (!follow_each(w, step, step, v))
				return false;
			break;
		default:
			return follow_each(w, step, step->next, v);
		}
	}
	if (vec_push(&w->found, v))
		return spend(w, 1);
	w->l->no_memory = true;
	return false;
}

bool json_path_find(struct lang *l, const struct expr *e, const struct json_path *path,
		    const struct andiron_value *document, struct andiron_value *ret)
{
	struct walk w = {.l = l, .document = document};
	bool good = !path || follow(&w, path, document);
	struct andiron_value *items = good ? lang_array(l, struct andiron_value, w.found.n) : NULL;

	if (!good && !l->no_memory)
		lang_error(l, library_argument(e, 1)->place,
			   "fewer .. and * in the path make it look at less",
			   "this path looks at more than %d values of the JSON", MAX_WORK);
	*ret = eval_value(e, ANDIRON_VALUE_LIST);
	for (size_t i = 0; items && i < w.found.n; i++)
		items[i] = *w.found.p[i];
	ret->items = items;
	ret->n_items = items ? w.found.n : 0;
	vec_free(&w.found);
	return items;
}

LIBRARY_FUNCTION(json_path)
{
	const struct json_path *path;
	struct andiron_value document = eval_value(e, ANDIRON_VALUE_NULL);
	struct str texts[2];

	if (!library_open_strings(l, e, args, 2, texts) || !json_path_parse(l, e, texts[1], &path))
		return false;
	/* As in Alloy, an empty text has nothing, and is no error. */
	if (!str_trim(texts[0]).n)
		path = NULL;
	else if (!library_json(l, e, texts[0], &document))
		return false;
	return json_path_find(l, e, path, &document, ret);
}
