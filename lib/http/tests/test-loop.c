/* SPDX-License-Identifier: Apache-2.0 */
/* The loop and the server of test-loop.h. */
#include "http/tests/test-loop.h"

#include "http/sender/sender.h"
#include "testing/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef SENDER

/* The process is a fork that serves; a test that is one process's is a test of two here. */
static int start(void *context, int *ret_socket, int *ret_pidfd)
{
	int fds[2];
	pid_t pid;

	expect(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
	pid = fork();
	expect(pid >= 0);
	if (pid == 0) {
		close(fds[0]);
		_exit(http_serve(fds[1]) < 0);
	}
	close(fds[1]);
	*ret_socket = fds[0];
	*ret_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return *ret_pidfd < 0 ? -errno : 0;
}

static void ended(void *context, const char *why, int64_t after_ms)
{
	fprintf(stderr, "# the process has ended: %s\n", why);
}

void test_loop_init(struct test_loop *loop)
{
	const struct http_process process = {NULL, start, ended};
	struct error err = ERROR_NULL;
	struct http_client *sender;
	struct http_loop hooks;

	/* Its own client is not used: the loop drives the other. */
	http_polled_hooks(&loop->poll, &hooks);
	if (http_sender_new(&hooks, &process, &sender, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
	loop->client = loop->poll.client = sender;
}

#else

void test_loop_init(struct test_loop *loop)
{
	struct error err = ERROR_NULL;

	if (http_polled_init(&loop->poll, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
	loop->client = loop->poll.client;
}

#endif

void test_loop_fini(struct test_loop *loop)
{
	http_client_free(loop->client);
	loop->poll.client = NULL;
	expect_eq(loop->poll.n_watched, 0);
	expect(loop->poll.deadline_ns == INT64_MAX);
	http_polled_fini(&loop->poll);
}

bool test_loop_until(struct test_loop *loop, const bool *flag, int64_t timeout_ms)
{
	return http_polled_until(&loop->poll, flag, timeout_ms);
}

struct test_server {
	int listener;
	uint16_t port;
	test_serve_fn serve;
	void *context;
	pthread_t thread;
};

static int listen_on_loopback(uint16_t *ret_port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	expect(fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0);
	expect(listen(fd, 64) == 0 && getsockname(fd, (struct sockaddr *)&a, &n) == 0);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

static void *serve_all(void *arg)
{
	struct test_server *server = arg;
	int fd;

	while ((fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		struct timeval limit = {.tv_sec = 20};

		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
		server->serve(fd, server->context);
		close(fd);
	}
	return NULL;
}

struct test_server *test_server_new(test_serve_fn serve, void *context)
{
	struct test_server *server = calloc(1, sizeof(*server));

	expect(server);
	server->serve = serve;
	server->context = context;
	server->listener = listen_on_loopback(&server->port);
	expect(pthread_create(&server->thread, NULL, serve_all, server) == 0);
	return server;
}

void test_server_free(struct test_server *server)
{
	shutdown(server->listener, SHUT_RDWR);
	pthread_join(server->thread, NULL);
	close(server->listener);
	free(server);
}

uint16_t test_server_port(const struct test_server *server)
{
	return server->port;
}

bool test_read_request(int fd, char *out)
{
	size_t n = 0, want = SIZE_MAX;

	while (n < want && n < TEST_REQUEST_MAX - 1) {
		ssize_t r = recv(fd, out + n, TEST_REQUEST_MAX - 1 - n, 0);
		const char *end, *length;

		if (r <= 0)
			return false;
		n += (size_t)r;
		out[n] = '\0';
		end = strstr(out, "\r\n\r\n");
		length = end ? strcasestr(out, "content-length:") : NULL;
		if (end)
			want = (size_t)(end + 4 - out) +
			       (length && length < end ? strtoul(length + 15, NULL, 10) : 0);
	}
	return true;
}

bool test_send(int fd, const char *data, size_t n)
{
	while (n) {
		ssize_t r = send(fd, data, n, MSG_NOSIGNAL);

		if (r <= 0)
			return false;
		data += r;
		n -= (size_t)r;
	}
	return true;
}

bool test_say(int fd, const char *text)
{
	return test_send(fd, text, strlen(text));
}

static bool is_free(uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons(port),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool is = fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0;

	expect(fd >= 0 && close(fd) == 0);
	return is;
}

/* Below the ports that the kernel chooses itself: one of those may be another test's a moment
 * later. */
uint16_t test_unused_port(void)
{
	uint16_t port = 20000;

	while (!is_free(port))
		expect(++port < 30000);
	return port;
}
