/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an answer to Push means. Source: the answers of a Pyroscope v2.2.1,
 * recorded; a server of another kind is judged by its status alone.
 *
 * A request carries many series and a server stores the good ones of a
 * request that it refuses. So where one series may be at fault, the series
 * are sent again one by one: those that were stored are the same bytes with
 * the same time, which the server keeps once.
 */
#ifndef PUSH_CLASSIFY_H
#define PUSH_CLASSIFY_H

#include "http/http.h"

#define ANSWER_ACCEPTED 1 /* all of it is stored */
#define ANSWER_RETRY 2    /* the same again, later */
#define ANSWER_ISOLATE 3  /* a series at fault: one by one, and alone it is refused */
#define ANSWER_REFUSED 4  /* nothing of this kind will ever be taken: the endpoint is wrong */
#define ANSWER_LIMITED 5  /* too fast: later; many are isolated first */
#define ANSWER_PAUSE 6    /* a quota is used up: not before `resume_ns` */

struct answer {
	int action;
	int64_t resume_ns; /* CLOCK_REALTIME, for ANSWER_PAUSE */
	char text[320];    /* why, in one line; empty when accepted */
};

struct answer classify(const struct http_response *response);

#endif
