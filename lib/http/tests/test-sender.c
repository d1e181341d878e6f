/* SPDX-License-Identifier: Apache-2.0 */
/* A sender that dies, lies or cannot be had. That a good one answers as a client in this process
 * does is in test-http.c and test-faults.c, which are built for both. */
#include "http/sender/sender.h"

#include "base/clock.h"
#include "http/sender/channel.h"
#include "http/sender/wire.h"
#include "http/tests/acted.h"
#include "testing/test.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static char hello[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

static void refuse(int socket)
{
	http_serve_refusal(socket, false, "there are no walls");
}

static void refuse_for_now(int socket)
{
	http_serve_refusal(socket, true, "memory is short");
}

static void leave(int socket)
{
}

static void say_garbage(int socket)
{
	expect(write(socket, "garbage", 7) == 7);
}

/* Where a process cannot be confined there is no client, and it is said why. */
TEST(is_refused_without_walls)
{
	struct acted a = {.script = refuse};
	struct error err = ERROR_NULL;
	struct test_loop loop;

	expect_eq(acted_client(&a, &loop, &err), -EPERM);
	expect(strstr(err.text, "there are no walls"));
	expect_eq(a.ends, 0);
	expect_eq(loop.poll.n_watched, 0);
	expect(loop.poll.deadline_ns == INT64_MAX);
	http_polled_fini(&loop.poll);
}

/* What passes is no refusal: a client whose process cannot be had now, or ends at once, has one
 * later. */
TEST(begins_without_a_process)
{
	static const struct {
		void (*script)(int socket);
		int fault;
		const char *why;
	} rows[] = {{NULL, -EAGAIN, "Resource temporarily unavailable"},
		    {leave, 0, "it ended with 7"},
		    {refuse_for_now, 0, "memory is short"},
		    {say_garbage, 0, "said what it may not"}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct acted a = {.script = rows[i].script, .fault = rows[i].fault};
		struct error err = ERROR_NULL;
		static struct exchange x;

		memset(&x, 0, sizeof(x));
		expect_eq(acted_client(&a, &x.loop, &err), 0);
		expect(a.ends == 1 && strstr(a.why, rows[i].why));
		expect_eq(a.after_ms, HTTP_SENDER_FIRST_MS);
		expect_eq(http_sender_starts(x.loop.client), rows[i].fault ? 0 : 1);
		a.script = NULL;
		a.fault = 0;
		while (a.starts < 2)
			http_polled_turn(&x.loop.poll, INT64_MAX);
		exchange_serve(&x, serve_text, hello);
		exchange_run(&x);
		expect_eq(x.outcome.status, 200);
		exchange_fini(&x);
	}
}

/* What it says, of the first request, once that has come. */
static void say(int socket, uint32_t type, struct str payload)
{
	struct channel_message m;
	struct channel c;

	expect_eq(channel_init(&c, socket, 1u << 20), 0);
	expect_eq(channel_put(&c, WIRE_HELLO, 0, STR_NULL), 0);
	while (channel_take(&c, &m) == 0)
		;
	channel_put(&c, type, m.id, payload);
	while (channel_take(&c, &m) >= 0) /* until it is ended */
		;
}

static void say_hello_again(int s)
{
	say(s, WIRE_HELLO, STR_NULL);
}

static void say_an_unknown_word(int s)
{
	say(s, 99, STR_NULL);
}

static void say_our_words(int s)
{
	say(s, WIRE_CANCEL, STR_NULL);
}

static void say_left(int s)
{
	say(s, WIRE_LEFT, STR_NULL);
}

static void say_begun(int s)
{
	say(s, WIRE_BEGUN, STR_NULL);
}

static void say_data(int s)
{
	say(s, WIRE_DATA, STR("data"));
}

static void say_data_and_an_answer(int s)
{
	uint64_t n = 0;

	say(s, WIRE_DATA_DONE, wire_number(&n));
}

static void say_half_an_answer(int s)
{
	say(s, WIRE_DONE, STR("half"));
}

static void say_too_much(int s)
{
	static char much[8192];

	say(s, WIRE_COLLECTED, (struct str){much, sizeof(much)});
}

static void want_a_body(int s)
{
	uint64_t n = 5;

	say(s, WIRE_WANT, wire_number(&n));
}

/* A process that was taken over has no words but those that fit its request: it is ended, the
 * request has failed, and the next process works. */
TEST(ends_what_breaks_the_rules)
{
	void (*const scripts[])(int) = {
		say_hello_again, say_an_unknown_word, say_our_words, say_left,    say_begun,
		say_data,        say_half_an_answer,  say_too_much,  want_a_body,
		say_data_and_an_answer,
	};

	for (size_t i = 0; i < sizeof(scripts) / sizeof(*scripts); i++) {
		struct acted a = {.script = scripts[i]};
		static struct exchange x;

		acted_begin(&x, &a, serve_text, hello);
		exchange_run(&x);
		if (x.outcome.result != -ECONNRESET || !strstr(a.why, "said what it may not") ||
		    !x.outcome.sent)
			test_fail(__FILE__, __LINE__, "row %zu: %d, %s", i, x.outcome.result,
				  x.outcome.error);
		exchange_fini(&x);
		expect_eq(a.ends, 1);
	}
}

static size_t body_made;

static int64_t make_body(void *context, char *to, size_t n)
{
	body_made += n;
	memset(to, 'x', n);
	return (int64_t)n;
}

/* Asks for more and more of a body, and reads nothing. */
static void want_and_not_read(int socket)
{
	const uint64_t n = CHANNEL_PIECE;
	struct channel_message m;
	struct channel c;

	expect_eq(channel_init(&c, socket, 1u << 20), 0);
	expect_eq(channel_put(&c, WIRE_HELLO, 0, STR_NULL), 0);
	while (channel_take(&c, &m) == 0)
		;
	while (channel_put(&c, WIRE_WANT, m.id, wire_number(&n)) == 0)
		;
}

/* What it would make the agent keep is no more than sockets hold. */
TEST(who_asks_reads_first)
{
	static struct exchange x;
	struct acted a = {.script = want_and_not_read};

	acted_begin(&x, &a, serve_text, hello);
	x.request.read = make_body;
	x.request.read_bytes = 1u << 30;
	exchange_run(&x);
	expect_eq(x.outcome.result, -ECONNRESET);
	expect(strstr(a.why, "said what it may not"));
	expect(body_made > 0 && body_made < 16u << 20);
	exchange_fini(&x);
}

/* One that dies takes its requests with it: they may have been carried out. Nothing is begun until
 * there is another; and that serves. */
TEST(replaces_what_has_died)
{
	static struct exchange x;
	char url[64];
	struct acted a = {.script = NULL};
	struct error err = ERROR_NULL;

	acted_begin(&x, &a, serve_hang, NULL);
	snprintf(url, sizeof(url), "http://me:hush@127.0.0.1:%u/", test_server_port(x.server));
	x.request.url = str_of(url);
	expect_eq(http_send(x.loop.client, &x.config, &x.request, &x.id, &err), 0);
	kill(a.pid, SIGKILL);
	expect(test_loop_until(&x.loop, &x.outcome.done, 60000));
	expect(x.outcome.result == -ECONNRESET && x.outcome.sent);
	expect(strstr(x.outcome.error, "to 127.0.0.1") && strstr(x.outcome.error, "signal 9"));
	expect_eq(http_send(x.loop.client, &x.config, &x.request, &x.id, &err), -EAGAIN);
	expect(strstr(err.text, "(signal 9 ended it); another is started"));
	expect_eq(a.after_ms, HTTP_SENDER_FIRST_MS);
	test_server_free(x.server);
	while (http_sender_starts(x.loop.client) < 2)
		http_polled_turn(&x.loop.poll, INT64_MAX);
	exchange_serve(&x, serve_text, hello);
	x.outcome.calls = 0;
	exchange_run(&x);
	expect_eq(x.outcome.status, 200);
	expect_eq(a.starts, 2);
	exchange_fini(&x);
}

/* Waits for its end, and leaves it to be reaped. */
static void until_gone(const struct acted *a)
{
	siginfo_t info;

	expect(waitid(P_PID, (id_t)a->pid, &info, WEXITED | WNOWAIT) == 0);
}

static void put_answer(struct channel *c, uint64_t id, int64_t elapsed_ns)
{
	const struct http_response ok = {
		.status = 200, .sent = true, .retry_after_ms = -1, .elapsed_ns = elapsed_ns};
	struct buf b = BUF_NULL;

	wire_put_answer(&b, &ok);
	expect(!b.failed);
	channel_put(c, WIRE_DONE, id, buf_str(&b));
	buf_free(&b);
}

static void say_a_long_time(int socket)
{
	struct channel_message m;
	struct channel c;

	expect_eq(channel_init(&c, socket, 1u << 20), 0);
	expect_eq(channel_put(&c, WIRE_HELLO, 0, STR_NULL), 0);
	while (channel_take(&c, &m) == 0)
		;
	put_answer(&c, m.id, INT64_MAX - 1);
	while (channel_take(&c, &m) >= 0)
		;
}

/* No exchange has lasted longer than its request has been there, whatever the process says. */
TEST(an_answer_is_no_older_than_its_request)
{
	static struct exchange x;
	struct acted a = {.script = say_a_long_time};
	int64_t before = clock_mono();

	acted_begin(&x, &a, serve_text, hello);
	exchange_run(&x);
	expect_eq(x.outcome.status, 200);
	expect(x.outcome.elapsed_ns >= 0 && x.outcome.elapsed_ns <= clock_mono() - before);
	exchange_fini(&x);
}

/* Says the last piece and the answer in one: of the first request as they should be, of the second
 * a piece that is longer than the message. */
static void say_ends(int socket)
{
	static const uint64_t lengths[] = {3, 4};
	const struct http_response ok = {.status = 200, .sent = true, .retry_after_ms = -1};
	struct channel_message m;
	struct channel c;

	expect_eq(channel_init(&c, socket, 1u << 20), 0);
	expect_eq(channel_put(&c, WIRE_HELLO, 0, STR_NULL), 0);
	for (size_t i = 0; i < 2; i++) {
		struct buf b = BUF_NULL;

		while (channel_take(&c, &m) == 0)
			;
		buf_append(&b, &lengths[i], sizeof(lengths[i]));
		buf_str_append(&b, STR("abc"));
		if (i == 0)
			wire_put_answer(&b, &ok);
		channel_put(&c, WIRE_DATA_DONE, m.id, buf_str(&b));
		buf_free(&b);
	}
	while (channel_take(&c, &m) >= 0)
		;
}

static size_t streamed;

static bool note_data(void *context, struct str piece)
{
	expect(!((const struct outcome *)context)->done);
	streamed += piece.n;
	return true;
}

/* The last piece of a stream may come with its end, and then counts as if it came before; one that
 * is longer than what was said ends the process. */
TEST(a_stream_may_end_with_its_last_piece)
{
	static struct exchange x;
	struct acted a = {.script = say_ends};

	acted_begin(&x, &a, serve_text, hello);
	x.request.data = note_data;
	exchange_run(&x);
	expect(x.outcome.status == 200 && a.ends == 0);
	expect_eq(streamed, 3);
	exchange_run(&x);
	expect_eq(streamed, 3);
	expect_eq(x.outcome.result, -ECONNRESET);
	expect(strstr(a.why, "said what it may not"));
	exchange_fini(&x);
}

#define PIECES 100 /* more than are read at once */

/* Says that it is confined and what the first request's answer is, all at once, and ends without
 * having read the second, which is there. */
static void answer_and_leave(int socket)
{
	struct pollfd second = {.fd = socket, .events = POLLIN};
	struct channel_message m;
	struct channel c;

	expect_eq(channel_init(&c, socket, 1u << 20), 0);
	expect_eq(channel_put(&c, WIRE_HELLO, 0, STR_NULL), 0);
	while (channel_take(&c, &m) == 0)
		;
	expect(poll(&second, 1, 60000) == 1);
	for (int i = 0; i < PIECES; i++)
		expect_eq(channel_put(&c, WIRE_COLLECTED, m.id, STR("a")), 0);
	put_answer(&c, m.id, 0);
	expect(!channel_waits(&c));
}

/* What a process had said before it ended counts: an answer is none that was lost, though the
 * socket says first that the other end has not read all, and though a write to it has failed. The
 * request that it had not answered may have been sent. */
TEST(what_was_said_before_the_end_counts)
{
	for (int writes = 0; writes < 2; writes++) {
		static struct exchange x;
		struct acted a = {.script = answer_and_leave};
		struct error err = ERROR_NULL;
		struct outcome second = {.done = false}, third = {.done = false};
		struct http_request q;
		uint64_t id;

		acted_begin(&x, &a, serve_text, hello);
		q = x.request;
		expect_eq(http_send(x.loop.client, &x.config, &x.request, &x.id, &err), 0);
		q.context = &second;
		expect_eq(http_send(x.loop.client, &x.config, &q, &id, &err), 0);
		until_gone(&a);
		q.context = &third;
		if (writes)
			expect_eq(http_send(x.loop.client, &x.config, &q, &id, &err), 0);
		expect(test_loop_until(&x.loop, &second.done, 60000));
		expect(x.outcome.done && x.outcome.calls == 1);
		expect_eq(x.outcome.status, 200);
		expect_eq(x.outcome.n, PIECES);
		expect(second.result == -ECONNRESET && second.sent);
		expect(strstr(a.why, "it ended with 7"));
		if (writes) {
			expect(test_loop_until(&x.loop, &third.done, 60000));
			expect(third.result == -ECONNRESET && !third.sent);
		}
		exchange_fini(&x);
	}
}

/* Is confined, reads a request and ends: it may have sent it. */
static void take_and_leave(int socket)
{
	struct channel_message m;
	struct channel c;

	expect_eq(channel_init(&c, socket, 1u << 20), 0);
	expect_eq(channel_put(&c, WIRE_HELLO, 0, STR_NULL), 0);
	while (channel_take(&c, &m) == 0)
		;
}

/* Whether a process could send is known from what it has said, also where it has ended before that
 * was read: a request that it was given is not taken to be unsent. */
TEST(what_was_given_before_the_greeting_was_read)
{
	for (int withdraws = 0; withdraws < 2; withdraws++) {
		static struct exchange x;
		struct acted a = {.script = take_and_leave};
		struct error err = ERROR_NULL;

		acted_begin(&x, &a, serve_text, hello);
		expect_eq(http_send(x.loop.client, &x.config, &x.request, &x.id, &err), 0);
		expect(test_loop_until(&x.loop, &x.outcome.done, 60000));
		while (http_sender_starts(x.loop.client) < 2)
			http_polled_turn(&x.loop.poll, INT64_MAX);
		x.outcome = (struct outcome){.done = false};
		expect_eq(http_send(x.loop.client, &x.config, &x.request, &x.id, &err), 0);
		until_gone(&a);
		if (withdraws) {
			expect(http_withdraw(x.loop.client, x.id));
		} else {
			expect(test_loop_until(&x.loop, &x.outcome.done, 60000));
			expect(x.outcome.result == -ECONNRESET && x.outcome.sent);
		}
		exchange_fini(&x);
	}
}

struct made {
	bool asked;
	uint64_t n;
};

static int64_t make(void *context, char *to, size_t n)
{
	struct made *m = context;

	m->asked = true;
	memset(to, 'a', n);
	m->n += n;
	return (int64_t)n;
}

__attribute__((noreturn)) static void never_done(void *context, const struct http_response *r)
{
	test_fail(__FILE__, __LINE__, "done, with %s", r->error);
}

/* What is withdrawn is known to have left, or not to have; and is not answered any more. */
TEST(withdraws_and_knows_what_has_left)
{
	static struct exchange x;
	struct acted a = {.script = NULL};
	struct made made = {false, 0};
	struct error err = ERROR_NULL;
	bool flag, never = false;
	struct http_request q;
	uint64_t id;

	acted_begin(&x, &a, serve_hang, NULL);
	id = acted_hang(&x, &flag);
	flag = false;
	expect(http_withdraw(x.loop.client, id));
	expect(!http_withdraw(x.loop.client, id));
	q = x.request;
	q.method = "POST";
	q.read = make;
	q.read_bytes = 10u << 20;
	q.max_send = 1000;
	q.done = never_done;
	q.context = &made;
	expect_eq(http_send(x.loop.client, &x.config, &q, &id, &err), 0);
	expect(test_loop_until(&x.loop, &made.asked, 60000));
	expect(!http_withdraw(x.loop.client, id));
	test_loop_until(&x.loop, &never, 20);
	expect(!flag && made.n < q.read_bytes);
	exchange_fini(&x);
	expect_eq(a.ends, 0);
}

/* One that gets no CPU is waited for once, a second, and goes on: it has requests of others. */
TEST(withdraws_from_one_that_waits_for_a_cpu)
{
	static struct exchange x;
	struct acted a = {.script = NULL};
	bool flag;

	acted_begin(&x, &a, serve_hang, NULL);
	acted_hang(&x, &flag);
	x.id = acted_hang(&x, &flag);
	kill(a.pid, SIGSTOP);
	expect(http_withdraw(x.loop.client, x.id - 1) && http_withdraw(x.loop.client, x.id));
	kill(a.pid, SIGCONT);
	test_server_free(x.server);
	exchange_serve(&x, serve_text, hello);
	exchange_run(&x);
	expect(x.outcome.status == 200 && !a.ends);
	exchange_fini(&x);
}

static int send_much(void *context)
{
	static char bytes[100000];
	const struct http_config config = {.bearer_token = STR("t"), .proxy_url = STR("http://p")};
	struct exchange *x = context;
	struct http_request q = x->request;
	uint64_t id;
	int r;

	q.method = "POST";
	q.body = (struct str){bytes, sizeof(bytes)};
	r = http_send(x->loop.client, &config, &q, &id, NULL);
	if (r == 0)
		http_cancel(x->loop.client, id);
	return r;
}

/* A request that memory was short for leaves nothing behind, in neither process. */
TEST(sending_survives_out_of_memory)
{
	static struct exchange x;
	struct acted a = {.script = NULL};

	acted_begin(&x, &a, serve_text, hello);
	test_each_failing_allocation(send_much, &x);
	exchange_run(&x);
	expect_eq(x.outcome.status, 200);
	expect_eq(a.ends, 0);
	exchange_fini(&x);
}
