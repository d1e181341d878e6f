/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners at places that change, and their clients, turn by turn in one thread. */
#include "http-server/listener.h"

#include "base/clock.h"
#include "http-server/protocol.h"
#include "testing/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define LIMIT_NS (120 * NS_PER_SEC)
#define WATCHES  8
#define MANY     100

/* --- A host that has watches and timers, and listens to nothing else --- */

static struct {
	andiron_watch_fn ready[WATCHES];
	andiron_call_fn due[WATCHES];
	void *arg[WATCHES], *due_arg[WATCHES];
	int fds[WATCHES];
	uint64_t n_watches, n_timers;
	bool short_of_watches;
	struct server **forked; /* a child has its socket from then on */
} loop;

static int held[3]; /* sockets that others have until the end */
static int n_held;

static int32_t watch_add(uint64_t instance, int32_t fd, uint32_t events, andiron_watch_fn fn,
			 void *arg, uint64_t *ret)
{
	uint64_t i = 0;

	if (loop.forked) {
		held[n_held++] = dup((*loop.forked)->socket);
		loop.forked = NULL;
	}
	if (loop.short_of_watches)
		return -ENOMEM;
	while (loop.ready[i])
		i++;
	expect(i < WATCHES);
	loop.ready[i] = fn;
	loop.arg[i] = arg;
	loop.fds[i] = fd;
	loop.n_watches++;
	*ret = i + 1;
	return 0;
}

static void watch_remove(uint64_t instance, uint64_t watch)
{
	loop.ready[watch - 1] = NULL;
	loop.n_watches--;
}

static int32_t timer_set(uint64_t instance, int64_t after_ns, int64_t every_ns, andiron_call_fn fn,
			 void *arg, uint64_t *ret)
{
	uint64_t i = 0;

	while (loop.due[i])
		i++;
	expect(i < WATCHES);
	loop.due[i] = fn;
	loop.due_arg[i] = arg;
	*ret = i + 1;
	return 0;
}

static void timer_cancel(uint64_t instance, uint64_t timer)
{
	loop.due[timer - 1] = NULL;
}

static int32_t log_enabled(uint64_t instance, uint32_t level)
{
	return 0;
}

static char health[200];

static void say_health(uint64_t instance, uint32_t state, const struct andiron_str *text)
{
	snprintf(health, sizeof(health), "%u %.*s", state, (int)text->len, text->ptr);
}

static const struct andiron_host host = {.size = sizeof(host),
					 .watch_add = watch_add,
					 .watch_remove = watch_remove,
					 .timer_set = timer_set,
					 .timer_cancel = timer_cancel,
					 .log_enabled = log_enabled,
					 .health = say_health};

/* A timer is always late. */
static void turn(void)
{
	for (int i = 0; i < WATCHES; i++) {
		struct pollfd p = {.fd = loop.fds[i], .events = POLLIN};
		andiron_call_fn due = loop.due[i];

		if (loop.ready[i] && poll(&p, 1, 0) > 0)
			loop.ready[i](loop.arg[i], loop.fds[i], ANDIRON_WATCH_IN);
		loop.due[i] = NULL;
		if (due)
			due(loop.due_arg[i]);
	}
}

/* --- Two listeners, which answer by their names --- */

static struct listener listeners[2];

static void on_ready(void *context, struct server_request *r)
{
	server_answer_text(r, 200, context == &listeners[0] ? "the first" : "the second");
}

static struct server_options at(const char *address, uint16_t port)
{
	return (struct server_options){.address = address,
				       .port = port,
				       .limits = {.connections = 2,
						  .memory = 4096,
						  .request_s = 60,
						  .answer_s = 60,
						  .idle_s = 60}};
}

/* NULL: nowhere. */
static struct server_options here(uint16_t port)
{
	return at(port ? "127.0.0.1" : NULL, port);
}

static void begin(struct server_options first, struct server_options second)
{
	const struct abi_context context = {&host, 1};
	const struct server_options *options[] = {&first, &second};
	struct error err = ERROR_NULL;

	for (int i = 0; i < 2; i++) {
		const struct server_events events = {.context = &listeners[i], .ready = on_ready};

		expect_eq(listener_init(&listeners[i], &context, &events, options[i]), 0);
		expect_eq(listener_start(&listeners[i], &err), 0);
	}
}

static void end(void)
{
	for (int i = 0; i < 2; i++) {
		listener_stop(&listeners[i]);
		listener_fini(&listeners[i]);
	}
	expect_eq(loop.n_watches, 0);
	while (n_held > 0)
		close(held[--n_held]);
}

static int update(struct server_options first, struct server_options second, struct error *err)
{
	struct listener_change changes[] = {
		{.listener = &listeners[0], .options = &first},
		{.listener = &listeners[1], .options = &second},
	};

	return listeners_update(changes, 2, err);
}

/* A socket that is bound to a port of the address; 0: to one that is free. */
static int bound(const char *address, uint16_t port, uint16_t *ret_port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
	socklen_t n = sizeof(a);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	expect(inet_pton(AF_INET, address, &a.sin_addr) == 1);
	expect(fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0);
	expect(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

/* A port that is nobody else's until the end: it is bound, and who listens there does so beside. */
static uint16_t unused_port(void)
{
	uint16_t port;

	held[n_held++] = bound("127.0.0.1", 0, &port);
	return port;
}

/* A port at which somebody else listens. */
static int taken_at(const char *address, uint16_t *port)
{
	int fd = bound(address, *port, port);

	expect(listen(fd, 1) == 0);
	return fd;
}

/* -1: nobody listens. */
static int connect_to(uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons(port),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	expect(fd >= 0);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	close(fd);
	return -1;
}

static void say(int fd, const char *text)
{
	expect_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* The rest of what a connection has to say says this. */
static void expect_heard(int fd, const char *says)
{
	int64_t limit = clock_mono() + LIMIT_NS;
	char text[1000] = "";
	size_t n = 0;

	for (;;) {
		ssize_t got = recv(fd, text + n, sizeof(text) - 1 - n, MSG_DONTWAIT);

		if (got == 0 || (got < 0 && errno != EAGAIN))
			break;
		n += got > 0 ? (size_t)got : 0;
		expect(clock_mono() < limit);
		turn();
	}
	close(fd);
	if (!strstr(text, says))
		test_fail(__FILE__, __LINE__, "says \"%s\", not %s", text, says);
}

#define HALF "GET / HTTP/1.1\r\nConnection: close\r\n"

static void expect_at(uint16_t port, const char *says)
{
	int fd = connect_to(port);

	expect(fd >= 0);
	say(fd, HALF "Host: x\r\n\r\n");
	expect_heard(fd, says);
}

/* A connection with half of a request, which has been taken. */
static int half_asked(uint16_t port, unsigned int i)
{
	unsigned int before = server_connections(listeners[i].server);
	int fd = connect_to(port);

	expect(fd >= 0);
	say(fd, HALF);
	while (server_connections(listeners[i].server) == before)
		turn();
	return fd;
}

/* Each has the other's place, and nobody is refused meanwhile. */
TEST(places_are_swapped)
{
	uint16_t a = unused_port(), b = unused_port();
	struct error err = ERROR_NULL;
	int early;

	begin(here(a), here(b));
	expect_at(a, "the first");
	early = connect_to(a); /* and waits to be taken */
	expect(early >= 0);
	expect_eq(update(here(b), here(a), &err), 0);
	say(early, HALF "Host: x\r\n\r\n");
	expect_heard(early, "the second");
	expect_at(a, "the second");
	expect_at(b, "the first");
	end();
}

/* A place passes to another listener, in either order, while the one before goes elsewhere. */
TEST(a_place_is_handed_over)
{
	uint16_t a = unused_port(), b = unused_port();
	struct error err = ERROR_NULL;

	begin(here(0), here(a));
	expect_eq(update(here(a), here(0), &err), 0);
	expect_at(a, "the first");
	expect(!listeners[1].server);
	expect_eq(update(here(b), here(a), &err), 0);
	expect_at(a, "the second");
	expect_at(b, "the first");
	expect_eq(update(here(a), here(0), &err), 0);
	expect_at(a, "the first");
	expect_eq(connect_to(b), -1);
	end();
}

/* Whoever is connected does not notice an update that is refused, wherever it fails. */
TEST(a_refused_update_touches_nobody)
{
	uint16_t a = unused_port(), b = unused_port(), c = 0;
	int foreign = taken_at("127.0.0.1", &c), first, second;
	struct error err = ERROR_NULL;

	begin(here(a), here(b));
	first = half_asked(a, 0);
	second = half_asked(b, 1);
	expect_eq(update(here(0), here(c), &err), -EADDRINUSE);
	expect(strstr(err.text, "cannot listen at 127.0.0.1 port"));
	err = ERROR_NULL;
	expect_eq(update(here(b), here(c), &err), -EADDRINUSE);
	err = ERROR_NULL;
	expect_eq(update(here(a), here(a), &err), -EADDRINUSE);
	err = ERROR_NULL;
	loop.short_of_watches = true;
	expect_eq(update(here(b), here(a), &err), -ENOMEM);
	expect(strstr(err.text, "cannot"));
	loop.short_of_watches = false;
	say(first, "Host: x\r\n\r\n");
	expect_heard(first, "the first");
	say(second, "Host: x\r\n\r\n");
	expect_heard(second, "the second");
	expect_at(a, "the first");
	expect_at(b, "the second");
	expect(!strstr(health, "cannot"));
	close(foreign);
	end();
}

/* All addresses cannot be had beside one of them: that makes way, and comes back if need be. */
TEST(an_address_makes_way)
{
	uint16_t a = unused_port(), b = unused_port();
	struct error err = ERROR_NULL;
	int foreign = taken_at("127.0.0.2", &a), first;

	begin(here(a), here(b));
	first = half_asked(a, 0);
	expect_eq(update(at("0.0.0.0", a), here(b), &err), -EADDRINUSE);
	err = ERROR_NULL;
	expect_eq(update(here(0), at("0.0.0.0", a), &err), -EADDRINUSE);
	say(first, "Host: x\r\n\r\n");
	expect_heard(first, "the first");
	expect_at(a, "the first");
	close(foreign);
	err = ERROR_NULL;
	expect_eq(update(here(b), at("0.0.0.0", a), &err), 0);
	expect_at(a, "the second");
	expect_at(b, "the first");
	end();
}

/* Nor does it stay away because a child that has not yet called exec has the new socket. */
TEST(a_place_comes_back_from_a_child)
{
	uint16_t a = unused_port();
	struct server_options all = at("0.0.0.0", a);
	struct listener_change change = {.listener = &listeners[0], .options = &all};
	struct error err = ERROR_NULL;

	begin(here(a), here(0));
	health[0] = '\0';
	loop.forked = &change.server;
	loop.short_of_watches = true;
	expect_eq(listeners_update(&change, 1, &err), -ENOMEM);
	loop.short_of_watches = false;
	expect_str(str_of(health), "");
	expect_at(a, "the first");
	end();
}

/* All addresses are those of IPv6, too, where one of these was ours. */
TEST(all_addresses_are_all)
{
	uint16_t a = unused_port();
	struct sockaddr_in6 local = {.sin6_family = AF_INET6,
				     .sin6_port = htons(a),
				     .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool here_too = fd >= 0 && bind(fd, (struct sockaddr *)&local, sizeof(local)) == 0;
	struct error err = ERROR_NULL;

	close(fd);
	if (!here_too)
		test_skip("this machine has no IPv6");
	begin(at("::1", a), here(0));
	expect_eq(update(at("", a), here(0), &err), 0);
	expect_at(a, "the first");
	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	expect_eq(connect(fd, (struct sockaddr *)&local, sizeof(local)), 0);
	say(fd, HALF "Host: x\r\n\r\n");
	expect_heard(fd, "the first");
	end();
}

/* Where it could not come back, the next update has it listen again, though nothing changes. */
TEST(a_lost_place_is_had_again)
{
	uint16_t a = unused_port(), b = unused_port();
	struct error err = ERROR_NULL;

	begin(here(a), here(b));
	server_unlisten(listeners[0].server);
	expect_eq(connect_to(a), -1);
	expect_eq(update(here(a), here(b), &err), 0);
	expect_at(a, "the first");
	end();
}

/* A port that was free for the taking stays the same while other options change. */
TEST(a_free_port_is_kept)
{
	struct server_options first = at("127.0.0.1", 0), other = first;
	struct error err = ERROR_NULL;
	uint16_t port;

	other.limits.connections = 3;
	begin(first, first);
	port = server_port(listeners[0].server);
	expect(port != server_port(listeners[1].server));
	expect_eq(update(other, other, &err), 0);
	expect_eq(server_port(listeners[0].server), port);
	expect(port != server_port(listeners[1].server));
	expect_at(port, "the first");
	end();
}

/* It is had again after one that was named; where another has it then, it is another one. */
TEST(a_free_port_is_had_again)
{
	struct server_options first = at("127.0.0.1", 0);
	uint16_t named = unused_port(), port, taken;
	struct error err = ERROR_NULL;
	int foreign;

	begin(first, here(0));
	port = taken = server_port(listeners[0].server);
	expect_eq(update(here(named), here(0), &err), 0);
	expect_eq(update(first, here(0), &err), 0);
	expect_eq(server_port(listeners[0].server), port);
	expect_eq(update(here(port), here(0), &err), 0);
	expect_eq(update(first, here(0), &err), 0);
	expect_eq(server_port(listeners[0].server), port);
	expect_eq(update(here(named), here(0), &err), 0);
	foreign = taken_at("127.0.0.1", &taken);
	expect_eq(update(first, here(0), &err), 0);
	expect(server_port(listeners[0].server) != port);
	expect_at(server_port(listeners[0].server), "the first");
	close(foreign);
	end();
}

/* Whoever was connected when its place was given up is taken, be it many. */
TEST(all_who_wait_are_taken)
{
	uint16_t a = unused_port();
	struct server_options many = here(a);
	int fds[MANY];

	many.limits.connections = MANY;
	begin(many, here(0));
	for (int i = 0; i < MANY; i++) {
		fds[i] = connect_to(a);
		expect(fds[i] >= 0);
	}
	server_unlisten(listeners[0].server);
	expect_eq(server_connections(listeners[0].server), MANY);
	for (int i = 0; i < MANY; i++)
		close(fds[i]);
	end();
}

/* Beyond the limit a connection waits until there is room, and is counted meanwhile. */
TEST(connections_wait_at_the_limit)
{
	uint16_t a = unused_port();
	int fds[3], late;

	begin(here(a), here(0));
	for (int i = 0; i < 2; i++)
		fds[i] = half_asked(a, 0);
	expect_eq(server_waiting(listeners[0].server), 0);
	late = connect_to(a);
	fds[2] = connect_to(a);
	expect(late >= 0 && fds[2] >= 0);
	say(late, HALF "Host: x\r\n\r\n");
	for (int i = 0; i < 10; i++)
		turn();
	expect_eq(server_connections(listeners[0].server), 2);
	expect_eq(server_waiting(listeners[0].server), 2);
	close(fds[0]);
	expect_heard(late, "the first");
	close(fds[1]);
	close(fds[2]);
	end();
}
