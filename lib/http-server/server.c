/* SPDX-License-Identifier: Apache-2.0 */
/* What requests of every protocol have in common. Contracts in server.h and protocol.h. */
#include "http-server/protocol.h"

#include "base/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define CONTENT_TOO_LARGE 413
#define TOO_MANY_REQUESTS 429
#define GATEWAY_TIMEOUT   504
#define STARVED_MS        1000

void server_options_fini(struct server_options *o)
{
	free((char *)(uintptr_t)o->address);
	free((char *)(uintptr_t)o->cert);
	free((char *)(uintptr_t)o->key);
	free((char *)(uintptr_t)o->client_ca);
	*o = (struct server_options){0};
}

int server_options_copy(struct server_options *ret, const struct server_options *from)
{
	*ret = *from;
	ret->address = from->address ? str_dup(str_of(from->address)) : NULL;
	ret->cert = from->cert ? str_dup(str_of(from->cert)) : NULL;
	ret->key = from->key ? str_dup(str_of(from->key)) : NULL;
	ret->client_ca = from->client_ca ? str_dup(str_of(from->client_ca)) : NULL;
	if (!ret->address == !from->address && !ret->cert == !from->cert &&
	    !ret->key == !from->key && !ret->client_ca == !from->client_ca)
		return 0;
	server_options_fini(ret);
	return -ENOMEM;
}

int server_new(const struct server_options *options, const struct server_events *events,
	       struct server **ret, struct error *err)
{
	const server_open_fn open = options->open ? options->open : http1_open;
	struct server *s;
	int rc = open(options, &s);

	if (rc && rc != -ENOMEM)
		return error_errno(err, rc, "cannot serve%s",
				   options->cert ? " by this certificate and key; name others"
						 : "");
	if (rc)
		return rc;
	s->limits = options->limits;
	s->events = *events;
	s->socket = -1;
	rc = server_socket_init(s);
	if (rc) {
		s->protocol->free(s);
		return error_errno(err, rc, "cannot serve");
	}
	*ret = s;
	return 0;
}

void server_free(struct server *s)
{
	if (!s)
		return;
	server_socket_fini(s);
	s->protocol->free(s);
}

int server_fd(const struct server *s)
{
	return s->epoll;
}

int64_t server_run(struct server *s)
{
	int64_t ms;

	server_accept(s);
	ms = s->protocol->run(s);
	server_heed(s);
	return s->starved && (ms < 0 || ms > STARVED_MS) ? STARVED_MS : ms;
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

	return getsockname(r->server->protocol->socket(r), &a.any, &n) == 0 &&
	       server_address_is_loopback(&a);
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
