/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of the two wires share. stream.c owns the framing of both;
 * stream-json.c and stream-proto.c know what a whole part of theirs means. */
#pragma once

#include "k8s-discovery/api/stream.h"

#define STREAM_MAX_PART (16u << 20)

/* What the bytes to come are. The first group is of lists in protobuf. */
enum state {
	AT_START,
	AT_MAGIC,    /* 4 bytes */
	AT_ENVELOPE, /* a field of Unknown */
	AT_LIST,     /* a field of List */
	AT_META,     /* `need` bytes: ListMeta */
	AT_ITEM,     /* `need` bytes: an object */
	AT_SKIP,     /* `need` bytes of no interest, then AT_LIST or AT_ENVELOPE */
	AT_LENGTH,   /* of a watch's frame: 4 bytes */
	AT_FRAME,    /* `need` bytes: a WatchEvent */
	AT_LINE,     /* a JSON event, up to the end of the line */
	AT_JSON,     /* a list in JSON: all that is not an item */
	AT_JSON_ITEM,
};

struct stream {
	enum kind kind;
	bool watch;
	stream_fn fn;
	void *context;
	enum state state;
	struct buf part; /* what has come of the part that is being read */
	uint64_t need;   /* its size */
	uint64_t list;   /* bytes left of the list's message */
	bool in_list, seen_list;
	struct object object;
	char *version, *next;
	/* JSON lists: the document without its items, and the scanner's place. */
	struct buf skeleton;
	uint32_t depth;
	bool in_string, escaped, in_items, ended;
};

/* The beginning of `body`, printable, into a text that says it is not ours. */
int stream_not_ours(struct str body, struct error *err);
void stream_printable(struct str s, char *out, size_t n);
/* Replaces a string; false when memory is short. */
bool stream_keep(char **text, struct str with);
/* Hands an object on. */
int stream_emit(struct stream *s, int what);

/* Takes bytes off the front of *piece; 0 or a negative errno. */
int stream_proto_feed(struct stream *s, struct str *piece, struct error *err);
int stream_json_feed(struct stream *s, struct str *piece, struct error *err);
int stream_json_end(struct stream *s, struct error *err);
