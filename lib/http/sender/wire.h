/* SPDX-License-Identifier: Apache-2.0 */
/* What the two ends say to each other (sender.h). Numbers are as the machine has them: both ends
 * are the same program. Whoever reads takes nothing for granted: what does not fit is -EBADMSG. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "http/http.h"

/* From the agent. */
#define WIRE_REQUEST  1u /* fields of a request, ... */
#define WIRE_BODY     2u /* ... then its body, if it has one; or what WIRE_WANT asked for */
#define WIRE_CANCEL   3u
#define WIRE_WITHDRAW 4u /* cancels, and asks for WIRE_WITHDRAWN */
#define WIRE_NO_BODY  5u /* what was asked for cannot be had: a number, the errno */

/* From the process. */
#define WIRE_HELLO     17u /* it is confined; with a text not, with id 1 not yet */
#define WIRE_LEFT      18u /* as http_request's `left`, `begun` and `data` */
#define WIRE_BEGUN     19u
#define WIRE_DATA      20u
#define WIRE_COLLECTED 21u /* a piece of the body of the answer that follows */
#define WIRE_DONE      22u
#define WIRE_WANT      23u /* a number: bytes of the request's body, which is made now */
#define WIRE_WITHDRAWN 24u /* a number: whether the last byte had left */
#define WIRE_DATA_DONE 25u /* WIRE_DATA and WIRE_DONE: a number, so many bytes, the answer */

#define WIRE_MAX_REQUEST (16u << 20) /* of fields: three may be certificates and keys, 4 MiB each */
#define WIRE_MAX_ANSWER  (512u << 10) /* what the headers of an answer can be, and more */
#define WIRE_MAX_ERROR   1024u

/* Of a request: which of http_request's functions are not NULL. */
#define WIRE_CALLS_LEFT  1u
#define WIRE_CALLS_BEGUN 2u
#define WIRE_CALLS_DATA  4u
#define WIRE_CALLS_READ  8u

struct wire_request {
	struct arena arena; /* what the two refer to */
	struct http_config config;
	struct http_request request; /* without body and functions */
	uint32_t calls;
	uint64_t body_bytes;
};

/* Appends all of both but the body. What fails shows in the buffer. */
void wire_put_request(struct buf *b, const struct http_config *config,
		      const struct http_request *request);
/* 0, -ENOMEM or -EBADMSG. All is copied; wire_request_fini in the first case. */
int wire_get_request(struct str message, struct wire_request *ret);
void wire_request_fini(struct wire_request *q);

/* All but the body. */
void wire_put_answer(struct buf *b, const struct http_response *answer);
/* 0 or -EBADMSG: also where it is no answer that http.h allows. Texts hold no control characters;
 * `error` is NUL-terminated in `text`. */
int wire_get_answer(struct str message, struct http_response *ret, char text[WIRE_MAX_ERROR]);

/* A message that is one number. */
struct str wire_number(const uint64_t *value);
bool wire_get_number(struct str message, uint64_t *ret);
/* The two parts of a WIRE_DATA_DONE; false: it is broken. */
bool wire_split(struct str message, struct str *ret_piece, struct str *ret_answer);
