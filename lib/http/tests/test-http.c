/* SPDX-License-Identifier: Apache-2.0 */
/* The client against servers that behave: what is sent, what is read, how a request ends. */
#include "base/clock.h"
#include "base/file.h"
#include "testing/test.h"
#include "http/tests/test-exchange.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void expect_fault(const char *url, const char *fault)
{
	const char *found = http_url_fault(str_of(url));

	expect(found || !fault);
	if (fault)
		expect_str(str_of(found), fault);
	else
		expect(!found);
}

/* What would fail at every request is known before the first. */
TEST(knows_urls_that_cannot_be_asked)
{
	static char longest[4098];

	expect_fault("http://a", NULL);
	expect_fault("https://u:p@[::1]:4040/b?c=d@e", NULL);
	expect_fault("", "is empty, as an unset variable is; it must begin with http:// or "
			 "https://");
	expect_fault("a:4040", "must begin with http:// or https://");
	expect_fault("ftp://a", "must begin with http:// or https://");
	expect_fault("https://", "names no host");
	expect_fault("http:///a", "names no host");
	expect_fault("http://:80", "names no host");
	expect_fault("http://u@", "names no host");
	expect_fault("http://u@:1/", "names no host");
	expect_fault("http://?a", "names no host");
	expect_fault("http://a b", "holds a space or a control character");
	expect_fault("http://a\n", "holds a space or a control character");
	memset(longest, 'a', sizeof(longest) - 1);
	memcpy(longest, "http://", 7);
	expect_fault(longest, "is longer than 4096 bytes");
	expect_str(http_authority(STR("http://u@a:1/b@c")), "u@a:1");
	expect_eq(http_authority(STR("a")).n, 0);
	expect_str(http_host(STR("http://u:p@q@a:1/b@c")), "a:1");
	expect_str(http_host(STR("http://a:1/b@c")), "a:1");
	expect_str(http_host(STR("https://u@[::1]:1?x")), "[::1]:1");
	expect_eq(http_host(STR("a")).n, 0);
}

TEST(gets_status_body_and_retry_after)
{
	static struct exchange x;

	exchange_text(&x, "HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 5\r\n\r\nwait!");
	expect_eq(x.outcome.result, 0);
	expect_eq(x.outcome.status, 429);
	expect_eq(x.outcome.retry_after_ms, 7000);
	expect_str(((struct str){x.outcome.body, x.outcome.n}), "wait!");
	expect(x.outcome.sent);
	exchange_text(&x, "HTTP/1.1 503 No\r\nRetry-After: Fri, 01 Jan 2100 00:00:00 GMT\r\n"
			  "Content-Length: 0\r\n\r\n");
	expect_eq(x.outcome.retry_after_ms, INT64_C(30) * 24 * 3600 * 1000);
	exchange_text(&x, "HTTP/1.1 503 No\r\nRetry-After: soon\r\nContent-Length: 0\r\n\r\n");
	expect_eq(x.outcome.retry_after_ms, -1);
	exchange_text(&x, "HTTP/1.1 503 No\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n");
	expect_eq(x.outcome.retry_after_ms, 0);
	exchange_text(&x, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	expect_eq(x.outcome.retry_after_ms, -1);
}

#ifndef SENDER

static void *answer_at_socket(void *context)
{
	static char request[TEST_REQUEST_MAX];
	int fd = accept4(*(int *)context, NULL, NULL, SOCK_CLOEXEC);

	expect(fd >= 0 && test_read_request(fd, request));
	expect(strstr(request, "GET /list HTTP/1.1\r\nHost: localhost\r\n"));
	expect(test_say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"));
	close(fd);
	return NULL;
}

/* A server at a socket is asked by its path, and named by it where nobody answers. */
TEST(asks_a_server_at_a_socket)
{
	static struct exchange x;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char folder[] = "/tmp/test-http-XXXXXX";
	pthread_t server;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	expect(fd >= 0 && mkdtemp(folder));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
	expect_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	expect_eq(listen(fd, 1), 0);
	expect_eq(pthread_create(&server, NULL, answer_at_socket, &fd), 0);
	exchange_init(&x, serve_hang, NULL);
	x.request.url = STR("http://localhost/list");
	x.config.unix_socket = str_of(address.sun_path);
	exchange_run(&x);
	pthread_join(server, NULL);
	expect_eq(x.outcome.status, 200);
	expect_str(((struct str){x.outcome.body, x.outcome.n}), "hi");
	close(fd);
	unlink(address.sun_path);
	exchange_run(&x);
	expect_eq(x.outcome.status, 0);
	expect_eq(x.outcome.result, -ECONNREFUSED);
	expect(strstr(x.outcome.error, address.sun_path) && strstr(x.outcome.error, "No such"));
	exchange_fini(&x);
	rmdir(folder);
}

#endif

TEST(reads_chunked_and_informational_answers)
{
	static struct exchange x;

	exchange_text(&x, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
			  "3\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n");
	expect_eq(x.outcome.status, 200);
	expect_str(((struct str){x.outcome.body, x.outcome.n}), "abcde");
	exchange_text(&x,
		      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
		      "HTTP/1.1 204 Nothing\r\n\r\n");
	expect_eq(x.outcome.status, 204);
	expect_eq(x.outcome.result, 0);
}

static void serve_bytes(int fd, void *context)
{
	static char request[TEST_REQUEST_MAX];
	const char *text = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789";
	int now = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &now, sizeof(now));
	if (test_read_request(fd, request))
		for (; *text && test_send(fd, text, 1); text++)
			sched_yield(); /* so that the client sees them one by one */
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

/* Answers with the number of the connection. */
static void serve_number(int fd, void *context)
{
	static char request[TEST_REQUEST_MAX];
	int *n = context;
	char text[64];

	snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d", ++*n);
	while (test_read_request(fd, request) && test_say(fd, text))
		;
}

/* A connection serves one request after the other, but for those that want one of their own. */
TEST(keeps_connections_or_closes_them)
{
	static const char *const numbers[] = {"1", "2", "3", "3"};
	static struct exchange x;
	int n = 0;

	exchange_init(&x, serve_number, &n);
	for (int i = 0; i < 4; i++) {
		x.request.own_connection = i < 2;
		exchange_run(&x);
		expect_eq(x.outcome.status, 200);
		expect_str(((struct str){x.outcome.body, x.outcome.n}), numbers[i]);
	}
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

/* A body of 'x' that cannot be made any further from `bad` on. */
static struct {
	uint64_t n, bad;
	int error;
} made;

static int64_t make_more(void *context, char *to, size_t n)
{
	if (made.n >= made.bad)
		return made.error;
	n = n < 1000 ? n : 1000;
	memset(to, 'x', n);
	made.n += n;
	return (int64_t)n;
}

static void run_made(struct exchange *x, uint64_t bad, int error)
{
	made.n = 0;
	made.bad = bad;
	made.error = error;
	exchange_run(x);
}

/* A body that is made while it is sent arrives whole; one that cannot be made ends the request, and
 * its sender is told why. */
TEST(sends_a_body_as_it_is_made)
{
	static struct exchange x;
	int64_t begun;

	exchange_init(&x, serve_echo, NULL);
	x.request.method = "PUT";
	x.request.read = make_more;
	x.request.read_bytes = 200000;
	x.request.max_response = 1 << 20;
	run_made(&x, UINT64_MAX, 0);
	expect_eq(x.outcome.status, 200);
	expect(x.outcome.sent && echoed(&x, "PUT / ") && echoed(&x, "Content-Length: 200000"));
	/* A limit is kept: curl lets a first burst go. */
	x.request.max_send = 200000;
	begun = clock_mono();
	run_made(&x, UINT64_MAX, 0);
	expect_eq(x.outcome.status, 200);
	expect(clock_mono() - begun > 300 * NS_PER_MSEC);
	run_made(&x, 5000, -EIO);
	expect_eq(x.outcome.result, -EIO);
	expect(strstr(x.outcome.error, "cannot be read: Input/output error"));
	run_made(&x, 0, 0);
	expect_eq(x.outcome.result, -ENODATA);
	exchange_fini(&x);
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
	x.request.method = "GET"; /* which may have a body */
	exchange_run(&x);
	expect(echoed(&x, "GET / ") && echoed(&x, "\r\n\r\nthe body"));
	x.config.bearer_token = STR_NULL;
	x.config.authorization_type = STR("ApiKey");
	x.config.authorization_credentials = STR("xyz");
	exchange_run(&x);
	expect(echoed(&x, "\r\nAuthorization: ApiKey xyz\r\n"));
	exchange_fini(&x);
}

/* A rotated token is used by the next request. */
/* What cannot be sent: said at once, or by a sender as the end of the request. */
static void expect_refused(struct exchange *x, const char *text)
{
	struct error err = ERROR_NULL;
#ifdef SENDER
	exchange_run(x);
	expect_eq(x->outcome.result, -EINVAL);
	expect(!x->outcome.sent);
	error_set(&err, -EINVAL, "%s", x->outcome.error);
#else
	expect_eq(http_send(x->loop.client, &x->config, &x->request, &x->id, &err), -EINVAL);
#endif
	expect(strstr(err.text, text) && !strstr(err.text, "hush"));
}

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
	expect_refused(&x, "Authorization");
	expect(unlink(path) == 0);
	expect_eq(http_send(x.loop.client, &x.config, &x.request, &x.id, &err), -ENOENT);
	expect(strstr(err.text, path));
	exchange_fini(&x);
}

/* Whom a secret has to be given to is said, where the user may not read it. */
TEST(says_who_may_not_read_a_secret)
{
	static struct exchange x;
	char path[] = "/tmp/andiron-token-XXXXXX", user[32];
	struct error err = ERROR_NULL;
	int fd = mkstemp(path);
	uid_t me = geteuid();

	expect(fd >= 0 && close(fd) == 0 && chmod(path, 0) == 0);
	exchange_init(&x, serve_hang, NULL);
	x.config.bearer_token_file = str_of(path);
	expect(me != 0 || seteuid(65534) == 0);
	snprintf(user, sizeof(user), "user %u may not", geteuid());
	expect_eq(http_send(x.loop.client, &x.config, &x.request, &x.id, &err), -EACCES);
	expect(seteuid(me) == 0 && unlink(path) == 0);
	expect(strstr(err.text, user) && strstr(err.text, path));
	exchange_fini(&x);
}

/* What cannot be sent is refused before anything leaves. */
TEST(refuses_what_cannot_be_sent)
{
	static struct exchange x;
	static const char *const urls[] = {
		"",        "127.0.0.1",   "ftp://a/",        "file:///etc/passwd",
		"http://", "http://a b/", "http://a:99999/", "http://u:hush@a:99999/"};
	struct http_header evil[] = {{STR("X-A"), STR("1\r\nX-B: 2")}, {STR("X A"), STR("1")}};

	exchange_init(&x, serve_hang, NULL);
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		x.request.url = str_of(urls[i]);
		expect_refused(&x, "http://host:port");
	}
	x.request.url = str_of(x.url);
	x.request.n_headers = 1;
	for (size_t i = 0; i < 2; i++) {
		x.request.headers = &evil[i];
		expect_refused(&x, "X");
	}
	x.request.n_headers = 0;
	x.config.min_version = STR("SSL3");
	expect_refused(&x, "TLS12");
	exchange_fini(&x);
}

struct pieces {
	struct exchange x;
	size_t n, limit;
	bool cancel, seen;
	int begun;
};

static void on_begun(void *context)
{
	struct pieces *p = context;

	expect_eq(p->n, 0);
	p->begun++;
}

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
	outcome_done(&((struct pieces *)context)->x.outcome, r);
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
	expect(test_loop_until(&p.x.loop, &p.seen, 60000));
	expect_eq(p.n, 10);
	http_cancel(p.x.loop.client, p.x.id);
	http_cancel(p.x.loop.client, p.x.id);
	expect(!test_loop_until(&p.x.loop, &never, 50));
	expect_eq(p.x.outcome.calls, 0);
	p.cancel = true;
	p.seen = false;
	expect_eq(http_send(p.x.loop.client, &p.x.config, &p.x.request, &p.x.id, &err), 0);
	expect(test_loop_until(&p.x.loop, &p.seen, 60000));
	expect_eq(p.x.outcome.calls, 0);
	p.cancel = false;
	p.limit = 1;
	exchange_run(&p.x);
	expect_eq(p.x.outcome.result, -ECANCELED);
	exchange_fini(&p.x);
}

/* What is no success does not reach a stream: its text and headers are told at the end, and the
 * stream has not begun. */
TEST(errors_are_no_stream)
{
	static char late[] = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\n"
			     "Content-Length: 5\r\n\r\nlater";
	static char some[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nthese";
	static char *const texts[] = {late, some};
	static struct pieces p;

	for (size_t i = 0; i < 2; i++) {
		memset(&p, 0, sizeof(p));
		p.limit = SIZE_MAX;
		exchange_init(&p.x, serve_text, texts[i]);
		p.x.request.max_response = UINT64_MAX;
		p.x.request.begun = on_begun;
		p.x.request.data = on_data;
		p.x.request.done = on_pieces_done;
		p.x.request.context = &p;
		exchange_run(&p.x);
		expect_eq(p.begun, (int)i);
		expect_eq(p.n, i ? 5 : 0);
		expect_eq(p.x.outcome.status, i ? 200 : 429);
		if (i == 0) {
			expect_eq(p.x.outcome.retry_after_ms, 7000);
			expect(strcmp(p.x.outcome.body, "later") == 0);
		}
		exchange_fini(&p.x);
	}
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
	expect(test_loop_until(&c.x.loop, &c.x.outcome.done, 60000));
	exchange_fini(&c.x);
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
