// SPDX-License-Identifier: Apache-2.0
/*
 * The client against servers that answer well, badly and not at all. What
 * every test protects: `done` comes once, in time, and says what happened.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/test.h"
#include "http/test-loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

struct outcome {
	bool done;
	int calls, result, status;
	bool sent;
	char error[1024];
	char body[4096];
	size_t n;
	int64_t retry_after_ms;
};

static void on_done(void *context, const struct http_response *r)
{
	struct outcome *o = context;

	o->done = true;
	o->calls++;
	o->result = r->result;
	o->status = r->status;
	o->sent = r->sent;
	o->retry_after_ms = r->retry_after_ms;
	snprintf(o->error, sizeof(o->error), "%s", r->error);
	o->n = r->body.n < sizeof(o->body) ? r->body.n : sizeof(o->body);
	if (o->n)
		memcpy(o->body, r->body.p, o->n);
}

/* A server, a client and one exchange between them. */
struct exchange {
	struct test_server *server;
	struct test_loop loop;
	struct http_config config;
	struct http_request request;
	char url[64];
	struct outcome outcome;
	uint64_t id;
};

static void exchange_init(struct exchange *x, test_serve_fn serve, void *context)
{
	memset(x, 0, sizeof(*x));
	x->server = test_server_new(serve, context);
	test_loop_init(&x->loop);
	snprintf(x->url, sizeof(x->url), "http://127.0.0.1:%u/", test_server_port(x->server));
	x->config.follow_redirects = true;
	x->request = (struct http_request){
		.method = "GET",
		.url = str_of(x->url),
		.timeout_ms = 10000,
		.max_response = 4096,
		.done = on_done,
		.context = &x->outcome,
	};
}

static void exchange_run(struct exchange *x)
{
	struct error err = ERROR_NULL;

	x->outcome.done = false;
	if (http_send(x->loop.client, &x->config, &x->request, &x->id, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
	expect(!x->outcome.done);
	expect(test_loop_until(&x->loop, &x->outcome.done, 20000));
	expect_eq(x->outcome.calls, 1);
	x->outcome.calls = 0;
}

static void exchange_fini(struct exchange *x)
{
	test_loop_fini(&x->loop);
	test_server_free(x->server);
}

/* Serves each request with the text that it was given; closes after it. */
static void serve_text(int fd, void *context)
{
	static char request[TEST_REQUEST_MAX];

	if (test_read_request(fd, request))
		test_say(fd, context);
}

static void run_text(struct exchange *x, const char *answer)
{
	char *text = strdup(answer);

	expect(text);
	exchange_init(x, serve_text, text);
	exchange_run(x);
	exchange_fini(x);
	free(text);
}

TEST(gets_status_body_and_retry_after)
{
	static struct exchange x;

	run_text(&x, "HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 5\r\n\r\nwait!");
	expect_eq(x.outcome.result, 0);
	expect_eq(x.outcome.status, 429);
	expect_eq(x.outcome.retry_after_ms, 7000);
	expect_str(((struct str){x.outcome.body, x.outcome.n}), "wait!");
	expect(x.outcome.sent);
	run_text(&x, "HTTP/1.1 503 No\r\nRetry-After: Fri, 01 Jan 2100 00:00:00 GMT\r\n"
		     "Content-Length: 0\r\n\r\n");
	expect_eq(x.outcome.retry_after_ms, INT64_C(30) * 24 * 3600 * 1000);
	run_text(&x, "HTTP/1.1 503 No\r\nRetry-After: soon\r\nContent-Length: 0\r\n\r\n");
	expect_eq(x.outcome.retry_after_ms, -1);
	run_text(&x, "HTTP/1.1 503 No\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n");
	expect_eq(x.outcome.retry_after_ms, 0);
	run_text(&x, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	expect_eq(x.outcome.retry_after_ms, -1);
}

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

		run_text(&x, rows[i].answer);
		if (x.outcome.result != rows[i].result || x.outcome.status ||
		    !strstr(x.outcome.error, rows[i].says))
			test_fail(__FILE__, __LINE__, "row %zu: %d, %d, \"%s\"", i,
				  x.outcome.result, x.outcome.status, x.outcome.error);
	}
}

TEST(reads_chunked_and_informational_answers)
{
	static struct exchange x;

	run_text(&x, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		     "3\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n");
	expect_eq(x.outcome.status, 200);
	expect_str(((struct str){x.outcome.body, x.outcome.n}), "abcde");
	run_text(&x, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
		     "HTTP/1.1 204 Nothing\r\n\r\n");
	expect_eq(x.outcome.status, 204);
	expect_eq(x.outcome.result, 0);
}

static void serve_bytes(int fd, void *context)
{
	static char request[TEST_REQUEST_MAX];
	const char *text = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789";

	if (test_read_request(fd, request))
		for (; *text && test_send(fd, text, 1); text++)
			usleep(1000);
}

TEST(reads_an_answer_that_comes_byte_by_byte)
{
	static struct exchange x;

	exchange_init(&x, serve_bytes, NULL);
	exchange_run(&x);
	expect_eq(x.outcome.status, 200);
	expect_eq(x.outcome.n, 10);
	exchange_fini(&x);
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
	expect(x.outcome.result < 0);
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

/* Answers to the first part of the request, then waits until the peer goes. */
static void serve_hang(int fd, void *context)
{
	static char request[TEST_REQUEST_MAX];

	if (test_read_request(fd, request) && (!context || test_say(fd, context)))
		recv(fd, request, 1, 0);
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
		x.request.timeout_ms = 150;
		exchange_run(&x);
		expect_eq(x.outcome.result, -ETIMEDOUT);
		expect(strstr(x.outcome.error, "no answer from 127.0.0.1:"));
		expect(x.outcome.sent);
		x.request.timeout_ms = 0;
		x.request.stall_ms = 150;
		exchange_run(&x);
		expect_eq(x.outcome.result, -ETIMEDOUT);
		expect(strstr(x.outcome.error, "nothing came from 127.0.0.1:"));
		exchange_fini(&x);
	}
}

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

/* Sends the request back as the body of its answer. */
static void serve_echo(int fd, void *context)
{
	static char request[TEST_REQUEST_MAX];
	char head[64];

	while (test_read_request(fd, request)) {
		snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n",
			 strlen(request));
		if (!test_say(fd, head) || !test_say(fd, request))
			return;
	}
}

static bool echoed(struct exchange *x, const char *text)
{
	x->outcome.body[x->outcome.n < 4095 ? x->outcome.n : 4095] = '\0';
	return strstr(x->outcome.body, text) != NULL;
}

TEST(sends_method_body_headers_and_proof)
{
	static struct exchange x;
	struct http_header mine[] = {{STR("X-Mine"), STR("1")}, {STR("X-Empty"), STR("")}};
	struct http_header theirs[] = {{STR("X-Scope-OrgID"), STR("tenant")}};

	exchange_init(&x, serve_echo, NULL);
	x.request.method = "POST";
	x.request.body = STR("the body");
	x.request.headers = mine;
	x.request.n_headers = 2;
	x.config.headers = theirs;
	x.config.n_headers = 1;
	x.config.basic_username = STR("user");
	x.config.basic_password = STR("pass");
	exchange_run(&x);
	expect(echoed(&x, "POST / HTTP/1.1\r\n"));
	expect(echoed(&x, "\r\n\r\nthe body"));
	expect(echoed(&x, "\r\nX-Mine: 1\r\n") && echoed(&x, "\r\nX-Empty:\r\n"));
	expect(echoed(&x, "\r\nX-Scope-OrgID: tenant\r\n"));
	expect(echoed(&x, "\r\nAuthorization: Basic dXNlcjpwYXNz\r\n"));
	expect(echoed(&x, "\r\nUser-Agent: andiron/") && !echoed(&x, "Expect"));
	x.config.basic_username = x.config.basic_password = STR_NULL;
	x.config.bearer_token = STR("abc");
	x.request.method = "PUT";
	exchange_run(&x);
	expect(echoed(&x, "PUT / ") && echoed(&x, "\r\nAuthorization: Bearer abc\r\n"));
	x.config.bearer_token = STR_NULL;
	x.config.authorization_type = STR("ApiKey");
	x.config.authorization_credentials = STR("xyz");
	exchange_run(&x);
	expect(echoed(&x, "\r\nAuthorization: ApiKey xyz\r\n"));
	exchange_fini(&x);
}

/* A rotated token is used by the next request. */
TEST(reads_token_files_for_every_request)
{
	static struct exchange x;
	char path[] = "/tmp/andiron-token-XXXXXX";
	struct error err = ERROR_NULL;
	int fd = mkstemp(path);

	expect(fd >= 0 && close(fd) == 0);
	exchange_init(&x, serve_echo, NULL);
	x.config.bearer_token_file = str_of(path);
	expect(file_replace(path, "one\n", 4, NULL) == 0);
	exchange_run(&x);
	expect(echoed(&x, "Bearer one\r\n"));
	expect(file_replace(path, "two\n", 4, NULL) == 0);
	exchange_run(&x);
	expect(echoed(&x, "Bearer two\r\n"));
	expect(file_replace(path, "a\r\nX-Evil: 1", 12, NULL) == 0);
	expect_eq(http_send(x.loop.client, &x.config, &x.request, &x.id, &err), -EINVAL);
	expect(unlink(path) == 0);
	expect_eq(http_send(x.loop.client, &x.config, &x.request, &x.id, &err), -ENOENT);
	expect(strstr(err.text, path));
	exchange_fini(&x);
}

/* What cannot be sent is refused before anything leaves. */
TEST(refuses_what_cannot_be_sent)
{
	static struct exchange x;
	static const char *const urls[] = {
		"",        "127.0.0.1",   "ftp://a/",       "file:///etc/passwd",
		"http://", "http://a b/", "http://a:99999/"};
	struct http_header evil[] = {{STR("X-A"), STR("1\r\nX-B: 2")}, {STR("X A"), STR("1")}};
	struct error err = ERROR_NULL;

	exchange_init(&x, serve_hang, NULL);
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		x.request.url = str_of(urls[i]);
		expect_eq(http_send(x.loop.client, &x.config, &x.request, &x.id, &err), -EINVAL);
		expect(strstr(err.text, "http://host:port"));
	}
	x.request.url = str_of(x.url);
	x.request.n_headers = 1;
	for (size_t i = 0; i < 2; i++) {
		x.request.headers = &evil[i];
		expect_eq(http_send(x.loop.client, &x.config, &x.request, &x.id, &err), -EINVAL);
	}
	x.request.n_headers = 0;
	x.config.min_version = STR("SSL3");
	expect_eq(http_send(x.loop.client, &x.config, &x.request, &x.id, &err), -EINVAL);
	expect(strstr(err.text, "TLS12"));
	exchange_fini(&x);
}

struct pieces {
	struct exchange x;
	size_t n, limit;
	bool cancel, seen;
};

static bool on_data(void *context, struct str piece)
{
	struct pieces *p = context;

	p->n += piece.n;
	p->seen = true;
	if (p->cancel)
		http_cancel(p->x.loop.client, p->x.id);
	return p->n < p->limit;
}

static void on_pieces_done(void *context, const struct http_response *r)
{
	on_done(&((struct pieces *)context)->x.outcome, r);
}

/* A watch gets its data while it lasts, and can be ended from within. */
TEST(streams_and_cancels)
{
	static char some[] = "HTTP/1.1 200 OK\r\n\r\n0123456789";
	static struct pieces p;
	struct error err = ERROR_NULL;
	bool never = false;

	p.limit = SIZE_MAX;
	exchange_init(&p.x, serve_hang, some);
	p.x.request.data = on_data;
	p.x.request.done = on_pieces_done;
	p.x.request.context = &p;
	expect_eq(http_send(p.x.loop.client, &p.x.config, &p.x.request, &p.x.id, &err), 0);
	expect(test_loop_until(&p.x.loop, &p.seen, 5000));
	expect_eq(p.n, 10);
	http_cancel(p.x.loop.client, p.x.id);
	http_cancel(p.x.loop.client, p.x.id);
	expect(!test_loop_until(&p.x.loop, &never, 50));
	expect_eq(p.x.outcome.calls, 0);
	p.cancel = true;
	p.seen = false;
	expect_eq(http_send(p.x.loop.client, &p.x.config, &p.x.request, &p.x.id, &err), 0);
	expect(test_loop_until(&p.x.loop, &p.seen, 5000));
	expect_eq(p.x.outcome.calls, 0);
	p.cancel = false;
	p.limit = 1;
	exchange_run(&p.x);
	expect_eq(p.x.outcome.result, -ECANCELED);
	exchange_fini(&p.x);
}

/* A client that is freed in the middle of things leaves nothing behind. */
TEST(is_freed_with_requests_under_way)
{
	static struct exchange x;
	static struct outcome unknown;
	struct error err = ERROR_NULL;
	bool never = false;
	uint64_t id;

	exchange_init(&x, serve_hang, NULL);
	for (int i = 0; i < 5; i++)
		expect_eq(http_send(x.loop.client, &x.config, &x.request, &id, &err), 0);
	x.request.url = STR("http://no-such-host.invalid/"); /* its answer may come */
	x.request.context = &unknown;
	expect_eq(http_send(x.loop.client, &x.config, &x.request, &id, &err), 0);
	test_loop_until(&x.loop, &never, 20);
	exchange_fini(&x);
	expect_eq(x.outcome.calls, 0);
}

/* `done` may send again and cancel others. */
struct chain {
	struct exchange x;
	uint64_t other;
	int left;
};

static void on_chain_done(void *context, const struct http_response *r)
{
	struct chain *c = context;
	struct error err = ERROR_NULL;

	expect_eq(r->status, 200);
	http_cancel(c->x.loop.client, c->other);
	if (--c->left == 0) {
		c->x.outcome.done = true;
		return;
	}
	expect_eq(http_send(c->x.loop.client, &c->x.config, &c->x.request, &c->other, &err), 0);
	expect_eq(http_send(c->x.loop.client, &c->x.config, &c->x.request, &c->x.id, &err), 0);
}

TEST(done_may_send_and_cancel)
{
	static struct chain c;
	struct error err = ERROR_NULL;

	exchange_init(&c.x, serve_echo, NULL);
	c.left = 10;
	c.x.request.done = on_chain_done;
	c.x.request.context = &c;
	expect_eq(http_send(c.x.loop.client, &c.x.config, &c.x.request, &c.x.id, &err), 0);
	expect(test_loop_until(&c.x.loop, &c.x.outcome.done, 10000));
	exchange_fini(&c.x);
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

static int send_once(void *context)
{
	struct http_header headers[] = {{STR("X-A"), STR("1")}};
	struct http_config config = {.bearer_token = STR("t"),
				     .server_name = STR("name"),
				     .proxy_url = STR("http://127.0.0.1:1"),
				     .headers = headers,
				     .n_headers = 1};
	struct exchange *x = context;
	uint64_t id;
	int rc = http_send(x->loop.client, &config, &x->request, &id, NULL);

	if (rc == 0)
		http_cancel(x->loop.client, id);
	return rc;
}

TEST(survives_out_of_memory)
{
	static struct exchange x;

	exchange_init(&x, serve_hang, NULL);
	test_each_failing_allocation(send_once, &x);
	exchange_fini(&x);
}
