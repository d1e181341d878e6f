/* SPDX-License-Identifier: Apache-2.0 */
/* What the protocols of a server share: HTTP/1.1 (http1.c) and gRPC (lib/grpc-server). A protocol
 * has connections and requests of its own, which begin with the structures here; what is asked of a
 * request, and what may be kept of it, is decided in server.c. */
#pragma once

#include "http-server/server.h"

#include <netinet/in.h>

union server_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* server_open_fn of HTTP/1.1. */
int http1_open(const struct server_options *options, struct server **ret);

struct server_protocol {
	/* Connections beyond the limit wait in the socket's queue, since others come and go. Where
	 * they are there to stay, whoever comes is better told at once. */
	bool queues;
	void (*free)(struct server *s);
	/* Of the connections. */
	int (*fd)(const struct server *s);
	int64_t (*run)(struct server *s);
	/* A new connection, which does not block. It is closed where it cannot be taken. */
	void (*connect)(struct server *s, int fd, const union server_address *peer);
	struct str (*query)(const struct server_request *r, const char *name);
	struct str (*header)(const struct server_request *r, const char *name);
	int (*socket)(const struct server_request *r);
	/* The first answer to a request; r->status is set. */
	void (*answer)(struct server_request *r, const struct server_answer *answer);
};

struct server {
	const struct server_protocol *protocol;
	struct server_limits limits;
	struct server_events events;
	unsigned int n_connections;
	size_t bodies;
	/* Who connects (socket.c). */
	int socket, epoll; /* -1: none. In the epoll are the socket and the protocol's descriptor */
	union server_address at;
	uint16_t port;
	bool dual;    /* IPv6 and IPv4 */
	bool heeded;  /* the epoll says when somebody connects */
	bool starved; /* descriptors were short */
	uint64_t refused;
};

bool server_address_is_loopback(const union server_address *a);

/* The epoll, once the protocol has its descriptor. 0 or a negative errno. */
int server_socket_init(struct server *s);
void server_socket_fini(struct server *s);
/* Takes who waits to be connected. */
void server_accept(struct server *s);
/* After a turn: whether who connects is heeded now. */
void server_heed(struct server *s);

struct server_request {
	struct server *server;
	const char *method;
	struct str path;
	struct buf body;
	void *value;
	unsigned int status; /* 0: not answered */
	bool over_limit;     /* the rest of the body is forgotten */
	bool ready;          /* its owner has been told so */
};

void server_request_init(struct server_request *r, struct server *s, const char *method,
			 struct str path);
/* The head is there: asks the owner. */
void server_request_begin(struct server_request *r);
/* So many bytes are to come: refuses what is too large, and what there is no room for. */
void server_request_expect(struct server_request *r, uint64_t n);
/* Keeps a piece of the body, or refuses the request. */
void server_request_keep(struct server_request *r, const void *data, size_t n);
/* The body is whole. Tells the owner once, also where that answers later. */
void server_request_whole(struct server_request *r);
/* Tells the owner, and frees the body. */
void server_request_over(struct server_request *r);
/* Answers who has waited for as long as anybody may. */
void server_request_late(struct server_request *r);
