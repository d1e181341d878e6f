/* SPDX-License-Identifier: Apache-2.0 */
/* A client whose requests are made by a process of its own, which speaks to servers and can do
 * nothing else: http_sender_new is the end of whoever wants answers, http_serve that of the
 * process. Requests, answers and streams cross a socket. Files of the configuration (secrets,
 * certificates) are read here and cross as text; a unix_socket cannot be had.
 *
 * A process that ends, breaks the rules or no longer answers is replaced after a while. Its
 * requests end as those of a broken connection do (-ECONNRESET): `sent` wherever the process had
 * been given all of the request. One whose files were replaced is, too, but at once: the next one
 * gets all further requests, and beside it the former goes on with those that it makes until they
 * have ended, or for a minute. What it still makes then (streams) ends likewise. Where files are
 * replaced meanwhile, that comes after it: there are two processes at most. */
#pragma once

#include "http/http.h"

/* How long a process may take to be ready, and how much longer than the request's own time to
 * answer. */
#define HTTP_SENDER_WAIT_MS 20000
/* Between two processes: doubled each time up to the second, and from the first again where one
 * lived longer than that. */
#define HTTP_SENDER_FIRST_MS 1000
#define HTTP_SENDER_LAST_MS  60000
/* How long one whose files were replaced may go on with its requests. */
#define HTTP_SENDER_STALE_MS 60000

struct http_process {
	void *context;
	/* Starts one: our end of its socket (SOCK_SEQPACKET) and its pidfd, both the client's to
	 * close, as it reaps the process. 0 or a negative errno. */
	int (*start)(void *context, int *ret_socket, int *ret_pidfd);
	/* It has ended, or could not be started; and another is in so many milliseconds. */
	void (*ended)(void *context, const char *why, int64_t after_ms);
	/* Whether one that is started now could read what the last cannot: files that it is
	 * confined to were replaced. Another is then started before the next request. NULL:
	 * never. */
	bool (*is_stale)(void *context);
	int64_t stale_ms; /* HTTP_SENDER_STALE_MS where it is 0 */
};

/* Starts the process and waits until it is confined: 0; or -ENOMEM, or -EPERM where it says that it
 * cannot be, with a text. Where none can be started for now, or it ends before that, 0 too: another
 * is started, as at any later time, and `ended` has been called. */
int http_sender_new(const struct http_loop *loop, const struct http_process *process,
		    struct http_client **ret, struct error *err);
/* How often a process was started; 0: none could be yet. Of such a client only. */
uint64_t http_sender_starts(const struct http_client *client);

/* The process's end: says that it is confined and serves until the socket ends. 0 or a negative
 * errno. Requests that run then are dropped. */
int http_serve(int socket);
/* Says instead why it could not be confined, or what came before that and `passes`: another is then
 * to be tried. */
void http_serve_refusal(int socket, bool passes, const char *why);
