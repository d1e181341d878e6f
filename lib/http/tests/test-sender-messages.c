/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between an agent and its sender: whole ones, and what is none. */
#include "http/sender/channel.h"
#include "http/sender/wire.h"
#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct http_header headers[] = {{STR("X-A"), STR("1")}, {STR("X-B"), STR("")}};
static const struct http_config full = {
	.bearer_token = STR("t"),
	.proxy_url = STR("http://p"),
	.ca_pem = STR("pem"),
	.insecure_skip_verify = true,
	.enable_http2 = true,
	.headers = headers,
	.n_headers = 2,
};
static const struct http_request asked = {
	.method = "PUT",
	.url = STR("http://a/"),
	.path = "b",
	.more_headers = headers,
	.n_more_headers = 1,
	.body = STR("body"),
	.timeout_ms = 7,
	.stall_ms = 8,
	.max_response = UINT64_MAX,
	.uncompressed = true,
	.wanted = {"grpc-status", "grpc-message"},
};

static int read_request(void *context)
{
	struct wire_request q;
	int r = wire_get_request(buf_str(context), &q);

	if (r == 0)
		wire_request_fini(&q);
	return r;
}

/* What is put is what is got; all of it is looked at, and less of it is none. */
TEST(requests_cross_whole)
{
	struct buf b = BUF_NULL;
	struct wire_request q;

	wire_put_request(&b, &full, &asked);
	expect(!b.failed);
	expect_eq(wire_get_request(buf_str(&b), &q), 0);
	expect_str(q.config.bearer_token, "t");
	expect_str(q.config.proxy_url, "http://p");
	expect(!q.config.no_proxy.p && !q.config.cert_pem.p);
	expect(q.config.insecure_skip_verify && q.config.enable_http2);
	expect(!q.config.follow_redirects && q.config.n_headers == 2);
	expect_str(q.config.headers[0].name, "X-A");
	expect(q.config.headers[1].value.p && q.config.headers[1].value.n == 0);
	expect_str(str_of(q.request.method), "PUT");
	expect_str(str_of(q.request.path), "b");
	expect_str(q.request.url, "http://a/");
	expect(q.request.n_headers == 0 && q.request.n_more_headers == 1);
	expect(q.request.timeout_ms == 7 && q.request.stall_ms == 8 && q.body_bytes == 4);
	expect(q.request.max_response == UINT64_MAX && q.request.uncompressed && !q.request.http2);
	expect_str(str_of(q.request.wanted[1]), "grpc-message");
	expect(!q.request.wanted[2] && q.calls == 0);
	wire_request_fini(&q);
	test_each_failing_allocation(read_request, &b);
	for (size_t n = 0; n < b.n; n++) {
		struct buf less = BUF_NULL;

		buf_append(&less, b.p, n);
		expect_eq(read_request(&less), -EBADMSG);
		buf_free(&less);
	}
	buf_putc(&b, 'x');
	expect_eq(read_request(&b), -EBADMSG);
	buf_free(&b);
}

static const struct http_response ok = {
	.status = 200,
	.retry_after_ms = -1,
	.sent = true,
	.elapsed_ns = 5,
	.content_type = STR("text/plain"),
	.wanted = {STR("0"), STR("a\nb")},
};

static int read_answer(struct str message)
{
	char text[WIRE_MAX_ERROR];
	struct http_response a;

	return wire_get_answer(message, &a, text);
}

/* What is put is what is got, but for control characters; and a part of it is none. */
TEST(answers_cross_whole)
{
	char text[WIRE_MAX_ERROR];
	struct buf b = BUF_NULL;
	struct http_response a;

	wire_put_answer(&b, &ok);
	expect_eq(wire_get_answer(buf_str(&b), &a, text), 0);
	expect(a.status == 200 && a.result == 0 && a.sent && a.retry_after_ms == -1);
	expect_str(a.content_type, "text/plain");
	expect_str(a.wanted[1], "a b");
	expect(!a.wanted[2].p && !a.error[0]);
	for (size_t n = 0; n < b.n; n++)
		expect_eq(read_answer(str_first(buf_str(&b), n)), -EBADMSG);
	buf_putc(&b, 'x');
	expect_eq(read_answer(buf_str(&b)), -EBADMSG);
	buf_free(&b);
}

/* The longest wait is one. */
TEST(answers_may_ask_for_a_month)
{
	const struct http_response later = {.status = 429,
					    .retry_after_ms = HTTP_MAX_RETRY_AFTER_MS};
	struct buf b = BUF_NULL;

	wire_put_answer(&b, &later);
	expect_eq(read_answer(buf_str(&b)), 0);
	buf_free(&b);
}

/* What the other end would not take is not put, since it would end for it. */
TEST(requests_with_too_many_headers_are_not_put)
{
	static struct http_header many[4096];
	struct http_request q = asked;
	struct buf b = BUF_NULL;

	for (size_t i = 0; i < 4096; i++)
		many[i] = (struct http_header){STR("X-A"), STR("1")};
	q.headers = many;
	q.n_headers = 4095;
	wire_put_request(&b, &full, &q);
	expect_eq(b.failed ? -EBADMSG : read_request(&b), 0);
	buf_free(&b);
	q.n_headers = 4096;
	wire_put_request(&b, &full, &q);
	expect(b.failed);
	buf_free(&b);
}

/* Neither an error with a status, nor an end without a cause, nor a success that is negative, nor a
 * wait that no client of ours would report. */
TEST(answers_that_cannot_be_are_none)
{
	static const struct http_response rows[] = {
		{.status = 200, .result = -EIO},
		{.status = 0},
		{.status = 1000},
		{.status = -1},
		{.result = 1},
		{.result = -5000},
		{.status = 200, .retry_after_ms = -2},
		{.status = 429, .retry_after_ms = HTTP_MAX_RETRY_AFTER_MS + 1},
		{.status = 429, .retry_after_ms = INT64_MAX},
		{.status = 200, .elapsed_ns = -1},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct buf b = BUF_NULL;

		wire_put_answer(&b, &rows[i]);
		if (read_answer(buf_str(&b)) != -EBADMSG)
			test_fail(__FILE__, __LINE__, "row %zu is taken", i);
		buf_free(&b);
	}
}

static void open_pair(struct channel ends[2], size_t limit)
{
	int fds[2];

	expect(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
	for (int i = 0; i < 2; i++)
		expect_eq(channel_init(&ends[i], fds[i], limit), 0);
}

static void close_pair(struct channel ends[2])
{
	for (int i = 0; i < 2; i++) {
		close(ends[i].fd);
		channel_fini(&ends[i]);
	}
}

/* A message of many packets arrives as one, also where the socket is full in between, and in the
 * order of those around it. */
TEST(large_messages_wait_for_the_socket)
{
	size_t n = 5u << 20;
	char *bytes = malloc(n);
	struct channel_message m;
	struct channel ends[2];
	int r;

	expect(bytes);
	for (size_t i = 0; i < n; i++)
		bytes[i] = (char)(i * 7 >> 3);
	open_pair(ends, 8u << 20);
	expect_eq(channel_put(&ends[0], 1, 10, STR("before")), 0);
	expect_eq(channel_put(&ends[0], 2, 11, (struct str){bytes, n}), 0);
	expect_eq(channel_put(&ends[0], 3, 12, STR_NULL), 0);
	expect(channel_waits(&ends[0]) && ends[0].n_gone < ends[0].n_put);
	expect_eq(channel_take(&ends[1], &m), 1);
	expect(m.type == 1 && m.id == 10);
	expect_str(m.payload, "before");
	while ((r = channel_take(&ends[1], &m)) == 0)
		expect_eq(channel_flush(&ends[0]), 0);
	expect(r == 1 && m.type == 2 && m.id == 11 && m.payload.n == n);
	expect_eq(memcmp(m.payload.p, bytes, n), 0);
	expect_eq(channel_flush(&ends[0]), 0);
	expect_eq(channel_take(&ends[1], &m), 1);
	expect(m.type == 3 && m.payload.n == 0 && !channel_waits(&ends[0]));
	expect_eq(ends[0].n_gone, ends[0].n_put);
	expect_eq(channel_take(&ends[1], &m), 0);
	close_pair(ends);
	free(bytes);
}

/* What an end has said before it closed can be taken, though it has not read all, which the socket
 * says first: to whoever takes, or to whoever puts. */
TEST(what_was_said_is_there_after_the_end)
{
	for (int puts = 0; puts < 2; puts++) {
		struct channel_message m;
		struct channel ends[2];

		open_pair(ends, 1000);
		expect_eq(channel_put(&ends[1], 1, 10, STR("unread")), 0);
		expect_eq(channel_put(&ends[0], 2, 11, STR("said")), 0);
		close(ends[0].fd);
		ends[0].fd = dup(ends[1].fd); /* for close_pair */
		if (puts)
			expect_eq(channel_put(&ends[1], 1, 12, STR_NULL), -EPIPE);
		expect_eq(channel_take(&ends[1], &m), 1);
		expect(m.type == 2 && m.id == 11);
		expect_str(m.payload, "said");
		expect_eq(channel_take(&ends[1], &m), -EPIPE);
		close_pair(ends);
	}
}

static int put_much(void *context)
{
	struct channel ends[2];
	char *bytes = calloc(1, 300000);
	int r = bytes ? 0 : -ENOMEM;
	int fds[2];

	expect(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
	ends[0] = ends[1] = (struct channel){.fd = -1};
	for (int i = 0; i < 2 && r == 0; i++)
		r = channel_init(&ends[i], fds[i], 1u << 20);
	if (r == 0)
		r = channel_put(&ends[0], 1, 2, (struct str){bytes, 300000});
	while (r == 0) {
		struct channel_message m;

		r = channel_flush(&ends[0]);
		if (r == 0)
			r = channel_take(&ends[1], &m);
	}
	for (int i = 0; i < 2; i++) {
		close(fds[i]);
		channel_fini(&ends[i]);
	}
	free(bytes);
	return r > 0 ? 0 : r;
}

TEST(channels_survive_out_of_memory)
{
	test_each_failing_allocation(put_much, NULL);
}

/* As channel.c puts it. */
struct head {
	uint32_t type, more;
	uint64_t id;
};

/* What is no message, or more than is taken, is said to be none. */
TEST(packets_that_are_no_message)
{
	static const struct head rows[][2] = {
		{{1, 1, 2}, {3, 0, 2}}, /* another type in the middle */
		{{1, 1, 2}, {1, 0, 3}}, /* another request */
		{{1, 2, 2}, {1, 0, 2}},
		{{1, 1, 2}, {1, 1, 2}}, /* beyond the limit, below */
	};
	struct channel ends[2];
	struct channel_message m;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char packet[sizeof(struct head) + 600] = {0};

		open_pair(ends, 1000);
		for (int k = 0; k < 2; k++) {
			memcpy(packet, &rows[i][k], sizeof(struct head));
			expect(send(ends[0].fd, packet, sizeof(packet), 0) > 0);
		}
		expect_eq(channel_take(&ends[1], &m), -EBADMSG);
		close_pair(ends);
	}
	open_pair(ends, 1000);
	expect(send(ends[0].fd, "short", 5, 0) == 5);
	expect_eq(channel_take(&ends[1], &m), -EBADMSG);
	close(ends[0].fd);
	ends[0].fd = dup(ends[1].fd);
	expect_eq(channel_take(&ends[1], &m), -EPIPE);
	close_pair(ends);
}
