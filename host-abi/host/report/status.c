/* SPDX-License-Identifier: Apache-2.0 */
/* The status socket. Contracts in status.h. */
#include "host/report/status.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "host/services/reload-request.h"
#include "host/state.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define CLIENTS       16
#define REQUEST_BYTES 4096
#define CLIENT_NS     (5 * NS_PER_SEC)

struct client {
	struct status *status;
	struct loop_watch watch; /* fd -1: the place is free */
	struct loop_timer timer;
	struct buf request, answer;
	size_t sent;
	bool answering;
};

struct status {
	struct host *host;
	struct loop_watch listener;
	char *path;
	struct stat made; /* what the path was when we bound it */
	struct client clients[CLIENTS];
	size_t n_timers;
};

static void client_close(struct client *c)
{
	struct loop *loop = &c->status->host->loop;

	if (c->watch.fd < 0)
		return;
	loop_timer_cancel(loop, &c->timer);
	if (c->watch.id)
		loop_watch_remove(loop, &c->watch);
	close(c->watch.fd);
	c->watch.fd = -1;
	buf_free(&c->request);
	buf_free(&c->answer);
	c->sent = 0;
	c->answering = false;
	/* A place is free again: those in the backlog may come. */
	loop_watch_arm(loop, &c->status->listener, EPOLLIN);
}

static void client_late(struct loop_timer *timer)
{
	client_close(container_of(timer, struct client, timer));
}

static void answer(struct client *c, const char *status, const char *type, struct str body)
{
	buf_printf(&c->answer,
		   "HTTP/1.0 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		   "Connection: close\r\n\r\n",
		   status, type, body.n);
	buf_str_append(&c->answer, body);
	c->answering = true;
}

static const struct page {
	const char *path, *type;
	int (*make)(struct host *host, struct buf *out);
} pages[] = {
	{"/metrics", "text/plain; version=0.0.4; charset=utf-8", host_metrics},
	{"/health", "application/json", host_health_json},
	{"/targets", "application/json", host_targets_json},
};

static void respond(struct client *c, struct str path)
{
	const struct page *page = NULL;
	struct buf body = BUF_NULL;
	int r = -ENOENT;

	for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++)
		if (str_is(path, pages[i].path))
			page = &pages[i];
	if (page)
		r = page->make(c->status->host, &body);
	if (r == 0)
		answer(c, "200 OK", page->type, buf_str(&body));
	else if (r == -ENOENT)
		answer(c, "404 Not Found", "text/plain",
		       STR("there are /metrics, /health and /targets, and POST of /-/reload\n"));
	else if (r == -EBUSY)
		answer(c, "503 Service Unavailable", "text/plain",
		       STR("a component is at work and cannot look now; ask again\n"));
	else
		answer(c, "500 Internal Server Error", "text/plain", STR("out of memory\n"));
	buf_free(&body);
}

static void answer_reload(struct client *c, int r, const struct error *err)
{
	struct buf body = BUF_NULL;
	const char *status = "503 Service Unavailable";

	if (r == 0) {
		answer(c, "200 OK", "text/plain", STR("reloaded\n"));
	} else if (r == -EINPROGRESS) {
		answer(c, "202 Accepted", "text/plain",
		       STR("not reloaded yet: the new configuration is taken when a value is "
			   "there that it waits for; the log says whose\n"));
	} else if (r == -EOPNOTSUPP) {
		answer(c, "501 Not Supported", "text/plain",
		       STR("nobody reads a configuration here\n"));
	} else if (r == -EBUSY || r == -ECANCELED) {
		answer(c, status, "text/plain",
		       STR("not reloaded now: the configuration is being changed, or the agent "
			   "begins or ends\n"));
	} else {
		if (r != -ENOMEM && r != -ETIMEDOUT)
			status = "400 Bad Request";
		buf_printf(&body, "not reloaded, the old configuration goes on: %s\n",
			   err->code ? err->text : strerror(-r));
		answer(c, status, "text/plain", buf_str(&body));
		buf_free(&body);
	}
}

/* The loop turns while a configuration is changed. The client is silent then, and its place stays
 * its own, since its time is stopped. */
static void reload(struct client *c)
{
	struct loop *loop = &c->status->host->loop;
	struct error err = ERROR_NULL;
	int r;

	loop_timer_cancel(loop, &c->timer);
	r = reload_now(c->status->host, &err);
	check(c->watch.fd >= 0 && !c->answering);
	loop_timer_set(loop, &c->timer, clock_mono() + CLIENT_NS);
	answer_reload(c, r, &err);
}

/* Whether the request is whole, by its empty line. */
static bool whole(struct str request)
{
	return str_search(request, STR("\r\n\r\n")) < request.n ||
	       str_search(request, STR("\n\n")) < request.n;
}

static void parse(struct client *c)
{
	struct str line = buf_str(&c->request), method, path;

	line = str_cut(&line, '\n');
	method = str_cut(&line, ' ');
	path = str_trim(str_cut(&line, ' '));
	path = str_first(path, str_find(path, '?'));
	if (str_is(method, "GET") && path.n > 0 && path.p[0] == '/')
		respond(c, path);
	else if (str_is(method, "POST") && str_is(path, "/-/reload"))
		reload(c);
	else
		answer(c, "400 Bad Request", "text/plain",
		       STR("this answers GET requests, and POST of /-/reload\n"));
}

/* True when there is more to come. */
static bool read_request(struct client *c)
{
	char chunk[1024];
	ssize_t n;

	while ((n = read(c->watch.fd, chunk, sizeof(chunk))) > 0) {
		buf_append(&c->request, chunk, (size_t)n);
		if (c->request.failed || whole(buf_str(&c->request))) {
			parse(c);
			return true;
		}
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static bool send_answer(struct client *c)
{
	while (c->sent < c->answer.n) {
		ssize_t n = send(c->watch.fd, c->answer.p + c->sent, c->answer.n - c->sent,
				 MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		c->sent += (size_t)n;
		check(c->sent <= c->answer.n);
	}
	return false;
}

static void client_ready(struct loop_watch *w, uint32_t events)
{
	struct client *c = container_of(w, struct client, watch);
	bool more = true;

	if (!c->answering)
		more = read_request(c);
	if (more && c->answering)
		more = !c->answer.failed && send_answer(c);
	if (!more ||
	    loop_watch_arm(&c->status->host->loop, w, c->answering ? EPOLLOUT : EPOLLIN) < 0)
		client_close(c);
}

static void client_open(struct client *c, int fd)
{
	struct loop *loop = &c->status->host->loop;

	check(c->watch.fd < 0 && c->request.n == 0 && c->answer.n == 0);
	c->watch = (struct loop_watch){.ready = client_ready, .fd = fd};
	c->request.limit = REQUEST_BYTES;
	if (loop_watch_add(loop, &c->watch, EPOLLIN) < 0)
		client_close(c);
	else
		loop_timer_set(loop, &c->timer, clock_mono() + CLIENT_NS);
}

/* While all places are taken the listener is not armed; who waits, waits. */
static void accept_ready(struct loop_watch *w, uint32_t events)
{
	struct status *s = container_of(w, struct status, listener);

	for (size_t i = 0; i < CLIENTS; i++) {
		int fd;

		if (s->clients[i].watch.fd >= 0)
			continue;
		fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0) {
			loop_watch_arm(&s->host->loop, w, EPOLLIN);
			return;
		}
		client_open(&s->clients[i], fd);
	}
}

static bool somebody_answers(const struct sockaddr_un *address)
{
	_cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return true;
	return connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
	       errno != ECONNREFUSED;
}

static int bind_at(int fd, const struct sockaddr_un *address, struct error *err)
{
	const struct sockaddr *generic = (const struct sockaddr *)address;
	struct stat st;

	if (bind(fd, generic, sizeof(*address)) == 0)
		return 0;
	if (errno != EADDRINUSE)
		return error_errno(err, -errno, "cannot make the status socket %s",
				   address->sun_path);
	if (lstat(address->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return error_set(err, -EEXIST,
				 "%s exists and is no socket; give --status another path",
				 address->sun_path);
	if (somebody_answers(address))
		return error_set(err, -EADDRINUSE,
				 "another process answers at %s; give --status another path",
				 address->sun_path);
	unlink(address->sun_path);
	if (bind(fd, generic, sizeof(*address)) < 0)
		return error_errno(err, -errno, "cannot make the status socket %s",
				   address->sun_path);
	return 0;
}

static int listen_at(struct status *s, const char *path, struct error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, r;

	if (strlen(path) >= sizeof(address.sun_path))
		return error_set(err, -ENAMETOOLONG,
				 "the path of the status socket is longer than %zu bytes: %s",
				 sizeof(address.sun_path) - 1, path);
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_errno(err, -errno, "cannot make the status socket");
	s->listener.fd = fd;
	/* Before bind: then it never was wider open. */
	if (fchmod(fd, 0600) < 0)
		return error_errno(err, -errno, "cannot protect the status socket");
	r = bind_at(fd, &address, err);
	if (r < 0)
		return r;
	s->path = str_dup(str_of(path));
	if (!s->path) {
		unlink(path);
		return -ENOMEM;
	}
	if (lstat(path, &s->made) < 0 || listen(fd, CLIENTS) < 0)
		return error_errno(err, -errno, "cannot listen at %s", path);
	r = loop_watch_add(&s->host->loop, &s->listener, EPOLLIN);
	return r < 0 ? error_errno(err, r, "cannot watch %s", path) : 0;
}

int status_new(struct host *host, const char *path, struct status **ret, struct error *err)
{
	struct status *s = calloc(1, sizeof(*s));
	int r = 0;

	if (!s)
		return -ENOMEM;
	s->host = host;
	s->listener = (struct loop_watch){.ready = accept_ready, .fd = -1};
	for (size_t i = 0; i < CLIENTS; i++) {
		s->clients[i].status = s;
		s->clients[i].watch.fd = -1;
	}
	while (s->n_timers < CLIENTS && r == 0) {
		r = loop_timer_init(&host->loop, &s->clients[s->n_timers].timer, client_late);
		s->n_timers += r == 0;
	}
	if (r == 0)
		r = listen_at(s, path, err);
	if (r < 0) {
		status_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void status_free(struct status *s)
{
	struct stat now;

	if (!s)
		return;
	for (size_t i = 0; i < CLIENTS; i++)
		client_close(&s->clients[i]);
	for (size_t i = 0; i < s->n_timers; i++)
		loop_timer_fini(&s->host->loop, &s->clients[i].timer);
	if (s->listener.id)
		loop_watch_remove(&s->host->loop, &s->listener);
	if (s->listener.fd >= 0)
		close(s->listener.fd);
	if (s->path && lstat(s->path, &now) == 0 && now.st_ino == s->made.st_ino &&
	    now.st_dev == s->made.st_dev)
		unlink(s->path);
	free(s->path);
	free(s);
}
