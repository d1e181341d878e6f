/* SPDX-License-Identifier: Apache-2.0 */
/* One exchange: an easy handle and all that it refers to. Private to lib/http: http.c has the list,
 * transfer.c the handle's callbacks, config.c TLS and authentication, explain.c the error texts. */
#pragma once

#include "base/buf.h"
#include "http/http.h"

#include <curl/curl.h>

/* All headers of all answers of one exchange, redirects and 1xx included. */
#define TRANSFER_MAX_HEADERS (256u << 10)
#define TRANSFER_MAX_BODY    (1u << 20) /* where the request sets none */

struct token;

struct transfer {
	struct transfer *next, **link; /* in the client's list */
	struct token *token;           /* http.c: of OAuth2, that it has or waits for; or NULL */
	uint64_t token_number;         /* which of those that were fetched */
	bool token_refused;
	bool held;                     /* it waits for one: it is not with libcurl */
	const char *refusal;           /* why it got none; `failure` says it, too */
	uint64_t id;
	CURL *easy;
	struct curl_slist *headers;
	struct curl_slist *proxy_headers;
	struct curl_slist *connect_to;
	char *peer; /* "host:port" as in the URL, for messages */
	bool proxied;
	bool attended;  /* looked at after each event */
	bool cancelled; /* ended by its owner: `done` is not called */
	int failure;    /* why we ended it ourselves: negative errno, or 0 */
	const char *wanted[HTTP_WANTED];
	bool http2, plain; /* plain: without TLS */
	uint64_t request_bytes;
	uint64_t made;   /* of a body that `read` makes, */
	bool unreadable; /* and it could not */
	uint64_t received, received_headers;
	bool in_head; /* between an answer's status line and the end of its headers */
	uint64_t max_response;
	int64_t timeout_ns, connect_ns, stall_ns; /* limits; timeout_ns 0: none for the whole */
	int64_t started_ns, moved_ns; /* CLOCK_MONOTONIC */
	curl_off_t uploaded;          /* as of moved_ns */
	struct buf body;
	int64_t (*read)(void *context, char *to, size_t n);
	void (*left)(void *context);
	void (*begun)(void *context);
	bool (*data)(void *context, struct str piece);
	void (*done)(void *context, const struct http_response *response);
	void *context;
	char detail[CURL_ERROR_SIZE];
};

/* A handle ready to be added to a multi handle, or negative errno and text. */
int transfer_new(const struct http_config *config, const struct http_request *request,
		 struct transfer **ret, struct error *err);
void transfer_free(struct transfer *t);

/* When it gives up for lack of progress: CLOCK_MONOTONIC, INT64_MAX never. */
int64_t transfer_deadline(const struct transfer *t);
/* Whether the deadline has really passed; notes what was uploaded meanwhile. */
bool transfer_stalled(struct transfer *t, int64_t now_ns);

/* Adds the header Authorization: 0 or a negative errno with a text. */
int transfer_authorize(struct transfer *t, struct str value, struct error *err);

/* Whether the answer says that nobody is known by what the request has. */
bool transfer_unauthenticated(const struct transfer *t);

/* Whether the last byte of the request has left. An answer proves it. */
bool transfer_was_sent(const struct transfer *t);

/* Calls `left`, if it has and nobody was told. */
void transfer_tell_left(struct transfer *t);

/* Calls `done` with what came of it. */
void transfer_finish(struct transfer *t, CURLcode code);

/* config.c: sets authentication, TLS, proxy and headers on the handle: 0 or negative errno with a
 * text. Token files are read here. */
int config_apply(struct transfer *t, const struct http_config *config, struct error *err);
/* The secret itself, or the content of its file without white space around, in `scratch`. */
int config_secret(struct str value, struct str path, struct buf *scratch, struct str *ret,
		  struct error *err);
/* Adds one header line, refusing what would break out of it. */
int config_header(struct curl_slist **list, struct str name, struct str value, struct error *err);
/* Sets an option to a copy of the slice; nothing where it is STR_NULL. */
int config_str(CURL *easy, CURLoption option, struct str value, struct error *err);
/* What a refused option means: -ENOMEM, or -EINVAL and the reason. */
int config_failed(CURLcode code, const char *what, struct error *err);

/* explain.c: one line for people into `out`; returns the class, a negative errno (see http.h). */
int explain(const struct transfer *t, CURLcode code, char *out, size_t n);
