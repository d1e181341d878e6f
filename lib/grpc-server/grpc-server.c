/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC over libnghttp2's sessions, with sockets of ours in an epoll, whose descriptor is handed to
 * an owner's loop. Contract in grpc-server.h.
 *
 * What a client may cost is bounded: calls of a connection at once, the head and the message of
 * each, and the time of all that it does. Nothing is read from one that does not take what it is
 * sent, so what waits for it does not grow; floods of frames that are no calls are ended by
 * libnghttp2. */
#include "grpc-server/private.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CALLS      64         /* of a connection at once */
#define WINDOW     (1u << 20) /* what a client may send of a call before it hears of it */
#define EVENTS     64
#define READ_BYTES 16384
#define READ_TURNS 16 /* so that others get their turn */
#define FRAMES     (8 * CALLS) /* that wait for a client; who does no harm causes fewer */
#define TICK_MS    1000

static struct grpc_server *grpc_of(const struct server *s)
{
	return (struct grpc_server *)(uintptr_t)s;
}

static void peer_free(struct peer *p)
{
	while (p->calls)
		call_free(p->calls);
	nghttp2_session_del(p->session);
	/* A child that has not yet called exec holds the socket, and with it what epoll knows. */
	epoll_ctl(p->server->epoll, EPOLL_CTL_DEL, p->fd, NULL);
	close(p->fd);
	*p->link = p->next;
	if (p->next)
		p->next->link = p->link;
	check(p->server->server.n_connections > 0);
	p->server->server.n_connections--;
	free(p);
}

static bool wait_for(struct peer *p, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = p};

	if (p->events == events)
		return true;
	p->events = events;
	return epoll_ctl(p->server->epoll, EPOLL_CTL_MOD, p->fd, &event) == 0;
}

/* Sends what the socket takes. False: the connection has ended. */
static bool flush(struct peer *p)
{
	ssize_t n;

	while (p->greeted) {
		if (p->n_out == 0) {
			n = nghttp2_session_mem_send(p->session, &p->out);
			if (n < 0)
				return false;
			if (n == 0)
				break;
			p->n_out = (size_t)n;
		}
		n = send(p->fd, p->out, p->n_out, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0)
			return false;
		p->out += n;
		p->n_out -= (size_t)n;
	}
	if (!wait_for(p, p->n_out ? EPOLLOUT : EPOLLIN))
		return false;
	return p->n_out || nghttp2_session_want_read(p->session) ||
	       nghttp2_session_want_write(p->session);
}

/* Whoever takes this for a port of HTTP/1.1 is told. */
static void explain(const struct peer *p)
{
	static const char text[] =
		"HTTP/1.1 505 HTTP Version Not Supported\r\n"
		"Content-Type: text/plain\r\nConnection: close\r\n\r\n"
		"gRPC is spoken here, over HTTP/2; send HTTP/1.1 to the other port\n";

	send(p->fd, text, sizeof(text) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* False: the connection has ended. */
static bool receive(struct peer *p)
{
	uint8_t bytes[READ_BYTES];

	for (int i = 0; i < READ_TURNS; i++) {
		ssize_t n = recv(p->fd, bytes, sizeof(bytes), MSG_DONTWAIT), taken;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n <= 0)
			return false;
		taken = nghttp2_session_mem_recv(p->session, bytes, (size_t)n);
		if (taken == NGHTTP2_ERR_BAD_CLIENT_MAGIC)
			explain(p);
		if (taken != n || nghttp2_session_get_outbound_queue_size(p->session) > FRAMES)
			return false;
	}
	return true;
}

static bool peer_open(struct grpc_server *s, int fd)
{
	const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, CALLS},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)s->server.limits.memory},
	};
	struct peer *p = calloc(1, sizeof(*p));
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = p};
	int one = 1;

	if (!p)
		return false;
	p->server = s;
	p->fd = fd;
	p->events = EPOLLIN;
	p->since_ns = clock_mono();
	if (nghttp2_session_server_new(&p->session, s->callbacks, p) != 0) {
		free(p);
		return false;
	}
	if (nghttp2_submit_settings(p->session, NGHTTP2_FLAG_NONE, settings,
				    sizeof(settings) / sizeof(settings[0])) != 0 ||
	    nghttp2_session_set_local_window_size(p->session, NGHTTP2_FLAG_NONE, 0, WINDOW) != 0 ||
	    epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
		nghttp2_session_del(p->session);
		free(p);
		return false;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	p->next = s->peers;
	p->link = &s->peers;
	if (p->next)
		p->next->link = &p->next;
	s->peers = p;
	s->server.n_connections++;
	return true;
}

static void grpc_connect(struct server *s, int fd, const union server_address *peer)
{
	if (!peer_open(grpc_of(s), fd))
		close(fd);
}

static bool is_over(int64_t since_ns, unsigned int seconds)
{
	return clock_mono() - since_ns > seconds * NS_PER_SEC;
}

/* What has taken too long. False: the connection is to be cut off. */
static bool keep_time(struct peer *p)
{
	const struct server_limits *limits = &p->server->server.limits;
	struct call *c = p->calls, *next;

	for (; c; c = next) {
		next = c->next;
		if (!is_over(c->since_ns,
			     c->request.status || c->whole ? limits->answer_s : limits->request_s))
			continue;
		if (c->request.status) /* the answer is not taken */
			return false;
		if (c->whole)
			server_request_late(&c->request);
		else
			server_answer_text(&c->request, 408, "the call took too long to arrive");
	}
	if (p->calls)
		return true;
	if (p->leaving || !p->greeted)
		return !is_over(p->since_ns, p->leaving ? limits->answer_s : limits->request_s);
	if (is_over(p->since_ns, limits->idle_s)) {
		nghttp2_session_terminate_session(p->session, NGHTTP2_NO_ERROR);
		p->leaving = true;
		p->since_ns = clock_mono();
	}
	return true;
}

/* Who has said something, and whose socket takes more. */
static void attend(struct grpc_server *s)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(s->epoll, events, EVENTS, 0);

	for (int i = 0; i < n; i++) {
		struct peer *p = events[i].data.ptr;

		if ((p->n_out == 0 && !receive(p)) || !flush(p))
			peer_free(p);
	}
}

static int64_t grpc_run(struct server *server)
{
	struct grpc_server *s = grpc_of(server);
	bool late = clock_mono() >= s->tick_ns;
	struct peer *p, *next;

	attend(s);
	if (late)
		s->tick_ns = clock_mono() + TICK_MS * NS_PER_MSEC;
	for (p = s->peers; p; p = next) {
		next = p->next;
		if ((late && !keep_time(p)) ||
		    (p->n_out == 0 && nghttp2_session_want_write(p->session) && !flush(p)))
			peer_free(p);
	}
	return s->peers ? TICK_MS : -1;
}

/* As far as the socket takes it at once: calls are answered, and whoever is there is told to go.
 * What has come meanwhile is read: a socket that is closed over it takes back what was sent. */
static void dismiss(struct peer *p)
{
	uint8_t rest[READ_BYTES];

	for (struct call *c = p->calls; c; c = c->next)
		server_answer_text(&c->request, 503, "stopping");
	nghttp2_submit_goaway(p->session, NGHTTP2_FLAG_NONE,
			      nghttp2_session_get_last_proc_stream_id(p->session),
			      NGHTTP2_NO_ERROR, NULL, 0);
	flush(p);
	shutdown(p->fd, SHUT_WR);
	for (int i = 0; i < READ_TURNS && recv(p->fd, rest, sizeof(rest), MSG_DONTWAIT) > 0; i++)
		;
}

static void grpc_free(struct server *server)
{
	struct grpc_server *s = grpc_of(server);

	while (s->peers) {
		dismiss(s->peers);
		peer_free(s->peers);
	}
	check(server->n_connections == 0 && server->bodies == 0);
	nghttp2_session_callbacks_del(s->callbacks);
	close(s->epoll);
	free(s);
}

static int grpc_fd(const struct server *s)
{
	return grpc_of(s)->epoll;
}

static struct str grpc_query(const struct server_request *r, const char *name)
{
	return STR_NULL;
}

static int grpc_socket(const struct server_request *r)
{
	return call_of(r)->peer->fd;
}

static const struct server_protocol grpc_protocol = {
	.free = grpc_free,
	.fd = grpc_fd,
	.run = grpc_run,
	.connect = grpc_connect,
	.query = grpc_query,
	.header = call_header,
	.socket = grpc_socket,
	.answer = call_answer,
};

int grpc_server_open(const struct server_options *options, struct server **ret)
{
	struct grpc_server *s = calloc(1, sizeof(*s));
	int rc;

	check(!options->cert);
	if (!s)
		return -ENOMEM;
	s->server.protocol = &grpc_protocol;
	rc = call_callbacks(&s->callbacks);
	if (rc)
		goto free_server;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0) {
		rc = -errno;
		goto free_callbacks;
	}
	*ret = &s->server;
	return 0;

free_callbacks:
	nghttp2_session_callbacks_del(s->callbacks);
free_server:
	free(s);
	return rc;
}
