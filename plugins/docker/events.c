/* SPDX-License-Identifier: Apache-2.0 */
/* Lines to events. Contract in events.h. */
#include "docker/events.h"

#include <jansson.h>

#define MAX_LINE (1u << 20) /* an event carries all labels of its container */

void events_fini(struct events *e)
{
	buf_free(&e->line);
}

void events_begin(struct events *e)
{
	buf_clear(&e->line);
	e->line.limit = MAX_LINE;
}

static struct str text_of(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	return json_is_string(value)
		       ? (struct str){json_string_value(value), json_string_length(value)}
		       : STR_NULL;
}

static bool read_line(struct str line, void (*tell)(void *context, const struct event *event),
		      void *context)
{
	json_t *json = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
	const json_t *actor = json_object_get(json, "Actor");
	bool good = json_is_object(json);
	struct event event;

	if (good) {
		event = (struct event){
			text_of(json, "Type"), text_of(json, "Action"), text_of(actor, "ID"),
			text_of(json_object_get(actor, "Attributes"), "container")};
		tell(context, &event);
	}
	json_decref(json);
	return good;
}

bool events_feed(struct events *e, struct str piece,
		 void (*tell)(void *context, const struct event *event), void *context)
{
	while (piece.n) {
		size_t end = str_find(piece, '\n');
		struct str line;

		if (buf_append(&e->line, piece.p, end) < 0)
			return false;
		if (end == piece.n)
			return true;
		piece = str_skip(piece, end + 1);
		line = str_trim(buf_str(&e->line));
		if (line.n && !read_line(line, tell, context))
			return false;
		buf_clear(&e->line);
	}
	return true;
}
