/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of OAuth2's client credentials grant (RFC 6749, section 4.4): what is to be asked for one,
 * and what the answer says. http.c makes the requests. Private to lib/http. */
#pragma once

#include "base/buf.h"
#include "base/sha256.h"
#include "http/http.h"

/* How the client says who it is: servers take one or the other, or both. */
enum oauth2_style {
	OAUTH2_IN_HEADER, /* basic authentication */
	OAUTH2_IN_FORM,
};

/* What of it stays the same while the same token serves. */
void oauth2_identity(const struct http_oauth2 *o, unsigned char ret[SHA256_BYTES]);

/* A request for a token; oauth2_question_fini frees it and what it refers to, in either case. Reads
 * the file of the secret. `done` and `context` are the caller's to set. 0 or a negative errno with
 * a text. */
struct oauth2_question {
	struct http_request request;
	struct http_header headers[3];
	struct buf form, authorization;
};

int oauth2_question_init(struct oauth2_question *q, const struct http_oauth2 *o,
			 enum oauth2_style style, struct error *err);
void oauth2_question_fini(struct oauth2_question *q);

/* Sets the value for Authorization, and for how long it serves (INT64_MAX: nobody said). 0;
 * -ENOMEM; or, where the answer has none, -EACCES, -EPROTO or why there is no answer, and a text
 * that names the peer. */
int oauth2_answer(const struct http_response *answer, struct str peer, struct buf *ret_header,
		  int64_t *ret_serves_ns, struct error *err);
/* Whether the other style may be taken. */
bool oauth2_refuses_style(const struct http_response *answer);
