/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP client on libcurl's multi interface, for the owner's event loop: that supplies watches of
 * descriptors and one timer, and calls http_ready and http_timeout when they fire. Nothing blocks:
 * libcurl resolves names on threads of its own. One thread at a time. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define HTTP_IN  1u
#define HTTP_OUT 4u

/* What the client needs of the loop. watch: begin, change or (events 0) end watching fd. timer:
 * one-shot, -1 cancels. */
struct http_loop {
	void *context;
	void (*watch)(void *context, int fd, uint32_t events);
	void (*timer)(void *context, int64_t after_ms);
};

struct http_client;

int http_client_new(const struct http_loop *loop, struct http_client **ret, struct error *err);
/* Ends all requests; their `done` is not called. Not from within a callback. */
void http_client_free(struct http_client *client);

void http_ready(struct http_client *client, int fd, uint32_t events);
void http_timeout(struct http_client *client);

/* Connection and authentication, as in Alloy's HTTP client arguments. Strings are borrowed; absent
 * is STR_NULL. Files are read again for every request. */
struct http_header {
	struct str name, value;
};

struct http_oauth2;

struct http_config {
	struct str bearer_token, bearer_token_file;
	struct str basic_username, basic_password, basic_password_file;
	struct str authorization_type, authorization_credentials, authorization_credentials_file;
	struct str proxy_url, no_proxy;
	struct str unix_socket; /* path of a socket to connect to in place of the URL's host */
	struct str ca_pem, ca_file, cert_pem, cert_file, key_pem, key_file, server_name,
		min_version;
	bool insecure_skip_verify, proxy_from_environment, follow_redirects, enable_http2;
	const struct http_header *headers;
	size_t n_headers;
	const struct http_header *proxy_headers; /* for the proxy alone, when a tunnel is opened */
	size_t n_proxy_headers;
	const struct http_oauth2 *oauth2; /* NULL: none */
};

/* A token by OAuth2's client credentials grant: fetched before the first request that needs it, and
 * kept by the client until it expires or a server refuses it (401; grpc-status 16). Requests wait
 * meanwhile, of which timeout_ms knows nothing: HTTP_TOKEN_MS at most. */
#define HTTP_TOKEN_MS 20000

struct http_oauth2 {
	struct http_config server; /* how token_url is reached; no authentication, no headers */
	struct str token_url, client_id, client_secret, client_secret_file;
	struct str form; /* what is asked for beside the grant: "&name=value…", percent-encoded */
};

#define HTTP_WANTED 4 /* headers that a request may ask for */

/* A server that asks for more is taken to have asked for this. */
#define HTTP_MAX_RETRY_AFTER_MS (INT64_C(30) * 24 * 3600 * 1000)

/* status 0: no answer; `error` says why in one line, and `result` is the negative errno class:
 * -ECONNREFUSED, -ETIMEDOUT, -EHOSTUNREACH (no such name), -ECONNRESET, -EPROTO (TLS, bad HTTP),
 * -E2BIG. `sent`: the whole request left, so it may have been carried out. Borrowed. */
struct http_response {
	int result;
	int status;
	bool sent;
	bool token_refused; /* by the answer, of oauth2: the next request has another */
	const char *error;
	struct str body;
	struct str content_type;
	int64_t retry_after_ms; /* -1: the header is absent; at most HTTP_MAX_RETRY_AFTER_MS */
	int64_t elapsed_ns;
	struct str wanted[HTTP_WANTED]; /* as in the request; STR_NULL where absent */
};

struct http_request {
	const char *method; /* "GET", "POST" */
	struct str url;
	const char *path; /* appended to it; NULL: nothing */
	const struct http_header *headers;
	size_t n_headers;
	const struct http_header *more_headers; /* sent after these */
	size_t n_more_headers;
	struct str body; /* copied */
	/* Makes a body of `read_bytes` while it is sent, in place of `body`: writes at most n bytes
	 * into `to` and returns how many. A negative errno, or 0 before the end, ends the request.
	 * Must not use the client. Cannot be redirected. */
	int64_t (*read)(void *context, char *to, size_t n);
	uint64_t read_bytes;
	int64_t max_send;           /* bytes of the body a second; 0: any */
	int64_t timeout_ms;         /* of the whole exchange; 0: none */
	int64_t connect_timeout_ms; /* 0: 10 s */
	int64_t stall_ms;           /* gives up when nothing arrives that long; 0: never */
	/* Names of headers or trailers of the answer that `done` wants to see, from the first on;
	 * NULL: no more. The names must outlive the request. */
	const char *wanted[HTTP_WANTED];
	/* HTTP/2 only, over http:// without asking for it first, as gRPC wants; on a connection of
	 * its own. */
	bool http2;
	uint64_t max_response; /* bytes after decoding; more is -E2BIG; 0: 1 MiB */
	/* Offers no compression: for streams that a server compresses piece by piece, as a sequence
	 * of gzip members, which libcurl refuses. */
	bool uncompressed;
	bool small; /* reads through a small buffer: for thousands of requests at once */
	/* On a connection of its own that is closed at the end, and the host's address is not
	 * remembered either: for requests to so many hosts that libcurl, which goes through all
	 * that it keeps at each request, would take longer than to connect. */
	bool own_connection;
	/* Once, when the last byte has left and there is no answer yet. Must not use the client.
	 * May be NULL. */
	void (*left)(void *context);
	/* A 2xx answer has begun: its headers are complete. May be NULL. */
	void (*begun)(void *context);
	/* A piece of the body of a 2xx answer, as it arrives; false ends the request. NULL: the
	 * body is collected for `done`, as that of any other status always is, up to 1 MiB. Must
	 * not withdraw a request. */
	bool (*data)(void *context, struct str piece);
	/* Once, at the end, unless the request was cancelled. */
	void (*done)(void *context, const struct http_response *response);
	void *context;
};

/* Begins a request. The config is read (with its files) now. 0 and an id, or negative errno with a
 * text. `done` is never called from within. */
int http_send(struct http_client *client, const struct http_config *config,
	      const struct http_request *request, uint64_t *ret_id, struct error *err);
void http_cancel(struct http_client *client, uint64_t id);
/* The same, and says whether the last byte has left, as in `sent` above. True too where that cannot
 * be known. Not from within a callback. May take a second where the client is a process of its own
 * (http/sender/sender.h). */
bool http_withdraw(struct http_client *client, uint64_t id);

/* Why a server's URL cannot be asked, in words that follow it ("names no host"), or NULL. A request
 * says the same, but only when it is made. O(bytes). */
const char *http_url_fault(struct str url);
bool http_is_https(struct str url);
/* User, host and port of a URL; what stands behind "://", for any text. */
struct str http_authority(struct str url);
/* The same without the user: whom a message names. */
struct str http_host(struct str url);
