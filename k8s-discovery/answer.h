/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the API server answers, as JSON: a page of a list, or one event of a
 * watch. A proxy may answer something else entirely; that is -EPROTO with a
 * text that quotes its beginning.
 *
 * Source: Kubernetes API concepts (chunked lists, watch bookmarks, 410 Gone).
 */
#ifndef K8S_ANSWER_H
#define K8S_ANSWER_H

#include "base/error.h"
#include "pod.h"

struct page {
	VEC(struct pod) pods;
	char *resource_version;
	char *next; /* continue token, "" on the last page */
};

#define EVENT_SET      1 /* ADDED or MODIFIED: pod */
#define EVENT_DELETED  2 /* pod.key */
#define EVENT_BOOKMARK 3 /* resource_version only */
#define EVENT_ERROR    4 /* code, and its message in text */

struct event {
	int kind;
	int code;
	struct pod pod;
	char resource_version[64]; /* "" if absent or longer */
	char text[256];
};

/* 0, -ENOMEM, or -EPROTO with a text. Objects that are no pods are left out.
 * O(body), with the whole page in memory: for a worker. */
int page_parse(struct str body, struct page *ret, struct error *err);
void page_fini(struct page *page);

int event_parse(struct str line, struct event *ret, struct error *err);
void event_fini(struct event *event);

/* The `message` of a Status object, or the beginning of whatever it is, as
 * one printable line. */
void status_text(struct str body, char *out, size_t n);

#endif
