/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd in its epoll mode, its descriptor handed to an owner's loop. Contract in server.h.
 *
 * libmicrohttpd knows one timeout, without progress. So each connection has a deadline of ours; at
 * its end the socket is shut down, and libmicrohttpd sees a client that has gone. It takes an
 * answer before it has read of a body or after all of it, so what is too much is read and
 * forgotten. */
#include "http-server/server.h"

#include "base/check.h"
#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <sys/socket.h>

#define ROUNDS 16 /* at most in one go, so that others get their turn */

/* What a connection is at. */
enum phase {
	PHASE_IDLE, /* between requests */
	PHASE_HEAD, /* of the first request */
	PHASE_BODY,
	PHASE_OWNER, /* the request waits for its answer */
	PHASE_ANSWER,
};

struct connection {
	struct connection *next, **link;
	int fd;
	enum phase phase;
	bool cut;
	int64_t since_ns;
};

struct server {
	struct MHD_Daemon *daemon;
	struct server_limits limits;
	struct server_events events;
	struct connection *connections;
	struct server_request *suspended;
	unsigned int n_connections;
	size_t bodies;
};

struct server_request {
	struct server *server;
	struct MHD_Connection *connection;
	struct connection *line;
	struct server_request *next, **link; /* among the suspended; link NULL: it is not */
	const char *method;
	struct str path;
	struct buf body;
	void *value;
	struct MHD_Response *response; /* the answer, until it is queued */
	unsigned int status;           /* 0: not answered */
	bool over_limit;               /* the rest of the body is forgotten */
	bool ready;                    /* its owner has been told so */
};

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static bool parse(const char *text, union address *ret)
{
	*ret = (union address){0};
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
static bool is_loopback(const union address *a)
{
	const struct in6_addr *v6 = &a->v6.sin6_addr;

	if (a->any.sa_family == AF_INET)
		return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
}

bool server_address_ok(const char *address, bool *ret_loopback)
{
	union address a;

	if (!parse(address, &a))
		return false;
	*ret_loopback = is_loopback(&a);
	return true;
}

static void enter(struct connection *line, enum phase phase)
{
	line->phase = phase;
	line->since_ns = clock_mono();
}

static struct connection *line_of(struct MHD_Connection *connection)
{
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
		->socket_context;
}

static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct server *s = context;
	struct connection *line = *socket_context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		line = calloc(1, sizeof(*line));
		if (!line)
			return; /* its first request is refused */
		line->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
				   ->connect_fd;
		enter(line, PHASE_HEAD);
		line->next = s->connections;
		line->link = &s->connections;
		if (line->next)
			line->next->link = &line->next;
		s->connections = line;
		s->n_connections++;
		*socket_context = line;
	} else if (line) {
		check(s->n_connections > 0);
		*line->link = line->next;
		if (line->next)
			line->next->link = line->link;
		s->n_connections--;
		free(line);
		*socket_context = NULL;
	}
}

static int64_t allowed_ns(const struct server *s, const struct connection *line)
{
	switch (line->phase) {
	case PHASE_IDLE:
		return s->limits.idle_s * NS_PER_SEC;
	case PHASE_HEAD:
	case PHASE_BODY:
		return s->limits.request_s * NS_PER_SEC;
	case PHASE_ANSWER:
		return s->limits.answer_s * NS_PER_SEC;
	case PHASE_OWNER:
		break;
	}
	return INT64_MAX;
}

static void cut_overdue(struct server *s)
{
	int64_t now = clock_mono();

	for (struct connection *line = s->connections; line; line = line->next)
		if (!line->cut && now - line->since_ns > allowed_ns(s, line)) {
			line->cut = true;
			shutdown(line->fd, SHUT_RDWR);
		}
}

/* Who waits for an answer of ours waits no longer than anybody else. */
static void answer_overdue(struct server *s)
{
	int64_t limit = s->limits.answer_s * NS_PER_SEC, now = clock_mono();
	struct server_request *r = s->suspended;

	while (r) {
		struct server_request *next = r->next;

		if (now - r->line->since_ns > limit)
			server_answer_text(r, MHD_HTTP_GATEWAY_TIMEOUT,
					   "no answer in time; it may have been taken\n");
		r = next;
	}
}

static void release_body(struct server_request *r)
{
	check(r->server->bodies >= r->body.n);
	r->server->bodies -= r->body.n;
	buf_free(&r->body);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **request,
			 enum MHD_RequestTerminationCode code)
{
	struct server_request *r = *request;

	if (!r)
		return;
	*request = NULL;
	check(!r->link);
	if (r->server->events.over)
		r->server->events.over(r->server->events.context, r);
	enter(r->line, PHASE_IDLE);
	release_body(r);
	if (r->response)
		MHD_destroy_response(r->response);
	free(r);
}

/* Hands the answer to libmicrohttpd. */
static enum MHD_Result queue_answer(struct server_request *r)
{
	enum MHD_Result rc;

	check(r->status != 0);
	if (!r->response)
		return MHD_NO; /* memory was short: the connection ends */
	enter(r->line, PHASE_ANSWER);
	rc = MHD_queue_response(r->connection, r->status, r->response);
	MHD_destroy_response(r->response);
	r->response = NULL;
	return rc;
}

void server_answer(struct server_request *r, const struct server_answer *answer)
{
	static const char empty[1] = "";
	char seconds[16];

	if (r->status)
		return;
	r->status = answer->status;
	r->response = MHD_create_response_from_buffer(
		answer->body.n, (void *)(uintptr_t)(answer->body.n ? answer->body.p : empty),
		MHD_RESPMEM_MUST_COPY);
	if (r->response && answer->type)
		MHD_add_response_header(r->response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->type);
	if (r->response && answer->retry_s) {
		snprintf(seconds, sizeof(seconds), "%u", answer->retry_s);
		MHD_add_response_header(r->response, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
	}
	if (r->response && answer->authenticate)
		MHD_add_response_header(r->response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
					answer->authenticate);
	if (r->link) {
		*r->link = r->next;
		if (r->next)
			r->next->link = r->link;
		r->link = NULL;
		MHD_resume_connection(r->connection);
	}
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
	server_answer_text(r, MHD_HTTP_CONTENT_TOO_LARGE, text);
}

static void refuse_too_many(struct server_request *r)
{
	server_answer(r, &(struct server_answer){
				 .status = MHD_HTTP_TOO_MANY_REQUESTS,
				 .type = "text/plain; charset=utf-8",
				 .body = STR("too much is under way; send it again later\n"),
				 .retry_s = 1,
			 });
}

/* What the head alone decides. */
static void judge_head(struct server_request *r)
{
	const struct server_limits *limits = &r->server->limits;
	struct str length = server_request_header(r, MHD_HTTP_HEADER_CONTENT_LENGTH);
	uint64_t n = 0;

	if (r->server->events.begin)
		r->server->events.begin(r->server->events.context, r);
	if (r->status || !limits->max_body)
		return;
	if (length.n && (!str_u64(length, &n) || n > limits->max_body))
		refuse_too_large(r);
	else if (n > limits->max_bodies - r->server->bodies)
		refuse_too_many(r);
}

static struct server_request *request_new(struct server *s, struct MHD_Connection *connection,
					  const char *path, const char *method)
{
	struct connection *line = line_of(connection);
	struct server_request *r = line ? calloc(1, sizeof(*r)) : NULL;

	if (!r)
		return NULL;
	*r = (struct server_request){.server = s,
				     .connection = connection,
				     .line = line,
				     .method = method,
				     .path = str_of(path)};
	r->body.limit = s->limits.max_body ? s->limits.max_body : 1;
	return r;
}

static void keep_body(struct server_request *r, const char *data, size_t n)
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

static void suspend(struct server_request *r)
{
	enter(r->line, PHASE_OWNER);
	r->next = r->server->suspended;
	r->link = &r->server->suspended;
	if (r->next)
		r->next->link = &r->next;
	r->server->suspended = r;
	MHD_suspend_connection(r->connection);
}

/* Once, also where the owner answers later. */
static void make_ready(struct server_request *r)
{
	if (r->status || r->ready)
		return;
	r->ready = true;
	r->server->events.ready(r->server->events.context, r);
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *path,
			      const char *method, const char *version, const char *data,
			      size_t *n_data, void **request)
{
	struct server *s = context;
	struct server_request *r = *request;

	if (!r) {
		r = request_new(s, connection, path, method);
		if (!r)
			return MHD_NO;
		*request = r;
		enter(r->line, PHASE_BODY);
		judge_head(r);
		/* Without a body the next call is the last one; where none is read, this one. */
		if (!s->limits.max_body)
			make_ready(r);
		return r->status ? queue_answer(r) : MHD_YES;
	}
	if (*n_data) {
		keep_body(r, data, *n_data);
		*n_data = 0;
		return MHD_YES;
	}
	if (r->line->phase == PHASE_BODY)
		make_ready(r);
	if (r->status)
		return queue_answer(r);
	suspend(r);
	return MHD_YES;
}

bool server_request_is(const struct server_request *r, const char *method)
{
	return strcmp(r->method, method) == 0;
}

struct str server_request_path(const struct server_request *r)
{
	return r->path;
}

static struct str lookup(const struct server_request *r, enum MHD_ValueKind kind, const char *name)
{
	const char *value = NULL;
	size_t n = 0;

	if (MHD_lookup_connection_value_n(r->connection, kind, name, strlen(name), &value, &n) !=
		    MHD_YES ||
	    !value)
		return STR_NULL;
	return (struct str){value, n};
}

struct str server_request_query(const struct server_request *r, const char *name)
{
	return lookup(r, MHD_GET_ARGUMENT_KIND, name);
}

struct str server_request_header(const struct server_request *r, const char *name)
{
	return lookup(r, MHD_HEADER_KIND, name);
}

bool server_request_is_local(const struct server_request *r)
{
	union address a = {0};
	socklen_t n = sizeof(a);

	return getsockname(r->line->fd, &a.any, &n) == 0 && is_loopback(&a);
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

/* One try at an address. */
static struct MHD_Daemon *listen_at(struct server *s, const struct server_options *o,
				    union address *at, unsigned int flags)
{
	struct MHD_OptionItem tls[] = {
		{MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)o->cert},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)o->key},
		{MHD_OPTION_END, 0, NULL},
	};

	if (o->cert)
		flags |= MHD_USE_TLS;
	else
		tls[0] = tls[2];
	if (at->any.sa_family == AF_INET6)
		flags |= MHD_USE_IPv6;
	at->v4.sin_port = htons(o->port); /* in the same place for both */
	errno = 0;
	return MHD_start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | flags, o->port, NULL, NULL, answer, s,
		MHD_OPTION_SOCK_ADDR, &at->any, MHD_OPTION_CONNECTION_LIMIT,
		s->limits.connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT, s->limits.memory,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_NOTIFY_COMPLETED,
		on_completed, s, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
}

int server_new(const struct server_options *options, const struct server_events *events,
	       struct server **ret, struct error *err)
{
	struct server *s = calloc(1, sizeof(*s));
	const char *address = options->address[0] ? options->address : "::";
	union address at;

	if (!s)
		return -ENOMEM;
	s->events = *events;
	s->limits = options->limits;
	if (!parse(address, &at)) {
		free(s);
		return error_set(err, -EINVAL, "%s is no IP address", address);
	}
	s->daemon = listen_at(s, options, &at, options->address[0] ? 0 : MHD_USE_DUAL_STACK);
	if (!s->daemon && !options->address[0] && parse("0.0.0.0", &at))
		s->daemon = listen_at(s, options, &at, 0); /* a machine without IPv6 */
	if (!s->daemon) {
		int code = errno ? -errno : -EIO;

		free(s);
		return error_errno(err, code, "cannot listen at %s port %u; name another %s",
				   options->address[0] ? address : "any address", options->port,
				   options->cert ? "listen_port, or another certificate and key"
						 : "listen_port");
	}
	*ret = s;
	return 0;
}

void server_free(struct server *s)
{
	if (!s)
		return;
	while (s->suspended) /* libmicrohttpd wants none of these at its end */
		server_answer_text(s->suspended, MHD_HTTP_SERVICE_UNAVAILABLE, "stopping\n");
	MHD_stop_daemon(s->daemon);
	check(!s->connections && s->bodies == 0);
	free(s);
}

int server_fd(const struct server *s)
{
	return MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

uint16_t server_port(const struct server *s)
{
	return MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
}

unsigned int server_connections(const struct server *s)
{
	return s->n_connections;
}

size_t server_bodies(const struct server *s)
{
	return s->bodies;
}

int64_t server_run(struct server *s)
{
	MHD_UNSIGNED_LONG_LONG ms = 0;

	for (int i = 0; i < ROUNDS; i++) {
		MHD_run(s->daemon);
		cut_overdue(s);
		answer_overdue(s);
		if (MHD_get_timeout(s->daemon, &ms) != MHD_YES)
			return s->connections ? 1000 : -1;
		if (ms > 0)
			break;
	}
	return ms > 1000 ? 1000 : (int64_t)ms;
}
