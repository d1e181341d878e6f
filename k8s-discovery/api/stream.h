/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a list or of a watch, read as it arrives, in pieces of any
 * size: an object is looked at when its last byte is there, in place where a
 * piece holds all of it, and then forgotten. So a list of any length needs
 * the memory of its largest object.
 *
 * Two wires, told apart by the first byte:
 *   protobuf  list: "k8s\0", Unknown{2: List{1: meta, 2: items}}
 *             watch: frames of a 4-byte big-endian length and a WatchEvent{1:
 *             type, 2: {1: "k8s\0", Unknown{2: object}}}
 *   JSON      list: {"metadata": …, "items": […]}; watch: one event per line
 *
 * Source: Kubernetes API concepts; apimachinery's protobuf serializer, streaming serializer and
 * framer. */
#pragma once

#include "base/error.h"
#include "k8s-discovery/objects/object.h"

/* What comes out, in the order of the wire. */
#define STREAM_SET      1 /* an item of a list; ADDED or MODIFIED: object */
#define STREAM_DELETED  2 /* object */
#define STREAM_BOOKMARK 3 /* object.version, object.initial_end */
#define STREAM_FAILED   4 /* the server ends the watch: code, text */
#define STREAM_SKIPPED  5 /* a whole object of JSON that is not to be read */

struct stream_event {
	int what;
	struct object *object;
	int code;
	const char *text;
};

/* 0, or a negative errno that ends the stream. */
typedef int (*stream_fn)(void *context, const struct stream_event *event);

struct stream;

/* kind: of its objects. NULL: out of memory. */
struct stream *stream_new(enum kind kind, bool watch, stream_fn fn, void *context);
/* The annotations to keep, which outlive the stream; without it all are. */
void stream_annotations(struct stream *s, const struct annotations *wanted);
void stream_free(struct stream *s);

/* The next piece. 0; -EPROTO with a text for what no API server sends, -E2BIG for an object over 16
 * MiB, -ENOMEM, or what `fn` returned. Nothing more is to be fed after a failure. O(piece). */
int stream_feed(struct stream *s, struct str piece, struct error *err);

/* The body has ended: 0, or -EPROTO with a text if that was in the middle. A watch may end between
 * two events, and after nothing. */
int stream_end(struct stream *s, struct error *err);

/* Of a list that has ended: its version, and the token of its next page ("" where this was the
 * last). */
struct str stream_version(const struct stream *s);
struct str stream_next(const struct stream *s);

/* What a failed request says: the `message` of a Status in either wire, or the beginning of
 * whatever it is, as one printable line. */
void status_text(struct str body, char *out, size_t n);
