/* SPDX-License-Identifier: Apache-2.0 */
/* The meaning of an answer: an action, and its reason in a line for people. One table by status and
 * text serves all servers. An answer does not say which of a request's series is at fault; where
 * one may be, the series are sent again one by one. */
#pragma once

#include "http/http.h"

enum answer_action {
	ANSWER_ACCEPTED = 1, /* all of it is stored */
	ANSWER_RETRY,        /* the same again, later */
	ANSWER_ISOLATE,      /* a series at fault: one by one, and alone it is refused */
	ANSWER_REFUSED,      /* nothing of this kind will ever be taken: the endpoint is wrong */
	ANSWER_LIMITED,      /* too fast: later; many are isolated first */
	ANSWER_PAUSE,        /* a quota is used up: not before `resume_ns` */
	ANSWER_LOST,         /* none came */
	ANSWER_UNKNOWN,      /* one came that leaves open whether it was carried out */
};

struct answer {
	enum answer_action action;
	int64_t resume_ns; /* CLOCK_REALTIME, for ANSWER_PAUSE */
	char text[320];    /* why, in one line; empty when accepted */
};

/* By whom a status was given. */
#define ANSWERS_CONNECT 1u  /* HTTP's: PusherService/Push, as a Pyroscope v2.2.1 answers */
#define ANSWERS_OTLP    2u  /* HTTP's: OTLP, as its specification and a Pyroscope say */
#define ANSWERS_PROXY   4u  /* HTTP's: what stands in front of a server of gRPC */
#define ANSWERS_GRPC    8u  /* gRPC's, of a write: a Parca v0.28.0, else what gRPC says */
#define ANSWERS_UPLOAD  16u /* gRPC's, of Parca's debug-info service */
#define ANSWERS_INGEST  32u /* HTTP's: Pyroscope's /ingest, beside CONNECT's */

/* What the table says, or ANSWER_RETRY. */
enum answer_action answer_find(unsigned table, int status, struct str text);

/* Makes the text one printable line of whole characters. */
void answer_clean(struct answer *a);

/* Of PusherService/Push. A server of another kind is judged by its status alone. */
struct answer answer_push(const struct http_response *response);

/* Of /ingest. */
struct answer answer_ingest(const struct http_response *response);

/* Of a request that asked for GRPC_WANTED; `table` is ANSWERS_GRPC or ANSWERS_UPLOAD. */
struct answer answer_grpc(const struct http_response *response, unsigned table);
