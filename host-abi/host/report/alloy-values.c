/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in alloy-values.h. What is secret is so by the flag of its value, which a value keeps
 * from where it was read; a table of options is asked for types only. */
#include "host/report/alloy-values.h"

#include "abi/value.h"
#include "base/clock.h"
#include "base/json.h"
#include "host/lang/supplied.h"
#include "host/state.h"

#include <math.h>
#include <string.h>

#define SECRET STR("(secret)")

static void put_value(struct buf *out, const struct andiron_value *v, uint32_t type);

/* Nothing stands yet in the list or object that is being written. */
static bool empty(const struct buf *out)
{
	return out->n && out->p[out->n - 1] == '[';
}

static void begin(struct buf *out, const char *type)
{
	buf_printf(out, "{\"type\":\"%s\",\"value\":", type);
}

static void put_text(struct buf *out, const char *type, struct str text)
{
	begin(out, type);
	json_put_str(out, text);
	buf_putc(out, '}');
}

static size_t authority_end(struct str rest)
{
	size_t n = 0;

	while (n < rest.n && !memchr("/?#", rest.p[n], 3))
		n++;
	return n;
}

/* Of "scheme://user:password@host" the password is nobody's business; nor is a user alone, which is
 * a token. The last @ counts, as for who connects (http/url.c). */
static void put_string(struct buf *out, struct str text)
{
	size_t scheme = str_search(text, STR("://"));
	struct str rest = str_skip(text, scheme < text.n ? scheme + 3 : text.n);
	struct str place = str_first(rest, authority_end(rest));
	size_t at = str_rfind(place, '@'), colon = str_find(place, ':');
	struct buf hidden = BUF_NULL;

	if (at >= place.n) {
		put_text(out, "string", text);
		return;
	}
	buf_str_append(&hidden,
		       str_first(text, (size_t)(rest.p - text.p) + (colon < at ? colon + 1 : 0)));
	buf_str_append(&hidden, SECRET);
	buf_str_append(&hidden, str_skip(rest, at));
	put_text(out, "string", buf_str(&hidden));
	out->failed = out->failed || hidden.failed;
	buf_free(&hidden);
}

static void put_number(struct buf *out, double number)
{
	begin(out, "number");
	if (isfinite(number))
		buf_printf(out, "%.17g}", number);
	else
		buf_str_append(out, STR("null}"));
}

static void put_integer(struct buf *out, int64_t integer, uint32_t type)
{
	char text[64];

	if (type == ANDIRON_TYPE_DURATION) {
		put_text(out, "string", str_of(duration_format(integer, text, sizeof(text))));
		return;
	}
	begin(out, "number");
	if (type == ANDIRON_TYPE_UINT)
		buf_printf(out, "%ju}", (uintmax_t)integer);
	else
		buf_printf(out, "%jd}", (intmax_t)integer);
}

static void put_list(struct buf *out, const struct andiron_value *v)
{
	begin(out, "array");
	buf_putc(out, '[');
	for (uint64_t i = 0; i < v->n_items; i++) {
		buf_str_append(out, i ? STR(",") : STR(""));
		put_value(out, &v->items[i], 0);
	}
	buf_str_append(out, STR("]}"));
}

/* A label of targets in which passwords stand, of every user. */
static bool is_hidden(struct str name)
{
	return str_is(name, "__meta_process_commandline");
}

static void put_map(struct buf *out, const struct andiron_value *v)
{
	begin(out, "object");
	buf_putc(out, '[');
	for (uint64_t i = 0; i < v->n_items; i++) {
		buf_str_append(out, i ? STR(",{\"key\":") : STR("{\"key\":"));
		json_put_str(out, abi_str(v->keys[i]));
		buf_str_append(out, STR(",\"value\":"));
		if (is_hidden(abi_str(v->keys[i])))
			put_text(out, "capsule", SECRET);
		else
			put_value(out, &v->items[i], 0);
		buf_putc(out, '}');
	}
	buf_str_append(out, STR("]}"));
}

static void put_value(struct buf *out, const struct andiron_value *v, uint32_t type)
{
	if (v->flags & ANDIRON_VALUE_SECRET)
		put_text(out, "capsule", SECRET);
	else if (v->kind == ANDIRON_VALUE_BOOL)
		buf_printf(out, "{\"type\":\"bool\",\"value\":%s}", v->integer ? "true" : "false");
	else if (v->kind == ANDIRON_VALUE_INT)
		put_integer(out, v->integer, type);
	else if (v->kind == ANDIRON_VALUE_FLOAT)
		put_number(out, v->number);
	else if (v->kind == ANDIRON_VALUE_STRING)
		put_string(out, abi_str(v->string));
	else if (v->kind == ANDIRON_VALUE_LIST)
		put_list(out, v);
	else if (v->kind == ANDIRON_VALUE_MAP)
		put_map(out, v);
	else if (v->kind == ANDIRON_VALUE_CAPSULE)
		put_text(out, "capsule", abi_str(v->string));
	else
		buf_str_append(out, STR("{\"type\":\"null\",\"value\":null}"));
}

static void put_name(struct buf *out, struct str name, const char *type)
{
	buf_str_append(out,
		       buf_str(out).p[out->n - 1] == '[' ? STR("{\"name\":") : STR(",{\"name\":"));
	json_put_str(out, name);
	buf_printf(out, ",\"type\":\"%s\"", type);
}

static void put_block(struct buf *out, struct str name, const struct andiron_value *map,
		      const struct andiron_option *o)
{
	const struct andiron_value *label = o->flags & ANDIRON_OPTION_LABELLED ? value_get(map, "")
									       : NULL;

	put_name(out, name, "block");
	if (label) {
		buf_str_append(out, STR(",\"label\":"));
		json_put_str(out, abi_str(label->string));
	}
	buf_str_append(out, STR(",\"body\":"));
	alloy_put_body(out, map, o->block);
	buf_putc(out, '}');
}

static const struct andiron_option *option_of(const struct andiron_options *options,
					      struct str name)
{
	for (uint32_t i = 0; options && i < options->count; i++) {
		const void *at = (const char *)options->items + (size_t)i * options->stride;
		const struct andiron_option *o = at;

		if (str_is(name, o->name))
			return o;
	}
	return NULL;
}

static void put_member(struct buf *out, struct str name, const struct andiron_value *v,
		       const struct andiron_option *o)
{
	bool block = o && o->type == ANDIRON_TYPE_BLOCK;

	if (block && v->kind == ANDIRON_VALUE_MAP) {
		put_block(out, name, v, o);
	} else if (block && v->kind == ANDIRON_VALUE_LIST) {
		for (uint64_t i = 0; i < v->n_items; i++)
			put_block(out, name, &v->items[i], o);
	} else {
		put_name(out, name, "attr");
		buf_str_append(out, STR(",\"value\":"));
		put_value(out, v, o ? o->type : 0);
		buf_putc(out, '}');
	}
}

void alloy_put_body(struct buf *out, const struct andiron_value *map,
		    const struct andiron_options *options)
{
	buf_putc(out, '[');
	for (uint64_t i = 0; map && !out->failed && i < map->n_items; i++) {
		struct str name = abi_str(map->keys[i]);

		if (name.n && !(map->items[i].flags & ANDIRON_VALUE_DEFAULTED))
			put_member(out, name, &map->items[i], option_of(options, name));
	}
	buf_putc(out, ']');
}

static void put_row(void *context, int change, struct target_row *row)
{
	struct buf *out = context;

	buf_str_append(out, empty(out) ? STR("") : STR(","));
	begin(out, "object");
	buf_putc(out, '[');
	for (uint32_t i = 0; i < row->n_labels; i++) {
		buf_str_append(out, i ? STR(",{\"key\":") : STR("{\"key\":"));
		json_put_str(out, row->labels[i].name);
		buf_str_append(out, STR(",\"value\":"));
		if (is_hidden(row->labels[i].name))
			put_text(out, "capsule", SECRET);
		else
			put_string(out, row->labels[i].value);
		buf_putc(out, '}');
	}
	buf_str_append(out, STR("]}"));
}

static void put_targets(struct buf *out, struct export *e)
{
	export_look(e);
	pthread_mutex_lock(&e->lock);
	if (e->whole) {
		put_name(out, str_of(e->name), "attr");
		buf_str_append(out, STR(",\"value\":{\"type\":\"array\",\"value\":["));
		target_table_each(e->table, put_row, out);
		buf_str_append(out, STR("]}}"));
	}
	pthread_mutex_unlock(&e->lock);
}

/* What it has supplied last. */
static void put_supplied(struct buf *out, const struct instance *i, const char *name)
{
	const struct andiron_value *value = supplied_get(i->host->supplied, i->name, name);

	/* A list is of targets, which whoever makes them shows. */
	if (!value || value->kind == ANDIRON_VALUE_LIST)
		return;
	put_name(out, str_of(name), "attr");
	buf_str_append(out, STR(",\"value\":"));
	put_value(out, value, 0);
	buf_putc(out, '}');
}

void alloy_put_exports(struct buf *out, struct instance *i)
{
	buf_putc(out, '[');
	for (uint64_t n = 0; n < i->component->n_exports; n++)
		if (i->component->exports[n].type == ANDIRON_EXPORT_VALUE)
			put_supplied(out, i, i->component->exports[n].name);
	for (size_t n = 0; n < i->n_exports; n++)
		put_targets(out, &i->exports[n]);
	if (i->component->batch) {
		put_name(out, STR("receiver"), "attr");
		buf_str_append(out, STR(",\"value\":"));
		put_text(out, "capsule", STR("receiver"));
		buf_putc(out, '}');
	}
	buf_putc(out, ']');
}
