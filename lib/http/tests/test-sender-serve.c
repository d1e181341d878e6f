/* SPDX-License-Identifier: Apache-2.0 */
/* The process's end of a sender, told what to do by the messages that an agent would send. */
#include "http/sender/sender.h"

#include "http/sender/channel.h"
#include "http/sender/wire.h"
#include "http/tests/test-exchange.h"
#include "testing/test.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static char hello[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

/* Does not cross: that there is one does. */
static int64_t never_read(void *context, char *to, size_t n)
{
	return -1;
}

#define MADE_BYTES 100000u

static void put_made(struct channel *c, uint64_t id, const char *url)
{
	const struct http_config config = {.follow_redirects = true};
	const struct http_request q = {.method = "POST",
				       .url = str_of(url),
				       .read = never_read,
				       .read_bytes = MADE_BYTES,
				       .timeout_ms = 60000};
	struct buf b = BUF_NULL;

	wire_put_request(&b, &config, &q);
	expect(!b.failed);
	expect_eq(channel_put(c, WIRE_REQUEST, id, buf_str(&b)), 0);
	buf_free(&b);
}

/* A process that finds both requests waiting: their connections are there at the same time. */
static pid_t serve_two(struct channel *c, struct test_server **ret)
{
	char url[64];
	int fds[2], status;
	pid_t pid;

	expect(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
	expect_eq(channel_init(c, fds[0], 1u << 20), 0);
	pid = fork();
	expect(pid >= 0);
	if (pid == 0) {
		close(fds[0]);
		raise(SIGSTOP);
		_exit(http_serve(fds[1]) < 0);
	}
	close(fds[1]);
	expect(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	*ret = test_server_new(serve_text, hello);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/", test_server_port(*ret));
	put_made(c, 1, url);
	put_made(c, 2, url);
	kill(pid, SIGCONT);
	return pid;
}

/* A request that is cancelled while the process waits for the body of another does not ask for its
 * own, which nobody would give: the other goes on. */
TEST(no_body_is_asked_for_that_was_cancelled)
{
	static char piece[CHANNEL_PIECE];
	struct channel_message m = {.type = WIRE_HELLO};
	uint64_t first = 0, n, left = MADE_BYTES;
	struct http_response answer;
	char text[WIRE_MAX_ERROR];
	struct test_server *server;
	struct channel c;
	pid_t pid = serve_two(&c, &server);
	int status;

	while (m.type != WIRE_DONE || m.id != first) {
		struct pollfd ready = {.fd = c.fd, .events = POLLIN};
		int r = channel_take(&c, &m);

		expect(r >= 0);
		if (r == 0)
			expect(poll(&ready, 1, 60000) == 1);
		if (r == 0 || m.type != WIRE_WANT)
			continue;
		if (!first) {
			first = m.id;
			expect_eq(channel_put(&c, WIRE_CANCEL, 3 - first, STR_NULL), 0);
		}
		expect_eq(m.id, first);
		expect(wire_get_number(m.payload, &n) && n <= sizeof(piece));
		n = n < left ? n : left;
		left -= n;
		expect_eq(channel_put(&c, WIRE_BODY, first, (struct str){piece, n}), 0);
	}
	expect_eq(wire_get_answer(m.payload, &answer, text), 0);
	expect_eq(answer.status, 200);
	close(c.fd);
	expect(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
	channel_fini(&c);
	test_server_free(server);
}
