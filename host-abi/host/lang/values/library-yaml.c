/* SPDX-License-Identifier: Apache-2.0 */
/* encoding.from_yaml, from libyaml's events: so depth, items and aliases are bounded while the text
 * is read. An alias shares what it names and is counted as if it were written out; texts that
 * double with each line end at the bound. As in Alloy only the first document is read, a key that
 * is given twice is refused, and << merges. Alloy's keys of another type than text make a value
 * that nothing takes; they are refused here.
 *
 * libandiron has its own library_from_yaml (embed/no-yaml.c), so it does not need libyaml. */
#include "host/lang/values/library-text.h"
#include "host/lang/values/yaml-scalar.h"

#include "base/hash.h"
#include "base/index.h"
#include "base/vec.h"

#include <yaml.h>

#define MAX_BYTES      1048576
#define MAX_DEPTH      100
#define MAX_DIRECTIVES 100    /* %TAG */
#define MAX_ITEMS      100000 /* of all lists and objects */

struct anchor {
	struct str name;
	struct andiron_value value;
	uint32_t n_items, height;
	bool open; /* what it names is being read */
};

struct reader {
	struct lang *l;
	const struct expr *e;
	yaml_parser_t parser;
	yaml_event_t event; /* the current one, of the type NONE before the first */
	VEC(struct anchor) anchors;
	struct index by_name;
	const char *problem;
	size_t line; /* of the problem */
	uint32_t n_items, height; /* of what was read last: 0 is a scalar */
};

struct object {
	VEC(struct andiron_str) keys;
	VEC(struct andiron_value) values, merged;
	struct index by_key;
};

static bool fail(struct reader *r, const char *problem)
{
	if (!r->problem)
		r->line = r->event.start_mark.line + 1;
	r->problem = r->problem ? r->problem : problem;
	return false;
}

static bool fail_at(struct reader *r, const char *problem, size_t line)
{
	fail(r, problem);
	r->line = line;
	return false;
}

static bool no_memory(struct reader *r)
{
	r->l->no_memory = true;
	return false;
}

static bool advance(struct reader *r)
{
	const char *problem;

	yaml_event_delete(&r->event);
	if (yaml_parser_parse(&r->parser, &r->event))
		return true;
	r->event = (yaml_event_t){.type = YAML_NO_EVENT};
	if (r->parser.error == YAML_MEMORY_ERROR)
		return no_memory(r);
	problem = r->parser.problem ? lang_str(r->l, str_of(r->parser.problem)).p : "it is damaged";
	return fail_at(r, problem, r->parser.problem_mark.line + 1);
}

struct sought {
	const struct reader *r;
	const struct object *o;
	struct str name;
};

static bool same_anchor(const void *context, uint32_t position)
{
	const struct sought *s = context;

	return str_eq(s->r->anchors.p[position].name, s->name);
}

static bool same_key(const void *context, uint32_t position)
{
	const struct sought *s = context;
	struct andiron_str key = s->o->keys.p[position];

	return str_eq((struct str){key.ptr, key.len}, s->name);
}

static struct anchor *find_anchor(struct reader *r, struct str name)
{
	struct sought sought = {.r = r, .name = name};
	uint32_t at = index_find(&r->by_name, hash_str(name), same_anchor, &sought);

	return at == INDEX_NONE ? NULL : &r->anchors.p[at];
}

/* Its position, or INDEX_NONE without memory. An anchor's name may be given again. */
static uint32_t open_anchor(struct reader *r, const yaml_char_t *name)
{
	struct str copy = lang_str(r->l, str_of((const char *)name));
	struct anchor *found = copy.p ? find_anchor(r, copy) : NULL;

	if (found) {
		found->open = true;
		return (uint32_t)(found - r->anchors.p);
	}
	if (!copy.p || !vec_push(&r->anchors, ((struct anchor){.name = copy, .open = true})) ||
	    index_add(&r->by_name, hash_str(copy), (uint32_t)r->anchors.n - 1) < 0) {
		no_memory(r);
		return INDEX_NONE;
	}
	return (uint32_t)r->anchors.n - 1;
}

/* `n` more items. */
static bool count(struct reader *r, uint32_t n)
{
	r->n_items += n;
	return r->n_items <= MAX_ITEMS ||
	       fail(r, "it holds more than 100000 items, with its aliases written out");
}

static bool read_alias(struct reader *r, unsigned int depth, struct andiron_value *ret)
{
	const struct anchor *found =
		find_anchor(r, str_of((const char *)r->event.data.alias.anchor));

	if (!found)
		return fail(r, "an alias names what does not stand before it");
	if (found->open)
		return fail(r, "an alias stands within what it names");
	if (depth + found->height > MAX_DEPTH)
		return fail(r, "it is nested more than 100 levels deep");
	r->height = found->height;
	*ret = found->value;
	return count(r, found->n_items) && advance(r);
}

static bool read_scalar(struct reader *r, struct andiron_value *ret)
{
	struct yaml_scalar scalar = {
		.text = {(const char *)r->event.data.scalar.value, r->event.data.scalar.length},
		.tag = (const char *)r->event.data.scalar.tag,
		.plain = r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE,
	};
	const char *problem;

	r->height = 0;
	if (!yaml_scalar_value(r->l, r->e, &scalar, ret, &problem))
		return problem ? fail(r, problem) : no_memory(r);
	return advance(r);
}

static bool read_value(struct reader *r, unsigned int depth, struct andiron_value *ret);

static bool give_items(struct reader *r, const struct andiron_value *items, size_t n,
		       struct andiron_value *ret)
{
	struct andiron_value *copy = lang_array(r->l, struct andiron_value, n);

	if (!copy)
		return false;
	if (n)
		memcpy(copy, items, n * sizeof(*copy));
	ret->items = copy;
	ret->n_items = n;
	return true;
}

static bool read_list(struct reader *r, unsigned int depth, struct andiron_value *ret)
{
	VEC(struct andiron_value) items = {0};
	struct andiron_value item;
	uint32_t height = 0;
	bool good = advance(r);

	while (good && r->event.type != YAML_SEQUENCE_END_EVENT) {
		good = count(r, 1) && read_value(r, depth + 1, &item);
		height = r->height > height ? r->height : height;
		if (good && !vec_push(&items, item))
			good = no_memory(r);
	}
	*ret = eval_value(r->e, ANDIRON_VALUE_LIST);
	good = good && give_items(r, items.p, items.n, ret) && advance(r);
	r->height = height + 1;
	vec_free(&items);
	return good;
}

static uint32_t find_key(const struct object *o, struct str key)
{
	struct sought sought = {.o = o, .name = key};

	return index_find(&o->by_key, hash_str(key), same_key, &sought);
}

static bool add_member(struct reader *r, struct object *o, struct andiron_str key,
		       const struct andiron_value *value)
{
	uint64_t hash = hash_str((struct str){key.ptr, key.len});

	if (!vec_push(&o->keys, key) || !vec_push(&o->values, *value) ||
	    index_add(&o->by_key, hash, (uint32_t)o->keys.n - 1) < 0)
		return no_memory(r);
	return true;
}

/* What << names: an object, or a list of them. It counts behind the object's own members. */
static bool read_merged(struct reader *r, unsigned int depth, struct object *o)
{
	size_t line = r->event.start_mark.line + 1;
	struct andiron_value value;
	bool good;

	if (!read_value(r, depth + 1, &value))
		return false;
	if (value.kind == ANDIRON_VALUE_MAP)
		return vec_push(&o->merged, value) || no_memory(r);
	good = value.kind == ANDIRON_VALUE_LIST;
	for (uint64_t i = 0; good && i < value.n_items; i++) {
		good = value.items[i].kind == ANDIRON_VALUE_MAP;
		if (good && !vec_push(&o->merged, value.items[i]))
			return no_memory(r);
	}
	return good || fail_at(r, "<< merges objects only", line);
}

static bool is_merge(const yaml_event_t *e)
{
	return e->type == YAML_SCALAR_EVENT && e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       str_is((struct str){(const char *)e->data.scalar.value, e->data.scalar.length},
		      "<<");
}

static bool read_member(struct reader *r, unsigned int depth, struct object *o)
{
	struct andiron_value key, value;
	size_t line = r->event.start_mark.line + 1;

	if (is_merge(&r->event))
		return advance(r) && read_merged(r, depth, o);
	if (!read_value(r, depth + 1, &key))
		return false;
	if (key.kind == ANDIRON_VALUE_LIST || key.kind == ANDIRON_VALUE_MAP)
		return fail_at(r, "a key is a text, not a list or an object", line);
	if (key.kind != ANDIRON_VALUE_STRING)
		return fail_at(r, "a key is a text; a number, true or null needs quotes", line);
	if (find_key(o, (struct str){key.string.ptr, key.string.len}) != INDEX_NONE)
		return fail_at(r, "a key is given twice in one object", line);
	return read_value(r, depth + 1, &value) && add_member(r, o, key.string, &value);
}

static bool add_merged(struct reader *r, struct object *o)
{
	for (size_t i = 0; i < o->merged.n; i++) {
		const struct andiron_value *map = &o->merged.p[i];

		for (uint64_t k = 0; k < map->n_items; k++) {
			if (find_key(o, (struct str){map->keys[k].ptr, map->keys[k].len}) !=
			    INDEX_NONE)
				continue;
			if (!count(r, 1) || !add_member(r, o, map->keys[k], &map->items[k]))
				return false;
		}
	}
	return true;
}

static bool read_object(struct reader *r, unsigned int depth, struct andiron_value *ret)
{
	struct object o = {.by_key = INDEX_NULL};
	struct andiron_str *keys = NULL;
	uint32_t height = 0;
	bool good = advance(r);

	while (good && r->event.type != YAML_MAPPING_END_EVENT) {
		good = count(r, 1) && read_member(r, depth, &o);
		height = r->height > height ? r->height : height;
	}
	good = good && add_merged(r, &o);
	keys = good ? lang_array(r->l, struct andiron_str, o.keys.n) : NULL;
	if (keys && o.keys.n)
		memcpy(keys, o.keys.p, o.keys.n * sizeof(*keys));
	*ret = eval_value(r->e, ANDIRON_VALUE_MAP);
	ret->keys = keys;
	good = keys && give_items(r, o.values.p, o.values.n, ret) && advance(r);
	r->height = height + 1;
	vec_free(&o.keys);
	vec_free(&o.values);
	vec_free(&o.merged);
	index_free(&o.by_key);
	return good;
}

static const yaml_char_t *anchor_of(const yaml_event_t *e)
{
	if (e->type == YAML_SCALAR_EVENT)
		return e->data.scalar.anchor;
	return e->type == YAML_SEQUENCE_START_EVENT ? e->data.sequence_start.anchor
						    : e->data.mapping_start.anchor;
}

/* The event that begins a value is the current one; then the one behind it. */
static bool read_value(struct reader *r, unsigned int depth, struct andiron_value *ret)
{
	uint32_t before = r->n_items, at = INDEX_NONE;
	bool good;

	if (depth > MAX_DEPTH)
		return fail(r, "it is nested more than 100 levels deep");
	if (r->event.type == YAML_ALIAS_EVENT)
		return read_alias(r, depth, ret);
	if (anchor_of(&r->event)) {
		at = open_anchor(r, anchor_of(&r->event));
		if (at == INDEX_NONE)
			return false;
	}
	if (r->event.type == YAML_SCALAR_EVENT)
		good = read_scalar(r, ret);
	else if (r->event.type == YAML_SEQUENCE_START_EVENT)
		good = read_list(r, depth, ret);
	else
		good = read_object(r, depth, ret);
	if (at != INDEX_NONE && good) {
		struct anchor *a = &r->anchors.p[at];

		a->value = *ret;
		a->n_items = r->n_items - before;
		a->height = r->height;
		a->open = false;
	}
	return good;
}

/* The first document; what stands behind it is not looked at. */
static bool read_document(struct reader *r, struct andiron_value *ret)
{
	*ret = eval_value(r->e, ANDIRON_VALUE_NULL);
	if (!advance(r) || !advance(r)) /* the stream begins, and a document or the end */
		return false;
	if (r->event.type == YAML_STREAM_END_EVENT)
		return true;
	return advance(r) && read_value(r, 0, ret);
}

/* Whether more directives may stand there than anybody writes: libyaml compares each with all
 * before it. Each begins a line, of which the ends are all that libyaml knows: \n, \r, and the last
 * bytes of NEL, LS and PS; the last one is of a byte order mark. */
static bool has_many_directives(struct str text)
{
	static const char before[] = "\n\r\x85\xa8\xa9\xbf";
	size_t n = 0;

	for (size_t i = 0; i < text.n; i++)
		n += text.p[i] == '%' &&
		     (i == 0 || memchr(before, text.p[i - 1], sizeof(before) - 1));
	return n > MAX_DIRECTIVES;
}

LIBRARY_FUNCTION(from_yaml)
{
	struct reader r = {.l = l, .e = e, .by_name = INDEX_NULL};
	struct str text;
	bool good;

	if (!library_open_strings(l, e, args, 1, &text))
		return false;
	if (text.n > MAX_BYTES) {
		lang_error(l, library_argument(e, 0)->place, NULL,
			   "this YAML is %zu bytes long; at most %d are read", text.n, MAX_BYTES);
		return false;
	}
	if (has_many_directives(text)) {
		lang_error(l, library_argument(e, 0)->place, NULL,
			   "more than %d lines of this YAML begin with %%, as its directives do",
			   MAX_DIRECTIVES);
		return false;
	}
	if (!yaml_parser_initialize(&r.parser))
		return no_memory(&r);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text.p ? text.p : ""),
				     text.n);
	good = read_document(&r, ret);
	if (!good && !l->no_memory)
		lang_error(l, library_argument(e, 0)->place, NULL,
			   "this YAML cannot be read: %s (line %zu)", r.problem, r.line);
	yaml_event_delete(&r.event);
	yaml_parser_delete(&r.parser);
	vec_free(&r.anchors);
	index_free(&r.by_name);
	return good;
}
