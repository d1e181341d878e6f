/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an answer means: what to do, and why in a line for people. A table for
 * each server says it, by status and text; the first row that fits counts.
 *
 * A request carries many series, and which of them is at fault is not said;
 * so where one may be, the series are sent again one by one.
 */
#ifndef PYROSCOPE_PUSH_PROTOCOLS_CLASSIFY_H
#define PYROSCOPE_PUSH_PROTOCOLS_CLASSIFY_H

#include "http/http.h"

#define ANSWER_ACCEPTED 1 /* all of it is stored */
#define ANSWER_RETRY 2    /* the same again, later */
#define ANSWER_ISOLATE 3  /* a series at fault: one by one, and alone it is refused */
#define ANSWER_REFUSED 4  /* nothing of this kind will ever be taken: the endpoint is wrong */
#define ANSWER_LIMITED 5  /* too fast: later; many are isolated first */
#define ANSWER_PAUSE 6    /* a quota is used up: not before `resume_ns` */
#define ANSWER_LOST 7     /* none came */
#define ANSWER_UNKNOWN 8  /* one came that leaves open whether it was carried out */

struct answer {
	int action;
	int64_t resume_ns; /* CLOCK_REALTIME, for ANSWER_PAUSE */
	char text[320];    /* why, in one line; empty when accepted */
};

/* A row of a server's table. */
struct answer_row {
	int first, last;  /* status: HTTP's, or gRPC's where the table is of those */
	const char *text; /* in the message; NULL: any */
	int action;
};

/* The action of the first of n rows that fits, or ANSWER_RETRY. */
int answer_find(const struct answer_row *rows, size_t n, int status, struct str text);

/* The end of "… next reset at DATE": CLOCK_REALTIME; an hour from now where the
 * date cannot be read. */
int64_t answer_resume(struct str text);

/* Makes the text one printable line of whole characters. */
void answer_clean(struct answer *a);

/* Of PusherService/Push, as a Pyroscope v2.2.1 was seen to answer. A server of
 * another kind is judged by its status alone. */
struct answer classify_push(const struct http_response *response);

#endif
