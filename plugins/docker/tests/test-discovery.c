/* SPDX-License-Identifier: Apache-2.0 */
/* The engine followed, over HTTP, by a host of one thread whose clock can be put forward. The
 * engine here is a proxy that refuses /events, as many do. */
#include "abi/target-list.h"
#include "base/clock.h"
#include "docker/discovery.h"
#include "http/tests/test-loop.h"
#include "testing/test.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define SLOTS    32
#define LIMIT_NS (10 * NS_PER_SEC)
#define REFRESH  (30 * NS_PER_SEC) /* events that were refused are not asked for yet */
#define CONTAINER                                                                                  \
	"{\"Id\":\"aa\",\"Names\":[\"/web\"],\"HostConfig\":{\"NetworkMode\":\"shop\"},"           \
	"\"NetworkSettings\":{\"Networks\":{\"shop\":{\"NetworkID\":\"n1\",\"IPAddress\":"         \
	"\"10.0.0.2\"}}}}"

struct call {
	andiron_call_fn fn;
	void *arg;
	int64_t at_ns, every_ns;
};

struct watch {
	andiron_watch_fn fn;
	void *arg;
	int fd;
	uint32_t events;
};

static struct {
	struct call calls[SLOTS];
	struct watch watches[SLOTS];
	int64_t ahead_ns; /* of the real clock */
	char health[2048];
	struct target_table *targets;
} h;

static int64_t now_ns(void)
{
	return clock_mono() + h.ahead_ns;
}

static int32_t log_enabled(uint64_t instance, uint32_t level)
{
	return 0;
}

static int32_t watch_add(uint64_t instance, int32_t fd, uint32_t events, andiron_watch_fn fn,
			 void *arg, uint64_t *ret_watch)
{
	size_t i = 0;

	while (i < SLOTS && h.watches[i].fn)
		i++;
	expect(i < SLOTS);
	h.watches[i] = (struct watch){fn, arg, fd, events};
	*ret_watch = i + 1;
	return 0;
}

static int32_t watch_modify(uint64_t instance, uint64_t watch, uint32_t events)
{
	h.watches[watch - 1].events = events;
	return 0;
}

static void watch_remove(uint64_t instance, uint64_t watch)
{
	h.watches[watch - 1].fn = NULL;
}

static int32_t timer_set(uint64_t instance, int64_t after_ns, int64_t every_ns, andiron_call_fn fn,
			 void *arg, uint64_t *ret_timer)
{
	size_t i = 0;

	while (i < SLOTS && h.calls[i].fn)
		i++;
	expect(i < SLOTS);
	h.calls[i] = (struct call){fn, arg, now_ns() + after_ns, every_ns};
	*ret_timer = i + 1;
	return 0;
}

static void timer_cancel(uint64_t instance, uint64_t timer)
{
	h.calls[timer - 1].fn = NULL;
}

static int32_t post(uint64_t instance, andiron_call_fn fn, void *arg)
{
	uint64_t timer;

	return timer_set(instance, 0, 0, fn, arg, &timer);
}

/* What is for a worker is done at once, its end is told later. */
static int32_t work(uint64_t instance, andiron_call_fn run, andiron_call_fn done, void *arg)
{
	run(arg);
	return post(instance, done, arg);
}

static void no_change(void *context, int change, struct target_row *row)
{
}

static int32_t send_targets(uint64_t instance, const char *export_name,
			    const struct andiron_targets *update)
{
	return target_table_apply(h.targets, update, no_change, NULL);
}

static void health(uint64_t instance, uint32_t state, const struct andiron_str *message)
{
	snprintf(h.health, sizeof(h.health), "%.*s", (int)message->len, message->ptr);
}

static const struct andiron_host host = {
	.size = sizeof(host),
	.log_enabled = log_enabled,
	.watch_add = watch_add,
	.watch_modify = watch_modify,
	.watch_remove = watch_remove,
	.timer_set = timer_set,
	.timer_cancel = timer_cancel,
	.post = post,
	.work = work,
	.send_targets = send_targets,
	.health = health,
};

static void run_calls(void)
{
	for (size_t i = 0; i < SLOTS; i++) {
		struct call call = h.calls[i];

		if (!call.fn || call.at_ns > now_ns())
			continue;
		h.calls[i].fn = call.every_ns ? call.fn : NULL;
		h.calls[i].at_ns += call.every_ns;
		call.fn(call.arg);
	}
}

static void run_watches(void)
{
	struct pollfd fds[SLOTS];

	for (size_t i = 0; i < SLOTS; i++)
		fds[i] = (struct pollfd){h.watches[i].fn ? h.watches[i].fd : -1,
					 (short)h.watches[i].events, 0};
	poll(fds, SLOTS, 1);
	for (size_t i = 0; i < SLOTS; i++) {
		struct watch w = h.watches[i];
		uint32_t events = (uint32_t)fds[i].revents & (POLLIN | POLLOUT);

		if (fds[i].revents & (POLLHUP | POLLERR))
			events |= ANDIRON_WATCH_IN | ANDIRON_WATCH_OUT;
		if (events && w.fn && w.fd == fds[i].fd)
			w.fn(w.arg, w.fd, events);
	}
}

/* Turns until there were so many requests; false when there were not in time. */
static bool until(const atomic_int *count, int wanted)
{
	int64_t end = clock_mono() + LIMIT_NS;

	while (atomic_load(count) < wanted && clock_mono() < end) {
		run_calls();
		run_watches();
	}
	return atomic_load(count) >= wanted;
}

/* Turns until the health says this. */
static bool until_says(const char *words)
{
	int64_t end = clock_mono() + LIMIT_NS;

	while (!strstr(h.health, words) && clock_mono() < end) {
		run_calls();
		run_watches();
	}
	return strstr(h.health, words) != NULL;
}

struct engine {
	struct test_server *server;
	atomic_int lists, networks; /* requests */
	int failing;                /* lists that fail at first */
	int go[2];                  /* a byte for each answer about networks */
	struct discovery *d;
};

static void answer(int fd, int status, const char *body)
{
	char head[128];

	snprintf(head, sizeof(head),
		 "HTTP/1.1 %d X\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", status,
		 strlen(body));
	test_say(fd, head);
	test_say(fd, body);
}

static void serve(int fd, void *context)
{
	static char request[TEST_REQUEST_MAX];
	struct engine *e = context;
	char byte;

	if (!test_read_request(fd, request))
		return;
	if (!strncmp(request, "GET /networks ", 14)) {
		atomic_fetch_add(&e->networks, 1);
		if (read(e->go[0], &byte, 1) == 1)
			answer(fd, 403, "no networks here");
	} else if (!strncmp(request, "GET /containers/json", 20)) {
		bool fails = atomic_fetch_add(&e->lists, 1) < e->failing;

		answer(fd, fails ? 500 : 200, fails ? "not yet" : "[" CONTAINER "]");
	} else {
		answer(fd, 403, "no events here");
	}
}

/* Starts; the first list is asked for once the engine's events have been waited for. */
static void begin(struct engine *e)
{
	char address[64];
	const struct andiron_str keys[] = {{"host", 4}, {"refresh_interval", 16}};
	struct andiron_value values[] = {
		{.kind = ANDIRON_VALUE_STRING, .string = {address, 0}},
		{.kind = ANDIRON_VALUE_INT, .integer = REFRESH},
	};
	const struct andiron_value args = {
		.kind = ANDIRON_VALUE_MAP, .keys = keys, .items = values, .n_items = 2};
	void *self;

	memset(&h, 0, sizeof(h));
	h.targets = target_table_new();
	expect(h.targets && pipe(e->go) == 0);
	e->server = test_server_new(serve, e);
	snprintf(address, sizeof(address), "tcp://127.0.0.1:%u", test_server_port(e->server));
	values[0].string.len = strlen(address);
	expect_eq(discovery_create(&host, 1, &args, &self, NULL), 0);
	e->d = self;
	expect_eq(discovery_start(e->d, NULL), 0);
	h.ahead_ns += NS_PER_SEC;
}

static void end(struct engine *e)
{
	discovery_stop(e->d);
	close(e->go[1]); /* whoever waits for a byte gets none */
	test_server_free(e->server);
	discovery_free(e->d);
	target_table_free(h.targets);
	close(e->go[0]);
}

/* What was to be listed while the networks were asked for, and refused, is listed after that. The
 * targets are published without what is not known of them, and that is said. */
TEST(a_refusal_of_networks_holds_up_nothing)
{
	struct engine e = {0};

	begin(&e);
	expect(until(&e.networks, 1));
	expect_eq(e.lists, 1);
	h.ahead_ns += REFRESH;
	run_calls();
	expect_eq(write(e.go[1], "y", 1), 1);
	expect(until_says("403 when asked for its networks"));
	expect(strstr(h.health, "labels"));
	expect(!strstr(h.health, "the last targets stay"));
	expect_eq(target_table_count(h.targets), 1);
	expect(until(&e.lists, 2));
	end(&e);
}

/* A list that failed is asked for again soon, although events were refused for longer. */
TEST(a_failed_list_is_tried_again_soon)
{
	struct engine e = {.failing = 1};

	begin(&e);
	expect(until(&e.lists, 2));
	end(&e);
}
