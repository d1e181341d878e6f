/* SPDX-License-Identifier: Apache-2.0 */
/* What requests of every protocol have in common. Contracts in server.h and protocol.h. */
#include "http-server/protocol.h"

#include "base/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define CONTENT_TOO_LARGE 413
#define TOO_MANY_REQUESTS 429
#define GATEWAY_TIMEOUT   504

bool server_address_parse(const char *text, union server_address *ret)
{
	*ret = (union server_address){0};
	if (inet_pton(AF_INET, text, &ret->v4.sin_addr) == 1) {
		ret->v4.sin_family = AF_INET;
		return true;
	}
	if (inet_pton(AF_INET6, text, &ret->v6.sin6_addr) != 1)
		return false;
	ret->v6.sin6_family = AF_INET6;
	return true;
}

/* On a socket for both, 127.0.0.1 is ::ffff:127.0.0.1. */
static bool is_loopback(const union server_address *a)
{
	const struct in6_addr *v6 = &a->v6.sin6_addr;

	if (a->any.sa_family == AF_INET)
		return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
}

bool server_address_ok(const char *address, bool *ret_loopback)
{
	union server_address a;

	if (!server_address_parse(address, &a))
		return false;
	*ret_loopback = is_loopback(&a);
	return true;
}

void server_options_fini(struct server_options *o)
{
	free((char *)(uintptr_t)o->address);
	free((char *)(uintptr_t)o->cert);
	free((char *)(uintptr_t)o->key);
	*o = (struct server_options){0};
}

int server_options_copy(struct server_options *ret, const struct server_options *from)
{
	*ret = *from;
	ret->address = from->address ? str_dup(str_of(from->address)) : NULL;
	ret->cert = from->cert ? str_dup(str_of(from->cert)) : NULL;
	ret->key = from->key ? str_dup(str_of(from->key)) : NULL;
	if (!ret->address == !from->address && !ret->cert == !from->cert && !ret->key == !from->key)
		return 0;
	server_options_fini(ret);
	return -ENOMEM;
}

int server_new(const struct server_options *options, const struct server_events *events,
	       struct server **ret, struct error *err)
{
	const server_open_fn open = options->open ? options->open : http1_open;
	const char *address = options->address[0] ? options->address : "::";
	bool any = !options->address[0];
	union server_address at;
	int rc;

	if (!server_address_parse(address, &at))
		return error_set(err, -EINVAL, "%s is no IP address", address);
	at.v4.sin_port = htons(options->port); /* in the same place for both */
	rc = open(options, &at, any, ret);
	if (rc && rc != -ENOMEM && any && server_address_parse("0.0.0.0", &at)) {
		at.v4.sin_port = htons(options->port);
		rc = open(options, &at, false, ret); /* a machine without IPv6 */
	}
	if (rc == -ENOMEM)
		return rc;
	if (rc)
		return error_errno(err, rc, "cannot listen at %s port %u; name another %s",
				   any ? "any address" : address, options->port,
				   options->cert ? "listen_port, or another certificate and key"
						 : "listen_port");
	(*ret)->limits = options->limits;
	(*ret)->events = *events;
	return 0;
}

void server_free(struct server *s)
{
	if (s)
		s->protocol->free(s);
}

int server_fd(const struct server *s)
{
	return s->protocol->fd(s);
}

int64_t server_run(struct server *s)
{
	return s->protocol->run(s);
}

uint16_t server_port(const struct server *s)
{
	return s->protocol->port(s);
}

unsigned int server_connections(const struct server *s)
{
	return s->n_connections;
}

size_t server_bodies(const struct server *s)
{
	return s->bodies;
}

void server_request_init(struct server_request *r, struct server *s, const char *method,
			 struct str path)
{
	*r = (struct server_request){.server = s, .method = method, .path = path};
	r->body.limit = s->limits.max_body ? s->limits.max_body : 1;
}

static void release_body(struct server_request *r)
{
	check(r->server->bodies >= r->body.n);
	r->server->bodies -= r->body.n;
	buf_free(&r->body);
}

void server_answer(struct server_request *r, const struct server_answer *answer)
{
	if (r->status)
		return;
	r->status = answer->status;
	r->server->protocol->answer(r, answer);
}

void server_answer_text(struct server_request *r, unsigned int status, const char *text)
{
	server_answer(r, &(struct server_answer){.status = status,
						 .type = "text/plain; charset=utf-8",
						 .body = str_of(text)});
}

static void refuse_too_large(struct server_request *r)
{
	char text[128];

	snprintf(text, sizeof(text), "the body is larger than %zu bytes, the most that is taken\n",
		 r->server->limits.max_body);
	server_answer_text(r, CONTENT_TOO_LARGE, text);
}

static void refuse_too_many(struct server_request *r)
{
	server_answer(r, &(struct server_answer){
				 .status = TOO_MANY_REQUESTS,
				 .type = "text/plain; charset=utf-8",
				 .body = STR("too much is under way; send it again later\n"),
				 .retry_s = 1,
			 });
}

void server_request_begin(struct server_request *r)
{
	if (r->server->events.begin)
		r->server->events.begin(r->server->events.context, r);
}

void server_request_expect(struct server_request *r, uint64_t n)
{
	const struct server_limits *limits = &r->server->limits;

	if (r->status || !limits->max_body)
		return;
	if (n > limits->max_body)
		refuse_too_large(r);
	else if (n > limits->max_bodies - r->server->bodies)
		refuse_too_many(r);
}

void server_request_keep(struct server_request *r, const void *data, size_t n)
{
	struct server *s = r->server;

	if (r->over_limit || r->status)
		return;
	if (n > s->limits.max_bodies - s->bodies || buf_append(&r->body, data, n)) {
		r->over_limit = true;
		if (n > s->limits.max_body - r->body.n)
			refuse_too_large(r);
		else
			refuse_too_many(r);
		release_body(r);
	} else {
		s->bodies += n;
	}
}

void server_request_whole(struct server_request *r)
{
	if (r->status || r->ready)
		return;
	r->ready = true;
	r->server->events.ready(r->server->events.context, r);
}

void server_request_over(struct server_request *r)
{
	if (r->server->events.over)
		r->server->events.over(r->server->events.context, r);
	release_body(r);
}

void server_request_late(struct server_request *r)
{
	server_answer_text(r, GATEWAY_TIMEOUT, "no answer in time; it may have been taken\n");
}

bool server_request_is(const struct server_request *r, const char *method)
{
	return strcmp(r->method, method) == 0;
}

struct str server_request_path(const struct server_request *r)
{
	return r->path;
}

struct str server_request_query(const struct server_request *r, const char *name)
{
	return r->server->protocol->query(r, name);
}

struct str server_request_header(const struct server_request *r, const char *name)
{
	return r->server->protocol->header(r, name);
}

bool server_request_is_local(const struct server_request *r)
{
	union server_address a = {0};
	socklen_t n = sizeof(a);

	return getsockname(r->server->protocol->socket(r), &a.any, &n) == 0 && is_loopback(&a);
}

struct str server_request_body(const struct server_request *r)
{
	return buf_str(&r->body);
}

struct buf server_request_take_body(struct server_request *r)
{
	struct buf taken = r->body;

	check(r->server->bodies >= r->body.n);
	r->server->bodies -= r->body.n;
	r->body = BUF_NULL;
	return taken;
}

unsigned int server_request_status(const struct server_request *r)
{
	return r->status;
}

void server_request_set(struct server_request *r, void *value)
{
	r->value = value;
}

void *server_request_get(const struct server_request *r)
{
	return r->value;
}
