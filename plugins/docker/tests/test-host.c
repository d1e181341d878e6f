/* SPDX-License-Identifier: Apache-2.0 */
/* Calls and watches of a host. Contract in test-host.h. */
#include "docker/tests/test-host.h"

#include "testing/test.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define SLOTS 32

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
} h;
struct test_host test_host;

static int64_t now_ns(void)
{
	return clock_mono() + test_host.ahead_ns;
}

/* Without a worker program. */
static int32_t extension(uint64_t instance, const char *id, struct andiron_extension *ret)
{
	return -ENOENT;
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

static void on_change(void *context, int change, struct target_row *row)
{
	test_host.changes[change]++;
}

static int32_t send_targets(uint64_t instance, const char *export_name,
			    const struct andiron_targets *update)
{
	return target_table_apply(test_host.targets, update, on_change, NULL);
}

static void health(uint64_t instance, uint32_t state, const struct andiron_str *message)
{
	snprintf(test_host.health, sizeof(test_host.health), "%.*s", (int)message->len,
		 message->ptr);
}

const struct andiron_host test_host_calls = {
	.size = sizeof(test_host_calls),
	.extension = extension,
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

void test_host_call(void)
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

static void turn(void)
{
	test_host_call();
	run_watches();
}

bool test_host_until(const atomic_int *count, int wanted)
{
	int64_t end = clock_mono() + TEST_HOST_LIMIT_NS;

	while (atomic_load(count) < wanted && clock_mono() < end)
		turn();
	return atomic_load(count) >= wanted;
}

bool test_host_until_says(const char *words)
{
	int64_t end = clock_mono() + TEST_HOST_LIMIT_NS;

	while (!strstr(test_host.health, words) && clock_mono() < end)
		turn();
	return strstr(test_host.health, words) != NULL;
}

bool test_host_until_targets(size_t n)
{
	int64_t end = clock_mono() + TEST_HOST_LIMIT_NS;

	while (target_table_count(test_host.targets) != n && clock_mono() < end)
		turn();
	return target_table_count(test_host.targets) == n;
}

void test_host_begin(void)
{
	memset(&h, 0, sizeof(h));
	test_host = (struct test_host){.targets = target_table_new()};
	expect(test_host.targets);
}

void test_host_end(void)
{
	target_table_free(test_host.targets);
}

void test_host_answer(int fd, int status, const char *body)
{
	char head[128];

	snprintf(head, sizeof(head),
		 "HTTP/1.1 %d X\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", status,
		 strlen(body));
	test_say(fd, head);
	test_say(fd, body);
}
