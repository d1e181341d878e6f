/* SPDX-License-Identifier: Apache-2.0 */
/* The client against servers that answer badly or not at all. What every test protects: `done`
 * comes once, in time, and says what happened. */
#include "base/buf.h"
#include "testing/test.h"
#include "http/tests/test-exchange.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <zlib.h>

/* Bad framing is an error of the peer's, never an answer. */
TEST(takes_no_garbage_for_an_answer)
{
	static const struct {
		const char *answer;
		int result;
		const char *says;
	} rows[] = {
		{"", -ECONNRESET, "without an answer"},
		{"SSH-2.0-OpenSSH_9.2p1\r\n", -EPROTO, "does not speak HTTP"},
		{"\x16\x03\x01\x02garbage\n\n\n", -EPROTO, "does not speak HTTP"},
		{"HTTP/1.1 abc\r\n\r\n", -EPROTO, "does not speak HTTP"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", -ECONNRESET, "middle"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", -ECONNRESET, ""},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc", -ECONNRESET, ""},
		{"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope",
		 -EPROTO, "decompress"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		static struct exchange x;

		exchange_text(&x, rows[i].answer);
		if (x.outcome.result != rows[i].result || x.outcome.status ||
		    !strstr(x.outcome.error, rows[i].says))
			test_fail(__FILE__, __LINE__, "row %zu: %d, %d, \"%s\"", i,
				  x.outcome.result, x.outcome.status, x.outcome.error);
	}
}

/* Repeats what it is given, after a beginning, until the peer has had enough. */
struct endless {
	const char *begin, *repeat;
};

static void serve_endless(int fd, void *context)
{
	static char request[TEST_REQUEST_MAX];
	const struct endless *e = context;

	if (!test_read_request(fd, request) || !test_say(fd, e->begin))
		return;
	while (test_say(fd, e->repeat))
		;
}

/* Whatever does not end is ended: bodies, headers, informational answers. */
TEST(ends_what_does_not_end)
{
	static const struct endless rows[] = {
		{"HTTP/1.1 200 OK\r\n\r\n", "0123456789abcdef"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "4\r\nabcd\r\n"},
		{"HTTP/1.1 200 OK\r\n", "X-Again: 0123456789abcdef\r\n"},
		{"", "HTTP/1.1 102 Processing\r\n\r\n"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		static struct exchange x;

		exchange_init(&x, serve_endless, (void *)(uintptr_t)&rows[i]);
		exchange_run(&x);
		if (x.outcome.result != -E2BIG || !strstr(x.outcome.error, "larger than"))
			test_fail(__FILE__, __LINE__, "row %zu: %d, \"%s\"", i, x.outcome.result,
				  x.outcome.error);
		exchange_fini(&x);
	}
}

/* One header line without an end. */
TEST(ends_a_header_that_does_not_end)
{
	static const struct endless line = {"HTTP/1.1 200 OK\r\nX-Long: ", "aaaaaaaaaaaaaaaaaaaa"};
	static struct exchange x;

	exchange_init(&x, serve_endless, (void *)(uintptr_t)&line);
	exchange_run(&x);
	expect_eq(x.outcome.result, -EPROTO);
	expect(strstr(x.outcome.error, "a header too long to be read"));
	expect_eq(x.outcome.status, 0);
	exchange_fini(&x);
}

/* The limit is on what comes out of the decoder: 64 MiB of zeros in 64 KiB. */
static void serve_bomb(int fd, void *context)
{
	static char request[TEST_REQUEST_MAX];
	struct buf *packed = context;
	char head[128];

	if (!test_read_request(fd, request))
		return;
	snprintf(head, sizeof(head),
		 "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n",
		 packed->n);
	if (test_say(fd, head))
		test_send(fd, packed->p, packed->n);
}

static void gzip_zeros(struct buf *out, size_t n)
{
	static unsigned char zeros[1 << 16], packed[1 << 16];
	z_stream z = {0};

	expect(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) == Z_OK);
	do {
		z.next_in = zeros;
		z.avail_in = (uInt)(n < sizeof(zeros) ? n : sizeof(zeros));
		n -= z.avail_in;
		do {
			z.next_out = packed;
			z.avail_out = sizeof(packed);
			deflate(&z, n ? Z_NO_FLUSH : Z_FINISH);
			expect(buf_append(out, packed, sizeof(packed) - z.avail_out) == 0);
		} while (!z.avail_out);
	} while (n);
	deflateEnd(&z);
}

TEST(limits_what_comes_out_of_gzip)
{
	static struct exchange x;
	struct buf packed = BUF_NULL;

	gzip_zeros(&packed, 64u << 20);
	expect(packed.n < (1u << 20));
	exchange_init(&x, serve_bomb, &packed);
	exchange_run(&x);
	expect_eq(x.outcome.result, -E2BIG);
	exchange_fini(&x);
	buf_clear(&packed);
	gzip_zeros(&packed, 1000);
	exchange_init(&x, serve_bomb, &packed);
	exchange_run(&x);
	expect_eq(x.outcome.status, 200);
	expect_eq(x.outcome.n, 1000);
	exchange_fini(&x);
	buf_free(&packed);
}

TEST(gives_up_on_a_server_that_hangs)
{
	static const char *const rows[] = {
		NULL,
		"HTTP/1.1 200 OK\r\nContent-Le",
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123",
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		static struct exchange x;

		exchange_init(&x, serve_hang, (void *)(uintptr_t)rows[i]);
		x.request.timeout_ms = 1000; /* the request has been sent by then */
		exchange_run(&x);
		expect_eq(x.outcome.result, -ETIMEDOUT);
		expect(strstr(x.outcome.error, "no answer from 127.0.0.1:"));
		expect(str_ends(str_of(x.outcome.error), STR(" within 1s")));
		expect(x.outcome.sent);
		x.request.timeout_ms = 0;
		x.request.stall_ms = 1000;
		exchange_run(&x);
		expect_eq(x.outcome.result, -ETIMEDOUT);
		expect(strstr(x.outcome.error, "nothing came from 127.0.0.1:"));
		exchange_fini(&x);
	}
}

static int n_left;

static void count_left(void *context)
{
	const struct outcome *o = context;

	expect(!o->done);
	n_left++;
}

/* That the last byte has left is told before the end, once; and not where none could. */
TEST(tells_what_has_left)
{
	static struct exchange x;

	exchange_init(&x, serve_hang, NULL);
	x.request.method = "POST";
	x.request.body = STR("0123456789");
	x.request.left = count_left;
	x.request.timeout_ms = 150;
	exchange_run(&x);
	expect_eq(n_left, 1);
	snprintf(x.url, sizeof(x.url), "http://127.0.0.1:%u/", test_unused_port());
	x.request.url = str_of(x.url);
	exchange_run(&x);
	expect_eq(n_left, 1);
	exchange_fini(&x);
}

#ifndef SENDER /* there it is another process whose memory is short */
static bool curl_is_short;

static void *curl_malloc(size_t n)
{
	return curl_is_short ? NULL : malloc(n);
}

static void *curl_calloc(size_t n, size_t size)
{
	return curl_is_short ? NULL : calloc(n, size);
}

static void *curl_realloc(void *p, size_t n)
{
	return curl_is_short ? NULL : realloc(p, n);
}

static char *curl_strdup(const char *s)
{
	return curl_is_short ? NULL : strdup(s);
}

static void make_short(void *context)
{
	curl_is_short = true;
}

/* Memory that is short while an answer comes is no fault of the server's. */
TEST(short_memory_is_called_so)
{
	static const char gzip[] = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
				   "Content-Length: 30\r\n\r\n\x1f\x8b\x08";
	static struct exchange x;

	expect(curl_global_init_mem(CURL_GLOBAL_DEFAULT, curl_malloc, free, curl_realloc,
				    curl_strdup, curl_calloc) == CURLE_OK);
	exchange_init(&x, serve_hang, (void *)(uintptr_t)gzip);
	x.request.begun = make_short;
	exchange_run(&x);
	curl_is_short = false;
	expect_eq(x.outcome.result, -ENOMEM);
	expect(strstr(x.outcome.error, "no memory for the request to 127.0.0.1:"));
	exchange_fini(&x);
	curl_global_cleanup();
}
#endif

static void serve_reset(int fd, void *context)
{
	static char request[TEST_REQUEST_MAX];
	struct linger now = {1, 0};

	if (test_read_request(fd, request))
		test_say(fd, context);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

TEST(names_a_reset)
{
	static char middle[] = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", none[] = "";
	static struct exchange x;

	exchange_init(&x, serve_reset, middle);
	exchange_run(&x);
	expect_eq(x.outcome.result, -ECONNRESET);
	exchange_fini(&x);
	exchange_init(&x, serve_reset, none);
	exchange_run(&x);
	expect_eq(x.outcome.result, -ECONNRESET);
	expect(x.outcome.sent);
	exchange_fini(&x);
}

TEST(names_who_refuses_and_who_is_unknown)
{
	static struct exchange x;
	uint16_t port = test_unused_port();
	char says[64];

	exchange_init(&x, serve_hang, NULL);
	snprintf(x.url, sizeof(x.url), "http://127.0.0.1:%u/", port);
	snprintf(says, sizeof(says), "connection refused by 127.0.0.1:%u", port);
	x.request.url = str_of(x.url);
	exchange_run(&x);
	expect_eq(x.outcome.result, -ECONNREFUSED);
	expect_str(str_of(x.outcome.error), says);
	expect(!x.outcome.sent);
	x.request.url = STR("http://no-such-host.invalid:4040/");
	exchange_run(&x);
	expect_eq(x.outcome.result, -EHOSTUNREACH);
	expect(strstr(x.outcome.error, "cannot resolve host no-such-host.invalid"));
	exchange_fini(&x);
}

/* Where a proxy refuses, nobody is to look at the server. */
TEST(names_a_proxy_that_refuses)
{
	static struct exchange x;
	char proxy[64];

	exchange_init(&x, serve_hang, NULL);
	snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%u/", test_unused_port());
	x.config.proxy_url = str_of(proxy);
	x.request.url = STR("http://127.0.0.1:4040/");
	exchange_run(&x);
	expect_eq(x.outcome.result, -ECONNREFUSED);
	expect_str(str_of(x.outcome.error),
		   "connection refused by the proxy on the way to 127.0.0.1:4040");
	exchange_fini(&x);
}

/* Whoever takes the connection and never says a word of TLS costs one timeout. */
TEST(gives_up_on_a_handshake_that_stalls)
{
	static struct exchange x;

	exchange_init(&x, serve_hang, NULL);
	snprintf(x.url, sizeof(x.url), "https://127.0.0.1:%u/", test_server_port(x.server));
	x.request.url = str_of(x.url);
	for (int of_all = 0; of_all < 2; of_all++) {
		x.request.timeout_ms = of_all ? 150 : 10000;
		x.request.connect_timeout_ms = of_all ? 10000 : 150;
		exchange_run(&x);
		expect_eq(x.outcome.result, -ETIMEDOUT);
		expect(strstr(x.outcome.error, " within 150ms"));
		expect(!x.outcome.sent);
	}
	exchange_fini(&x);
}

TEST(names_a_port_without_tls)
{
	static struct exchange x;
	static char text[] = "HTTP/1.1 400 Bad Request\r\n\r\n";

	exchange_init(&x, serve_text, text);
	snprintf(x.url, sizeof(x.url), "https://127.0.0.1:%u/", test_server_port(x.server));
	x.request.url = str_of(x.url);
	x.request.timeout_ms = 2000;
	exchange_run(&x);
	expect(x.outcome.result < 0);
	expect_eq(x.outcome.status, 0);
	exchange_fini(&x);
}

static void serve_redirect(int fd, void *context)
{
	static char request[TEST_REQUEST_MAX];
	int *n = context;

	if (!test_read_request(fd, request))
		return;
	__atomic_add_fetch(n, 1, __ATOMIC_RELAXED);
	test_say(fd, "HTTP/1.1 307 Again\r\nLocation: /again\r\nContent-Length: 0\r\n"
		     "Connection: close\r\n\r\n");
}

TEST(follows_redirects_so_far_and_only_if_told)
{
	static struct exchange x;
	int n = 0;

	exchange_init(&x, serve_redirect, &n);
	exchange_run(&x);
	expect_eq(x.outcome.result, -EPROTO);
	expect(strstr(x.outcome.error, "redirects in a circle"));
	expect_eq(n, 11);
	x.config.follow_redirects = false;
	exchange_run(&x);
	expect_eq(x.outcome.status, 307);
	expect_eq(n, 12);
	exchange_fini(&x);
}

/* Random answers: whatever they are, `done` comes once and in time. */
static void serve_mutant(int fd, void *context)
{
	static const char model[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
				    "Transfer-Encoding: chunked\r\nRetry-After: 5\r\n"
				    "Content-Encoding: identity\r\n\r\n5\r\nabcde\r\n0\r\n\r\n";
	static char request[TEST_REQUEST_MAX];
	unsigned int *seed = context;
	char answer[sizeof(model)];
	size_t n = sizeof(model) - 1;

	if (!test_read_request(fd, request))
		return;
	memcpy(answer, model, n);
	for (int i = rand_r(seed) % 6; i >= 0; i--)
		answer[(size_t)rand_r(seed) % n] = (char)rand_r(seed);
	if (rand_r(seed) % 4 == 0)
		n = (size_t)rand_r(seed) % n;
	test_send(fd, answer, n);
}

TEST(survives_mutants)
{
	static struct exchange x;
	unsigned int seed = 20261121;

	exchange_init(&x, serve_mutant, &seed);
	x.request.timeout_ms = 2000;
	for (int i = 0; i < 2000; i++) {
		exchange_run(&x);
		expect((x.outcome.status != 0) == (x.outcome.result == 0));
		expect((x.outcome.error[0] == '\0') == (x.outcome.result == 0));
	}
	exchange_fini(&x);
}
