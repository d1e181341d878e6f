/* SPDX-License-Identifier: Apache-2.0 */
/* What asks for names, and a process that is good, bad or absent. (Records of real answers are in
 * test-groups.c and tests/servers/test_discovery.py.) */
#include "discovery/resolver.h"

#include "http/sender/channel.h"
#include "http/sender/sender.h"
#include "http/sender/wire.h"
#include "testing/test.h"

#include <andiron/component.h>
#include <andiron/subprocess.h>
#include <arpa/nameser.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ANSWER 32u
#define SILENT 33u

static void (*script)(int socket);
static int fault;

static int32_t start_sender(void *self, uint64_t instance, int32_t *ret_socket, int32_t *ret_pidfd)
{
	int fds[2];
	pid_t pid;

	if (fault)
		return fault;
	expect(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
	pid = fork();
	expect(pid >= 0);
	if (pid == 0) {
		close(fds[0]);
		script(fds[1]);
		_exit(0);
	}
	close(fds[1]);
	*ret_socket = fds[0];
	*ret_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return *ret_pidfd < 0 ? -errno : 0;
}

static const struct andiron_subprocess service = {.size = sizeof(service),
						  .start_sender = start_sender};

static int32_t extension(uint64_t instance, const char *id, struct andiron_extension *ret)
{
	*ret = (struct andiron_extension){.table = &service};
	return 0;
}

static const struct andiron_host host = {.size = sizeof(host), .extension = extension};
static const struct abi_context context = {&host, 1};

static struct resolver *begin(void (*with)(int socket))
{
	struct resolver *r;

	script = with;
	fault = 0;
	expect_eq(resolver_start(&context, &r), 0);
	return r;
}

static int ask(struct resolver *r, uint8_t answer[NS_MAXMSG])
{
	return resolver_ask(r, "name.example", ns_t_a, answer);
}

/* Until the process is to end. */
static void hold(struct channel *c)
{
	struct pollfd ready = {.fd = c->fd, .events = POLLIN};
	struct channel_message m;
	int r;

	while ((r = channel_take(c, &m)) >= 0)
		if (r == 0)
			poll(&ready, 1, -1);
}

/* Says hello, and this for the first question. */
static void say(int socket, uint32_t type, uint64_t id, struct str payload)
{
	struct channel_message m;
	struct channel c;

	expect_eq(channel_init(&c, socket, NS_MAXDNAME), 0);
	expect_eq(channel_put(&c, WIRE_HELLO, 0, STR_NULL), 0);
	while (channel_take(&c, &m) == 0)
		;
	expect(m.id == ns_t_a && str_is(m.payload, "name.example"));
	channel_put(&c, type, id, payload);
	hold(&c);
}

static void answers(int socket)
{
	say(socket, ANSWER, ns_t_a, STR("bytes"));
}

static void has_none(int socket)
{
	say(socket, ANSWER, ns_t_a, STR_NULL);
}

static void says_that_none_answers(int socket)
{
	say(socket, SILENT, ns_t_a, STR_NULL);
}

/* What the process says of a name is what is known of it, and it goes on. */
TEST(answers_are_passed_on)
{
	static uint8_t answer[NS_MAXMSG];
	static const struct {
		void (*script)(int socket);
		int result;
	} rows[] = {{answers, 5}, {has_none, 0}, {says_that_none_answers, -EAGAIN}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct resolver *r = begin(rows[i].script);

		expect_eq(ask(r, answer), rows[i].result);
		expect(!resolver_is_worn(r));
		resolver_release(r);
	}
	expect(memcmp(answer, "bytes", 5) == 0);
}

/* A name that is longer than there are any costs nobody else an answer. */
TEST(a_name_may_be_too_long)
{
	static uint8_t answer[NS_MAXMSG];
	static char name[NS_MAXDNAME + 1];
	struct resolver *r = begin(answers);

	memset(name, 'a', NS_MAXDNAME);
	expect_eq(resolver_ask(r, name, ns_t_a, answer), -ENAMETOOLONG);
	expect(!resolver_is_worn(r));
	expect_eq(ask(r, answer), 5);
	resolver_release(r);
}

static void answers_another_type(int socket)
{
	say(socket, ANSWER, ns_t_mx, STR("bytes"));
}

static void says_hello_again(int socket)
{
	say(socket, WIRE_HELLO, ns_t_a, STR_NULL);
}

static void says_too_much(int socket)
{
	static char text[NS_MAXMSG + 1];

	say(socket, ANSWER, ns_t_a, (struct str){text, sizeof(text)});
}

static void begins_with_an_answer(int socket)
{
	struct channel c;

	expect_eq(channel_init(&c, socket, NS_MAXDNAME), 0);
	channel_put(&c, ANSWER, ns_t_a, STR("bytes"));
	hold(&c);
}

static void says_garbage(int socket)
{
	expect(write(socket, "garbage", 7) == 7);
	pause();
}

static void leaves(int socket)
{
}

/* One that says what none of ours would, or has gone, is believed nothing, and is replaced. */
TEST(a_liar_is_ended)
{
	static uint8_t answer[NS_MAXMSG];
	static void (*const scripts[])(int socket) = {
		answers_another_type, says_hello_again, says_too_much,
		begins_with_an_answer, says_garbage, leaves,
	};

	for (size_t i = 0; i < sizeof(scripts) / sizeof(*scripts); i++) {
		struct resolver *r = begin(scripts[i]);

		expect_eq(ask(r, answer), -EPIPE);
		expect(resolver_is_worn(r) && !resolver_refusal(r));
		expect_eq(ask(r, answer), -EPIPE);
		resolver_release(r);
	}
}

static void refuses(int socket)
{
	http_serve_refusal(socket, false, "there are no walls");
}

static void refuses_for_now(int socket)
{
	http_serve_refusal(socket, true, "memory is short");
}

/* One that cannot be confined is told from one that is there later; neither is asked. */
TEST(a_refusal_is_told)
{
	static const struct {
		void (*script)(int socket);
		int result;
		const char *why;
	} rows[] = {{refuses, -EPERM, "there are no walls"},
		    {refuses_for_now, -EAGAIN, "memory is short"}};
	static uint8_t answer[NS_MAXMSG];

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct resolver *r = begin(rows[i].script);
		struct error err = ERROR_NULL;

		expect_eq(resolver_await(r, &err), rows[i].result);
		expect(strstr(err.text, rows[i].why));
		expect_eq(ask(r, answer), -EPIPE);
		expect(strstr(resolver_refusal(r), rows[i].why));
		expect(resolver_is_worn(r));
		resolver_release(r);
		r = begin(rows[i].script);
		expect(!resolver_refusal(r));
		expect_eq(ask(r, answer), -EPIPE);
		expect(strstr(resolver_refusal(r), rows[i].why));
		resolver_release(r);
	}
	fault = -EAGAIN;
	expect_eq(resolver_start(&context, &(struct resolver *){NULL}), -EAGAIN);
}

static void is_silent(int socket)
{
	struct channel c;

	expect_eq(channel_init(&c, socket, NS_MAXDNAME), 0);
	expect_eq(channel_put(&c, WIRE_HELLO, 0, STR_NULL), 0);
	hold(&c);
}

/* One that has ended on its own is known to have, before it is asked. */
TEST(the_end_of_one_that_waits_is_seen)
{
	struct resolver *r = begin(is_silent);
	struct error err = ERROR_NULL;

	expect_eq(resolver_await(r, &err), 0);
	expect(!resolver_is_worn(r));
	resolver_end(r);
	while (!resolver_is_worn(r))
		;
	resolver_release(resolver_retain(r));
	resolver_release(r);
}
