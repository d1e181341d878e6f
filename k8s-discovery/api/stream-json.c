/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and watches in JSON, for servers and proxies that speak nothing else.
 *
 * A list's items are cut out by a scanner that knows strings and nesting, and parsed one by one;
 * what is left (each item replaced by 0) is parsed at the end. An item is an object that stands in
 * a list of the outermost object. */
#include "k8s-discovery/api/stream-private.h"

#include <errno.h>

static struct str text_at(const json_t *object, const char *name)
{
	const json_t *s = json_object_get(object, name);

	return json_is_string(s) ? (struct str){json_string_value(s), json_string_length(s)}
				 : STR_NULL;
}

/* Whether it is JSON that jansson does not read: a NUL in a key, numbers and depths beyond its
 * limits. What it says where memory is short ("invalid token", or nothing) is none of that: for
 * such an object to be skipped would take it away. */
static bool is_beyond(const json_error_t *why)
{
	enum json_error_code code = json_error_code(why);

	return code == json_error_null_byte_in_key || code == json_error_null_character ||
	       code == json_error_invalid_utf8 || code == json_error_stack_overflow ||
	       code == json_error_numeric_overflow;
}

static int skip(struct stream *s)
{
	return s->fn(s->context, &(struct stream_event){.what = STREAM_SKIPPED});
}

static int take_object(struct stream *s, const json_t *json, int what, struct str source,
		       struct error *err)
{
	int r = object_read_json(s->kind, json, &s->object);

	if (r == -EPROTO || (r == 0 && what != STREAM_BOOKMARK && s->object.name.n == 0))
		return stream_not_ours(source, err);
	return r < 0 ? r : stream_emit(s, what);
}

static int take_status(struct stream *s, const json_t *status)
{
	struct stream_event event = {.what = STREAM_FAILED};
	struct str message = text_at(status, "message");
	char text[256];

	stream_printable(message.n ? message : STR("no message"), text, sizeof(text));
	event.code = (int)json_integer_value(json_object_get(status, "code"));
	event.text = text;
	return s->fn(s->context, &event);
}

static int take_line(struct stream *s, struct str line, struct error *err)
{
	json_auto_t *root = NULL;
	const json_t *object;
	json_error_t why;
	struct str type;

	if (str_trim(line).n == 0)
		return 0;
	root = json_loadb(line.p, line.n, JSON_ALLOW_NUL, &why);
	if (!root && is_beyond(&why))
		return skip(s);
	object = json_object_get(root, "object");
	type = text_at(root, "type");
	if (str_is(type, "ADDED") || str_is(type, "MODIFIED"))
		return take_object(s, object, STREAM_SET, line, err);
	if (str_is(type, "DELETED"))
		return take_object(s, object, STREAM_DELETED, line, err);
	if (str_is(type, "BOOKMARK"))
		return take_object(s, object, STREAM_BOOKMARK, line, err);
	if (str_is(type, "ERROR"))
		return take_status(s, object);
	return stream_not_ours(line, err);
}

static int feed_line(struct stream *s, struct str *piece, struct error *err)
{
	size_t end = str_find(*piece, '\n');
	struct str line = str_first(*piece, end);
	bool whole = end < piece->n;
	int r = 0;

	*piece = str_skip(*piece, end + 1);
	if (whole && s->part.n == 0)
		return take_line(s, line, err);
	r = buf_str_append(&s->part, line);
	if (r < 0 || !whole)
		return r;
	r = take_line(s, buf_str(&s->part), err);
	buf_clear(&s->part);
	return r;
}

static int take_item(struct stream *s, struct error *err)
{
	json_error_t why;
	json_auto_t *item = json_loadb(s->part.p, s->part.n, JSON_ALLOW_NUL, &why);
	int r;

	if (!item && is_beyond(&why))
		r = skip(s);
	else
		r = take_object(s, item, STREAM_SET, buf_str(&s->part), err);
	buf_clear(&s->part);
	if (r == 0)
		r = buf_putc(&s->skeleton, '0');
	return r;
}

/* Keeps the scanner's place; returns whether an item begins (1) or ends (-1) with this byte. */
static int scan(struct stream *s, char c)
{
	if (s->in_string) {
		if (s->escaped)
			s->escaped = false;
		else if (c == '\\')
			s->escaped = true;
		else if (c == '"')
			s->in_string = false;
		return 0;
	}
	switch (c) {
	case '"':
		s->in_string = true;
		return 0;
	case '{':
	case '[':
		s->depth++;
		if (s->depth == 2)
			s->in_items = c == '[';
		return c == '{' && s->depth == 3 && s->in_items && s->state == AT_JSON;
	case '}':
	case ']':
		s->depth--;
		s->ended = s->depth == 0;
		return s->depth == 2 && s->state == AT_JSON_ITEM ? -1 : 0;
	default:
		return 0;
	}
}

/* Scans to where an item begins or ends, or to the end of the piece. */
static int feed_list(struct stream *s, struct str *piece, struct error *err)
{
	struct buf *to = s->state == AT_JSON ? &s->skeleton : &s->part;
	size_t i = 0;
	int edge = 0, r;

	while (i < piece->n && !edge && !s->ended)
		edge = scan(s, piece->p[i++]);
	if (edge == 1)
		i--;
	r = buf_append(to, piece->p, i);
	*piece = s->ended ? STR_NULL : str_skip(*piece, i);
	if (r < 0 || !edge)
		return r;
	if (edge < 0) {
		s->state = AT_JSON;
		return take_item(s, err);
	}
	s->state = AT_JSON_ITEM;
	r = buf_putc(&s->part, '{');
	*piece = str_skip(*piece, 1);
	return r;
}

int stream_json_feed(struct stream *s, struct str *piece, struct error *err)
{
	return s->state == AT_LINE ? feed_line(s, piece, err) : feed_list(s, piece, err);
}

int stream_json_end(struct stream *s, struct error *err)
{
	struct str skeleton = buf_str(&s->skeleton);
	json_auto_t *root = json_loadb(skeleton.p, skeleton.n, 0, NULL);
	const json_t *items = json_object_get(root, "items");
	const json_t *metadata = json_object_get(root, "metadata");

	/* An empty list is "items": null with some servers. */
	if (!json_is_object(metadata) || (!json_is_array(items) && !json_is_null(items)))
		return stream_not_ours(skeleton, err);
	return stream_keep(&s->version, text_at(metadata, "resourceVersion")) &&
			       stream_keep(&s->next, text_at(metadata, "continue"))
		       ? 0
		       : -ENOMEM;
}
