/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1: libmicrohttpd in its epoll mode, which is given each connection.
 *
 * libmicrohttpd knows one timeout, without progress. So each connection has a deadline of ours; at
 * its end the socket is shut down, and libmicrohttpd sees a client that has gone. It takes an
 * answer before it has read of a body or after all of it, so what is too much is read and
 * forgotten. */
#include "http-server/protocol.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
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

struct http1 {
	struct server server;
	struct MHD_Daemon *daemon;
	struct connection *connections;
	struct http1_request *suspended;
	unsigned int clients; /* SERVER_CLIENTS_… */
};

struct http1_request {
	struct server_request request;
	struct MHD_Connection *connection;
	struct connection *line;
	struct http1_request *next, **link; /* among the suspended; link NULL: it is not */
	struct MHD_Response *response;      /* the answer, until it is queued */
};

static struct http1 *http1_of(const struct server *s)
{
	return (struct http1 *)(uintptr_t)s;
}

static struct http1_request *own(const struct server_request *r)
{
	return (struct http1_request *)(uintptr_t)r;
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

/* A certificate that a client has shown: a chain to an authority, and made for clients. */
static int verify_shown(gnutls_session_t session, bool needed)
{
	gnutls_typed_vdata_st purpose = {
		.type = GNUTLS_DT_KEY_PURPOSE_OID,
		.data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT,
	};
	unsigned int n = 0, status = 0;

	if (!gnutls_certificate_get_peers(session, &n) || n == 0)
		return needed ? -1 : 0;
	if (gnutls_certificate_verify_peers(session, &purpose, 1, &status) < 0 || status)
		return -1;
	return 0;
}

static int verify_needed(gnutls_session_t session)
{
	return verify_shown(session, true);
}

static int verify_given(gnutls_session_t session)
{
	return verify_shown(session, false);
}

/* libmicrohttpd would take any certificate, and none, and leave the rest to each request. */
static void ask_client(unsigned int clients, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	gnutls_session_t session = info->tls_session;
	bool needed = clients & SERVER_CLIENTS_NEEDED;

	gnutls_certificate_server_set_request(session, needed ? GNUTLS_CERT_REQUIRE
							      : GNUTLS_CERT_REQUEST);
	if (clients & SERVER_CLIENTS_VERIFIED)
		gnutls_session_set_verify_function(session, needed ? verify_needed : verify_given);
}

static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct http1 *s = context;
	struct connection *line = *socket_context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		if (s->clients)
			ask_client(s->clients, connection);
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
		s->server.n_connections++;
		*socket_context = line;
	} else if (line) {
		check(s->server.n_connections > 0);
		*line->link = line->next;
		if (line->next)
			line->next->link = line->link;
		s->server.n_connections--;
		free(line);
		*socket_context = NULL;
	}
}

static int64_t allowed_ns(const struct http1 *s, const struct connection *line)
{
	const struct server_limits *limits = &s->server.limits;

	switch (line->phase) {
	case PHASE_IDLE:
		return limits->idle_s * NS_PER_SEC;
	case PHASE_HEAD:
	case PHASE_BODY:
		return limits->request_s * NS_PER_SEC;
	case PHASE_ANSWER:
		return limits->answer_s * NS_PER_SEC;
	case PHASE_OWNER:
		break;
	}
	return INT64_MAX;
}

static void cut_overdue(struct http1 *s)
{
	int64_t now = clock_mono();

	for (struct connection *line = s->connections; line; line = line->next)
		if (!line->cut && now - line->since_ns > allowed_ns(s, line)) {
			line->cut = true;
			shutdown(line->fd, SHUT_RDWR);
		}
}

/* Who waits for an answer of ours waits no longer than anybody else. */
static void answer_overdue(struct http1 *s)
{
	int64_t limit = s->server.limits.answer_s * NS_PER_SEC, now = clock_mono();
	struct http1_request *r = s->suspended;

	while (r) {
		struct http1_request *next = r->next;

		if (now - r->line->since_ns > limit)
			server_request_late(&r->request);
		r = next;
	}
}

static void on_completed(void *context, struct MHD_Connection *connection, void **request,
			 enum MHD_RequestTerminationCode code)
{
	struct http1_request *r = *request;

	if (!r)
		return;
	*request = NULL;
	check(!r->link);
	server_request_over(&r->request);
	enter(r->line, PHASE_IDLE);
	if (r->response)
		MHD_destroy_response(r->response);
	free(r);
}

/* Hands the answer to libmicrohttpd. */
static enum MHD_Result queue_answer(struct http1_request *r)
{
	enum MHD_Result rc;

	check(r->request.status != 0);
	if (!r->response)
		return MHD_NO; /* memory was short: the connection ends */
	enter(r->line, PHASE_ANSWER);
	rc = MHD_queue_response(r->connection, r->request.status, r->response);
	MHD_destroy_response(r->response);
	r->response = NULL;
	return rc;
}

static void http1_answer(struct server_request *request, const struct server_answer *answer)
{
	static const char empty[1] = "";
	struct http1_request *r = own(request);
	char seconds[16];

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

/* What the head alone decides. */
static void judge_head(struct server_request *r)
{
	struct str length = server_request_header(r, MHD_HTTP_HEADER_CONTENT_LENGTH);
	uint64_t n = 0;

	server_request_begin(r);
	if (length.n && !str_u64(length, &n))
		n = UINT64_MAX;
	server_request_expect(r, n);
}

static struct http1_request *request_new(struct http1 *s, struct MHD_Connection *connection,
					 const char *path, const char *method)
{
	struct connection *line = line_of(connection);
	struct http1_request *r = line ? calloc(1, sizeof(*r)) : NULL;

	if (!r)
		return NULL;
	r->connection = connection;
	r->line = line;
	server_request_init(&r->request, &s->server, method, str_of(path));
	return r;
}

static void suspend(struct http1 *s, struct http1_request *r)
{
	enter(r->line, PHASE_OWNER);
	r->next = s->suspended;
	r->link = &s->suspended;
	if (r->next)
		r->next->link = &r->next;
	s->suspended = r;
	MHD_suspend_connection(r->connection);
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *path,
			      const char *method, const char *version, const char *data,
			      size_t *n_data, void **request)
{
	struct http1 *s = context;
	struct http1_request *r = *request;

	if (!r) {
		r = request_new(s, connection, path, method);
		if (!r)
			return MHD_NO;
		*request = r;
		enter(r->line, PHASE_BODY);
		judge_head(&r->request);
		/* Without a body the next call is the last one; where none is read, this one. */
		if (!s->server.limits.max_body)
			server_request_whole(&r->request);
		return r->request.status ? queue_answer(r) : MHD_YES;
	}
	if (*n_data) {
		server_request_keep(&r->request, data, *n_data);
		*n_data = 0;
		return MHD_YES;
	}
	if (r->line->phase == PHASE_BODY)
		server_request_whole(&r->request);
	if (r->request.status)
		return queue_answer(r);
	suspend(s, r);
	return MHD_YES;
}

static struct str lookup(const struct server_request *r, enum MHD_ValueKind kind, const char *name)
{
	const char *value = NULL;
	size_t n = 0;

	if (MHD_lookup_connection_value_n(own(r)->connection, kind, name, strlen(name), &value,
					  &n) != MHD_YES ||
	    !value)
		return STR_NULL;
	return (struct str){value, n};
}

static struct str http1_query(const struct server_request *r, const char *name)
{
	return lookup(r, MHD_GET_ARGUMENT_KIND, name);
}

static struct str http1_header(const struct server_request *r, const char *name)
{
	return lookup(r, MHD_HEADER_KIND, name);
}

static int http1_socket(const struct server_request *r)
{
	return own(r)->line->fd;
}

static void http1_free(struct server *server)
{
	struct http1 *s = http1_of(server);

	while (s->suspended) /* libmicrohttpd wants none of these at its end */
		server_answer_text(&s->suspended->request, MHD_HTTP_SERVICE_UNAVAILABLE,
				   "stopping\n");
	MHD_stop_daemon(s->daemon);
	check(!s->connections && server->bodies == 0);
	free(s);
}

static int http1_fd(const struct server *s)
{
	return MHD_get_daemon_info(http1_of(s)->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

static void http1_connect(struct server *s, int fd, const union server_address *peer)
{
	socklen_t n = peer->any.sa_family == AF_INET6 ? sizeof(peer->v6) : sizeof(peer->v4);

	MHD_add_connection(http1_of(s)->daemon, fd, &peer->any, n);
}

static int64_t http1_run(struct server *server)
{
	struct http1 *s = http1_of(server);
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

static const struct server_protocol http1_protocol = {
	.queues = true,
	.free = http1_free,
	.fd = http1_fd,
	.run = http1_run,
	.connect = http1_connect,
	.query = http1_query,
	.header = http1_header,
	.socket = http1_socket,
	.answer = http1_answer,
};

int http1_open(const struct server_options *o, struct server **ret)
{
	struct http1 *s = calloc(1, sizeof(*s));
	unsigned int flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET;
	struct MHD_OptionItem tls[] = {
		{MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)o->cert},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)o->key},
		{o->client_ca ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0,
		 (void *)(uintptr_t)o->client_ca},
		{MHD_OPTION_END, 0, NULL},
	};

	if (!s)
		return -ENOMEM;
	s->server.protocol = &http1_protocol;
	s->clients = o->cert ? o->clients : 0;
	if (o->cert)
		flags |= MHD_USE_TLS;
	else
		tls[0] = tls[3];
	errno = 0;
	s->daemon = MHD_start_daemon(flags, 0, NULL, NULL, answer, s, MHD_OPTION_CONNECTION_LIMIT,
				     o->limits.connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				     o->limits.memory, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
				     s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
				     MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
	if (!s->daemon) {
		int code = errno ? -errno : -EIO;

		free(s);
		return code;
	}
	*ret = &s->server;
	return 0;
}
