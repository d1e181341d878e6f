/* SPDX-License-Identifier: Apache-2.0 */
/* Lines to events. Contract in events.h. */
#include "docker/events.h"

#include "docker/lists.h"

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

static bool read_line(struct str line, void (*tell)(void *context, const struct event *event),
		      void *context)
{
	json_t *json = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
	const json_t *actor = json_object_get(json, "Actor");
	bool good = json_is_object(json);
	struct event event;

	if (good) {
		event = (struct event){
			list_member(json, "Type"), list_member(json, "Action"),
			list_member(actor, "ID"),
			list_member(json_object_get(actor, "Attributes"), "container")};
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
