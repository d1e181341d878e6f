/* SPDX-License-Identifier: Apache-2.0 */
/* Connections (grpc-server.c) and the calls on them (call.c). */
#pragma once

#include "grpc-server/grpc-server.h"
#include "http-server/protocol.h"
#include "http/grpc.h"

#include <nghttp2/nghttp2.h>

#define PATH_BYTES 256 /* a longer one is no method's, and is kept as an empty one */

struct peer {
	struct peer *next, **link;
	struct grpc_server *server;
	int fd;
	nghttp2_session *session;
	const uint8_t *out; /* what the socket has not taken yet */
	size_t n_out;
	uint32_t events; /* that are waited for */
	struct call *calls;
	bool greeted; /* it speaks HTTP/2. Before it has, nothing is sent: it may speak another */
	bool leaving;
	int64_t since_ns; /* without a call, or leaving */
};

struct call {
	struct server_request request;
	struct peer *peer;
	struct call *next, **link;
	int32_t stream;
	bool is_grpc, foreign_encoding;
	size_t head; /* bytes of it */
	char path[PATH_BYTES], method[8];
	char frame[GRPC_FRAME_BYTES];
	size_t n_frame;
	bool whole;
	int64_t since_ns; /* it began, is whole, was answered */
	struct buf answer;
	size_t sent;
};

struct grpc_server {
	struct server server;
	int epoll; /* of the connections */
	int64_t tick_ns; /* when deadlines are looked at next */
	struct peer *peers;
	nghttp2_session_callbacks *callbacks;
};

static inline struct call *call_of(const struct server_request *r)
{
	return (struct call *)(uintptr_t)r;
}

/* What libnghttp2 does with what comes. 0 or -ENOMEM. */
int call_callbacks(nghttp2_session_callbacks **ret);
/* Tells the owner that it is over. */
void call_free(struct call *c);
void call_answer(struct server_request *r, const struct server_answer *answer);
struct str call_header(const struct server_request *r, const char *name);
