/* SPDX-License-Identifier: Apache-2.0 */
/* Thousands of targets in one thread: 127.0.A.B is target A * 256 + B, and all have one port, since
 * the whole of 127.0.0.0/8 is this machine. The socket takes from the loopback device alone.
 *
 *     target-farm PROFILE      prints its port, and serves until it is ended
 *
 * The path chooses what a target answers: the profile's bytes, or something worse. GET /counts of
 * any target tells how many other connections are open, and on a line each how often each target
 * was asked. */
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define N_TARGETS   65536
#define MAX_REQUEST 4096
#define MAX_PROFILE (1u << 20)
#define DRIP_MS     100

enum after {
	KEEP,    /* the next request */
	CLOSE,   /* the connection is closed */
	DRIP,    /* a byte now and then */
	ENDLESS, /* as much as goes */
};

static const struct {
	const char *path, *answer; /* NULL: the profile */
	enum after after;
} behaviours[] = {
	{"/profile", NULL, KEEP},
	{"/once", NULL, CLOSE},
	{"/error", "HTTP/1.1 500 No\r\nContent-Length: 3\r\n\r\nno\n", KEEP},
	{"/away", "HTTP/1.1 302 Away\r\nContent-Length: 0\r\nLocation: /profile\r\n\r\n", KEEP},
	{"/circle", "HTTP/1.1 302 Away\r\nContent-Length: 0\r\nLocation: /circle\r\n\r\n", KEEP},
	{"/text", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>", KEEP},
	{"/closing", "", CLOSE},
	{"/mute", "", KEEP},
	{"/dripping", "HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n", DRIP},
	{"/endless", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", ENDLESS},
};

struct connection {
	struct connection *next, **link; /* of those that drip; NULL: it does not */
	int fd;
	unsigned target;
	bool endless;
	size_t n;
	char request[MAX_REQUEST];
};

static struct {
	int epoll_fd, listener;
	char profile[MAX_PROFILE + 256]; /* with its head */
	size_t profile_bytes;
	unsigned long long n_open;
	unsigned asked[N_TARGETS];
	struct connection *dripping;
} farm;

__attribute__((noreturn)) static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void end(struct connection *c)
{
	if (c->link)
		*c->link = c->next;
	if (c->link && c->next)
		c->next->link = c->link;
	close(c->fd);
	free(c);
	farm.n_open--;
}

/* False: the other side has gone. Answers fit into the buffer of a socket. */
static bool put(const struct connection *c, const char *bytes, size_t n)
{
	return send(c->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n;
}

/* As much as goes. */
static bool pour(const struct connection *c, const char *bytes, size_t n)
{
	return send(c->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT) > 0 || errno == EAGAIN;
}

static bool put_counts(const struct connection *c)
{
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	bool good;

	if (!out)
		die("memory");
	fprintf(out, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n%llu\n", farm.n_open - 1);
	for (unsigned i = 0; i < N_TARGETS; i++)
		if (farm.asked[i])
			fprintf(out, "%u %u\n", i, farm.asked[i]);
	fclose(out);
	good = put(c, text, n);
	free(text);
	return good;
}

static void watch(struct connection *c, int op, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = c};

	if (epoll_ctl(farm.epoll_fd, op, c ? c->fd : farm.listener, &event) < 0)
		die("epoll_ctl");
}

/* False: it is over. */
static bool respond(struct connection *c)
{
	char path[64] = "";
	size_t i = 0;

	sscanf(c->request, "GET %63[^ ?]", path);
	if (strcmp(path, "/counts") == 0) {
		put_counts(c);
		return false;
	}
	farm.asked[c->target]++;
	while (i < sizeof(behaviours) / sizeof(*behaviours) &&
	       strcmp(path, behaviours[i].path) != 0)
		i++;
	if (i == sizeof(behaviours) / sizeof(*behaviours))
		return false;
	if (!(behaviours[i].answer ? put(c, behaviours[i].answer, strlen(behaviours[i].answer))
				   : put(c, farm.profile, farm.profile_bytes)))
		return false;
	if (behaviours[i].after == ENDLESS) {
		c->endless = true;
		watch(c, EPOLL_CTL_MOD, EPOLLOUT);
	}
	if (behaviours[i].after == DRIP) {
		c->link = &farm.dripping;
		c->next = farm.dripping;
		if (c->next)
			c->next->link = &c->next;
		farm.dripping = c;
	}
	return behaviours[i].after != CLOSE;
}

/* Requests have no body and come one at a time. */
static bool receive(struct connection *c)
{
	ssize_t got = recv(c->fd, c->request + c->n, sizeof(c->request) - 1 - c->n, MSG_DONTWAIT);

	if (got <= 0)
		return got < 0 && errno == EAGAIN;
	c->n += (size_t)got;
	c->request[c->n] = '\0';
	if (!strstr(c->request, "\r\n\r\n"))
		return c->n < sizeof(c->request) - 1;
	c->n = 0;
	return respond(c);
}

static void take_connection(void)
{
	struct sockaddr_in here;
	socklen_t size = sizeof(here);
	int fd = accept4(farm.listener, NULL, NULL, SOCK_CLOEXEC);
	struct connection *c = fd < 0 ? NULL : calloc(1, sizeof(*c));

	if (fd < 0)
		return;
	if (!c || getsockname(fd, (struct sockaddr *)&here, &size) < 0)
		die("a connection");
	c->fd = fd;
	c->target = ntohl(here.sin_addr.s_addr) & (N_TARGETS - 1);
	farm.n_open++;
	watch(c, EPOLL_CTL_ADD, EPOLLIN);
}

static void drip(void)
{
	for (struct connection *c = farm.dripping, *next; c; c = next) {
		next = c->next;
		if (!put(c, "\x0a", 1))
			end(c);
	}
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

__attribute__((noreturn)) static void serve(void)
{
	static const char piece[4096] = "\x0a";
	struct epoll_event events[64];
	int64_t dripped = now_ms();

	for (;;) {
		int n = epoll_wait(farm.epoll_fd, events, 64, farm.dripping ? DRIP_MS : -1);

		for (int i = 0; i < n; i++) {
			struct connection *c = events[i].data.ptr;

			if (!c)
				take_connection();
			else if (c->endless ? !pour(c, piece, sizeof(piece)) : !receive(c))
				end(c);
		}
		if (now_ms() - dripped >= DRIP_MS) {
			dripped = now_ms();
			drip();
		}
	}
}

static void read_profile(const char *path)
{
	static char bytes[MAX_PROFILE];
	FILE *in = fopen(path, "rb");
	size_t n = in ? fread(bytes, 1, sizeof(bytes), in) : 0;

	if (!n)
		die(path);
	fclose(in);
	farm.profile_bytes =
		(size_t)snprintf(farm.profile, sizeof(farm.profile),
				 "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
				 "X-Content-Type-Options: nosniff\r\nContent-Length: %zu\r\n\r\n",
				 n);
	memcpy(farm.profile + farm.profile_bytes, bytes, n);
	farm.profile_bytes += n;
}

int main(int argc, char **argv)
{
	struct sockaddr_in here = {.sin_family = AF_INET};
	socklen_t size = sizeof(here);
	struct rlimit limit;

	if (argc != 2)
		return 2;
	read_profile(argv[1]);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	farm.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	farm.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (setsockopt(farm.listener, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3) < 0 ||
	    bind(farm.listener, (struct sockaddr *)&here, size) < 0 ||
	    listen(farm.listener, 4096) < 0 ||
	    getsockname(farm.listener, (struct sockaddr *)&here, &size) < 0)
		die("cannot listen on the loopback device");
	watch(NULL, EPOLL_CTL_ADD, EPOLLIN);
	printf("%d\n", ntohs(here.sin_port));
	fflush(stdout);
	serve();
}
