/* SPDX-License-Identifier: Apache-2.0 */
/* A server of HTTP/1.1, on libmicrohttpd, or of gRPC (lib/grpc-server), run by whoever has the
 * thread: no thread of its own, never blocks. What strangers may cost is bounded by limits:
 * connections and the memory of each, the time that a head, a body and an answer may take as a
 * whole (a client that sends a byte now and then gains nothing), and the bytes of one body and of
 * all bodies together. What is over a limit is answered without being kept.
 *
 * A request is answered from within `begin` or `ready`, or later: its connection is suspended until
 * then. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct server;
struct server_request;

struct server_limits {
	unsigned int connections;
	size_t memory;         /* of a connection; the head must fit */
	unsigned int request_s; /* for a head, and again for a body */
	unsigned int answer_s;  /* for an answer to be made, and again to be taken */
	unsigned int idle_s;    /* between requests of one connection */
	size_t max_body;        /* 0: bodies are not read */
	size_t max_bodies;      /* of all requests together */
};

struct server_events {
	void *context;
	/* The head has been read. Whoever does not answer here wants the body. NULL: always. */
	void (*begin)(void *context, struct server_request *r);
	/* All of it is there. */
	void (*ready)(void *context, struct server_request *r);
	/* The request is over, answered or not; it is void after the call. May be NULL. */
	void (*over)(void *context, struct server_request *r);
};

/* Makes a server of a protocol, without a socket to listen at. 0 or a negative errno. */
struct server_options;
typedef int (*server_open_fn)(const struct server_options *options, struct server **ret);

/* What of certificates of clients; bits. */
#define SERVER_CLIENTS_ASKED    (1u << 0) /* a client is asked for one */
#define SERVER_CLIENTS_NEEDED   (1u << 1) /* it has to have one */
#define SERVER_CLIENTS_VERIFIED (1u << 2) /* what it shows has to be of `client_ca` */

struct server_options {
	server_open_fn open; /* NULL: HTTP/1.1 */
	/* A numeric one, IPv4 or IPv6; "": all of this machine; NULL, of a listener: none. */
	const char *address;
	uint16_t port;          /* 0: any that is free */
	const char *cert, *key; /* PEM; NULL: without TLS */
	const char *client_ca;  /* PEM; NULL: none. Clients are told its names */
	unsigned int clients;   /* 0: they are not asked */
	struct server_limits limits;
};

/* Copies that own their texts. 0 or -ENOMEM. */
int server_options_copy(struct server_options *ret, const struct server_options *from);
void server_options_fini(struct server_options *o);

/* Makes one that listens nowhere yet. Nothing of the options is needed afterwards. 0 or a negative
 * errno and a text. */
int server_new(const struct server_options *options, const struct server_events *events,
	       struct server **ret, struct error *err);
/* Listens at the options' address and port; it does not yet. 0 or a negative errno and a text. */
int server_listen(struct server *s, const struct server_options *options, struct error *err);
/* Listens at the socket of another one, which does so too until it is freed. 0 or a negative
 * errno. */
int server_share(struct server *s, const struct server *other);
/* Listens no more. Who is connected stays, and so does who waits to be, up to the limit. */
void server_unlisten(struct server *s);
/* Listens again where it did before that. 0 or a negative errno and a text. */
int server_relisten(struct server *s, struct error *err);
/* Cuts everybody off. `over` is called for each request. */
void server_free(struct server *s);

/* Readable when there is something to do. */
int server_fd(const struct server *s);
/* Does it. In so many ms it wants to be run again whatever the descriptor says; -1: it does not.
 * It wants to be run after a server_answer from outside, too. */
int64_t server_run(struct server *s);
/* 0: it does not listen. */
uint16_t server_port(const struct server *s);
unsigned int server_connections(const struct server *s);
/* Connections beyond the limit: those of HTTP/1.1 wait until there are fewer, and this says how
 * many do; those of gRPC are closed at once, and this says how many have been. */
unsigned int server_waiting(const struct server *s);
uint64_t server_refused(const struct server *s);
/* Bytes of all bodies that are held. */
size_t server_bodies(const struct server *s);

/* What was asked. The texts live as long as the request; those that are absent are STR_NULL. A
 * query's arguments are decoded. */
bool server_request_is(const struct server_request *r, const char *method);
struct str server_request_path(const struct server_request *r);
struct str server_request_query(const struct server_request *r, const char *name);
struct str server_request_header(const struct server_request *r, const char *name);
/* Whether it came to a loopback address, at which nobody but this machine can ask. */
bool server_request_is_local(const struct server_request *r);
/* The body; in `ready` and after it. */
struct str server_request_body(const struct server_request *r);
/* Gives the body's memory to the caller, who frees it; the limits no longer count it. */
struct buf server_request_take_body(struct server_request *r);

/* What it was answered, by its owner or by the server; 0: nothing yet. */
unsigned int server_request_status(const struct server_request *r);

/* A pointer of the server's owner, NULL at first. */
void server_request_set(struct server_request *r, void *value);
void *server_request_get(const struct server_request *r);

struct server_answer {
	unsigned int status;  /* 200, 404, … */
	const char *type;     /* of the content, a constant; NULL: none */
	struct str body;      /* copied */
	unsigned int retry_s; /* 0, or what Retry-After says */
	const char *authenticate; /* NULL, or what WWW-Authenticate says */
};
/* Answers; the first one counts. */
void server_answer(struct server_request *r, const struct server_answer *answer);
/* A sentence as plain text. */
void server_answer_text(struct server_request *r, unsigned int status, const char *text);

/* Whether an address is one that server_listen can take, an IP address or "localhost", and whether
 * it is this machine's alone. */
bool server_address_ok(const char *address, bool *ret_loopback);
