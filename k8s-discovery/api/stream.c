/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: what both wires have in common. Contract in stream.h. */
#include "k8s-discovery/api/stream.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "k8s-discovery/objects/proto.h"
#include "k8s-discovery/api/stream-private.h"

#include <errno.h>
#include <stdlib.h>

#define QUOTED 160

struct stream *stream_new(enum kind kind, bool watch, stream_fn fn, void *context)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	*s = (struct stream){.kind = kind, .watch = watch, .fn = fn, .context = context};
	s->part.limit = STREAM_MAX_PART;
	s->skeleton.limit = STREAM_MAX_PART;
	s->version = str_dup(STR(""));
	s->next = str_dup(STR(""));
	if (!s->version || !s->next) {
		stream_free(s);
		return NULL;
	}
	return s;
}

void stream_annotations(struct stream *s, const struct annotations *wanted)
{
	s->object.wanted = wanted;
}

void stream_free(struct stream *s)
{
	if (!s)
		return;
	buf_free(&s->part);
	buf_free(&s->skeleton);
	object_fini(&s->object);
	free(s->version);
	free(s->next);
	free(s);
}

struct str stream_version(const struct stream *s)
{
	return str_of(s->version);
}

struct str stream_next(const struct stream *s)
{
	return str_of(s->next);
}

bool stream_keep(char **text, struct str with)
{
	char *copy = str_dup(with);

	if (!copy)
		return false;
	free(*text);
	*text = copy;
	return true;
}

void stream_printable(struct str s, char *out, size_t n)
{
	size_t used = 0;

	for (size_t i = 0; i < s.n && used + 1 < n; i++)
		out[used++] = s.p[i] >= ' ' && s.p[i] != 0x7f ? s.p[i] : ' ';
	out[used] = '\0';
}

int stream_not_ours(struct str body, struct error *err)
{
	char quote[QUOTED + 1];

	stream_printable(str_trim(str_first(body, QUOTED)), quote, sizeof(quote));
	return error_set(
		err, -EPROTO,
		"the answer is not what a Kubernetes API server sends (is api_server right, "
		"or a proxy between?): it begins with \"%s\"",
		quote);
}

int stream_emit(struct stream *s, int what)
{
	struct stream_event event = {.what = what, .object = &s->object};

	check(s->state != AT_START);
	return s->fn(s->context, &event);
}

/* Which wire it is. White space may stand before JSON. */
static int sniff(struct stream *s, struct str piece, struct error *err)
{
	char first = piece.p[0];

	check(s->state == AT_START && piece.n > 0);
	if (first == '{')
		s->state = s->watch ? AT_LINE : AT_JSON;
	else if (!s->watch && first == 'k')
		s->state = AT_MAGIC;
	else if (s->watch && first == '\0')
		s->state = AT_LENGTH; /* of a frame below 16 MiB */
	else
		return stream_not_ours(piece, err);
	return 0;
}

int stream_feed(struct stream *s, struct str piece, struct error *err)
{
	int r = 0;

	while (piece.n && r == 0) {
		if (s->state == AT_START) {
			while (piece.n && strchr(" \t\r\n", piece.p[0]) && piece.p[0])
				piece = str_skip(piece, 1);
			r = piece.n ? sniff(s, piece, err) : 0;
		} else if (s->state >= AT_LINE) {
			r = stream_json_feed(s, &piece, err);
		} else {
			r = stream_proto_feed(s, &piece, err);
		}
	}
	if (r == -E2BIG)
		return error_set(err, r, "an object is larger than %u MiB", STREAM_MAX_PART >> 20);
	return r;
}

int stream_end(struct stream *s, struct error *err)
{
	bool whole;

	if (s->state == AT_JSON && s->ended)
		return stream_json_end(s, err);
	if (s->watch)
		whole = s->state == AT_START ||
			((s->state == AT_LENGTH || s->state == AT_LINE) && s->part.n == 0);
	else
		whole = s->state == AT_ENVELOPE && s->part.n == 0 && s->seen_list;
	return whole ? 0 : error_set(err, -EPROTO, "the answer ended in the middle");
}

/* The object in an envelope: Unknown's raw. */
static struct str enveloped(struct str body)
{
	return str_starts(body, (struct str){"k8s", 4}) ? proto_bytes(str_skip(body, 4), 2)
							: STR_NULL;
}

void status_text(struct str body, char *out, size_t n)
{
	json_auto_t *root = body.n ? json_loadb(body.p, body.n, 0, NULL) : NULL;
	const char *message = json_string_value(json_object_get(root, "message"));
	struct str text = message ? str_of(message) : proto_bytes(enveloped(body), 3);

	stream_printable(text.n ? text : str_trim(str_first(body, QUOTED)), out, n);
}
