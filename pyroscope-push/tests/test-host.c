/* SPDX-License-Identifier: Apache-2.0 */
/* The host and the batches of test-host.h. */
#include "pyroscope-push/tests/test-host.h"

#include "abi/batch-build.h"
#include "base/clock.h"
#include "testing/test.h"

#include <andiron/status.h>

#include <errno.h>
#include <stdlib.h>

#define PERIOD_NS 10000000

static struct test_host *h; /* one test, one host */

static int32_t error_add(struct andiron_error *err, int32_t code, const char *text, uint64_t len)
{
	fprintf(stderr, "# error: %.*s\n", (int)len, text);
	return code;
}

static int32_t log_enabled(uint64_t instance, uint32_t level)
{
	return h->verbose;
}

static void log_line(uint64_t instance, uint32_t level, const struct andiron_str *message,
		     const struct andiron_kv *kv, uint64_t n_kv)
{
	if (h->verbose)
		fprintf(stderr, "# %u: %.*s\n", level, (int)message->len, message->ptr);
}

static int32_t watch_add(uint64_t instance, int32_t fd, uint32_t events, andiron_watch_fn fn,
			 void *arg, uint64_t *ret_watch)
{
	expect(h->n_watches < TEST_HOST_MAX);
	for (size_t i = 0; i < h->n_watches; i++)
		if (h->watches[i].fd == fd)
			return -EEXIST;
	*ret_watch = ++h->last_id;
	h->watches[h->n_watches++] = (struct test_watch){fd, events, h->last_id, fn, arg};
	return 0;
}

static int32_t watch_modify(uint64_t instance, uint64_t watch, uint32_t events)
{
	for (size_t i = 0; i < h->n_watches; i++)
		if (h->watches[i].id == watch)
			h->watches[i].events = events;
	return 0;
}

static void watch_remove(uint64_t instance, uint64_t watch)
{
	for (size_t i = 0; i < h->n_watches; i++)
		if (h->watches[i].id == watch) {
			h->watches[i] = h->watches[--h->n_watches];
			return;
		}
	test_fail(__FILE__, __LINE__, "unknown watch removed");
}

static int32_t timer_set(uint64_t instance, int64_t after_ns, int64_t every_ns, andiron_call_fn fn,
			 void *arg, uint64_t *ret_timer)
{
	for (size_t i = 0; i < TEST_HOST_MAX; i++)
		if (!h->timers[i].id) {
			*ret_timer = ++h->last_id;
			h->timers[i] =
				(struct test_timer){h->last_id, clock_mono() + after_ns, fn, arg};
			return 0;
		}
	return -ENOMEM;
}

static void timer_cancel(uint64_t instance, uint64_t timer)
{
	for (size_t i = 0; i < TEST_HOST_MAX; i++)
		if (h->timers[i].id == timer)
			h->timers[i].id = 0;
}

static void ledger_add(uint64_t instance, uint32_t entry, const struct andiron_str *reason,
		       uint64_t samples)
{
	size_t i = 0;

	if (entry == ANDIRON_LEDGER_DELIVERED || entry == ANDIRON_LEDGER_CARRIED) {
		*(entry == ANDIRON_LEDGER_CARRIED ? &h->carried : &h->delivered) += samples;
		return;
	}
	expect(entry == ANDIRON_LEDGER_DROPPED && reason && reason->len < 32);
	h->n_dropped += samples;
	while (h->dropped[i].reason[0] &&
	       !str_eq(str_of(h->dropped[i].reason), (struct str){reason->ptr, reason->len}))
		i++;
	expect(i < 16);
	memcpy(h->dropped[i].reason, reason->ptr, reason->len);
	h->dropped[i].samples += samples;
}

static void ledger_set(uint64_t instance, uint32_t entry, uint64_t samples)
{
	if (entry == ANDIRON_LEDGER_SPOOLED)
		h->spooled = samples;
	else if (entry == ANDIRON_LEDGER_UNCERTAIN)
		h->uncertain = samples;
	else
		h->in_flight = samples;
}

static void health(uint64_t instance, uint32_t state, const struct andiron_str *message)
{
	struct str text = {message->ptr, message->len};

	if (h->verbose && !str_eq(text, str_of(h->message)))
		fprintf(stderr, "# health %u: %.*s\n", state, STR_FMT(text));
	h->health = state;
	snprintf(h->message, sizeof(h->message), "%.*s", STR_FMT(text));
}

/* The host's own, of which a writer wants to know what is coming. */
static uint64_t upstream(void *self, uint64_t instance, uint64_t *ret_dropped)
{
	uint64_t settled = h->delivered + h->spooled + h->uncertain + h->in_flight;

	*ret_dropped = h->n_dropped + h->others;
	return h->taken ? h->taken + h->carried - settled - *ret_dropped : 0;
}

static int32_t extension(uint64_t instance, const char *id, struct andiron_extension *ret)
{
	static const struct andiron_status status = {.size = sizeof(status), .upstream = upstream};

	*ret = (struct andiron_extension){0};
	if (strcmp(id, ANDIRON_STATUS_ID) == 0)
		ret->table = &status;
	else if (strcmp(id, ANDIRON_OBJECTS_ID) == 0)
		ret->table = h->objects; /* where a test has some */
	return ret->table ? 0 : -ENOENT;
}

static void drained(uint64_t instance)
{
	h->drained = true;
}

/* There is one thread: what is for a worker is done at once, its end is told later. */
static int32_t work(uint64_t instance, andiron_call_fn run, andiron_call_fn done, void *arg)
{
	uint64_t timer;

	run(arg);
	return timer_set(instance, 0, 0, done, arg, &timer);
}

struct test_host *test_host_new(void)
{
	h = calloc(1, sizeof(*h));
	expect(h);
	h->table = (struct andiron_host){
		.size = sizeof(h->table),
		.error_add = error_add,
		.log_enabled = log_enabled,
		.log = log_line,
		.watch_add = watch_add,
		.watch_modify = watch_modify,
		.watch_remove = watch_remove,
		.timer_set = timer_set,
		.timer_cancel = timer_cancel,
		.ledger_add = ledger_add,
		.ledger_set = ledger_set,
		.health = health,
		.drained = drained,
		.extension = extension,
		.work = work,
	};
	return h;
}

struct abi_context test_host_context(void)
{
	return (struct abi_context){&h->table, 1};
}

static int64_t run_timers(void)
{
	int64_t next = INT64_MAX, now = clock_mono();

	for (size_t i = 0; i < TEST_HOST_MAX; i++) {
		struct test_timer t = h->timers[i];

		if (!t.id)
			continue;
		if (t.due_ns > now) {
			next = t.due_ns < next ? t.due_ns : next;
			continue;
		}
		h->timers[i].id = 0;
		t.fn(t.arg);
		next = now;
	}
	return next;
}

void test_host_free(void)
{
	expect_eq(h->n_watches, 0);
	run_timers(); /* what a worker did before the end */
	for (size_t i = 0; i < TEST_HOST_MAX; i++)
		expect_eq(h->timers[i].id, 0);
	expect_eq(h->in_flight, 0);
	free(h);
	h = NULL;
}

/* Calls the watch if it is still there: an earlier call may have removed it. */
static void call_watch(uint64_t id, uint32_t events)
{
	for (size_t i = 0; i < h->n_watches; i++)
		if (h->watches[i].id == id) {
			struct test_watch w = h->watches[i];

			w.fn(w.arg, w.fd, events);
			return;
		}
}

static void turn(int64_t until_ns)
{
	struct pollfd fds[TEST_HOST_MAX];
	uint64_t ids[TEST_HOST_MAX];
	size_t n = h->n_watches;
	int64_t wake = run_timers(), wait;

	n = h->n_watches;
	for (size_t i = 0; i < n; i++) {
		fds[i] = (struct pollfd){.fd = h->watches[i].fd,
					 .events = (short)h->watches[i].events};
		ids[i] = h->watches[i].id;
	}
	wait = (wake < until_ns ? wake : until_ns) - clock_mono();
	poll(fds, n, wait <= 0 ? 0 : (int)((wait + NS_PER_MSEC - 1) / NS_PER_MSEC));
	for (size_t i = 0; i < n; i++) {
		uint32_t events = (uint32_t)fds[i].revents & (POLLIN | POLLOUT);

		if (fds[i].revents & (POLLHUP | POLLERR))
			events |= ANDIRON_WATCH_IN | ANDIRON_WATCH_OUT;
		if (events)
			call_watch(ids[i], events);
	}
}

bool test_host_until(const bool *flag, int64_t timeout_ms)
{
	int64_t until = clock_mono() + timeout_ms * NS_PER_MSEC;

	while (!*flag && clock_mono() < until)
		turn(until);
	return *flag;
}

uint64_t test_host_dropped(const char *reason)
{
	for (size_t i = 0; i < 16; i++)
		if (strcmp(h->dropped[i].reason, reason) == 0)
			return h->dropped[i].samples;
	return 0;
}

/* Locations are shared by all groups; the first one names them. */
static uint32_t add_stack(struct batch_builder *b, uint32_t mapping, uint32_t row, uint32_t depth,
			  bool first)
{
	uint32_t frames[128];

	expect(depth <= 128);
	for (uint32_t i = 0; i < depth; i++) {
		char name[64];
		struct andiron_location at = {.mapping = mapping,
					      .kind = ANDIRON_FRAME_NATIVE,
					      .address = 4096 + row * 64 * (i == 0) + i};
		struct andiron_line line = {0};
		uint32_t n;

		snprintf(name, sizeof(name), "function_%u_%u", i ? 0 : row, i);
		line.function =
			batch_add_function(b, &(struct andiron_function){
						      .name = batch_add_string(b, str_of(name))});
		frames[i] = n = batch_add_location(b, &at);
		if (first && (i == 0 || row == 0))
			batch_set_lines(b, n, &line, 1);
	}
	return batch_add_stack(b, frames, depth);
}

/* The labels of group `g`; how many. */
static uint32_t add_labels(struct batch_builder *b, const struct test_shape *s, uint32_t g,
			   uint32_t out[16])
{
	struct str rest = str_of(s->labels);
	char name[64];
	uint32_t n = 2;

	snprintf(name, sizeof(name), "%s%u", s->prefix ? s->prefix : "s", g);
	out[0] = batch_add_str_attribute(b, STR("__process_pid__"), STR("1"));
	out[1] = batch_add_str_attribute(b, STR("service_name"), str_of(name));
	while (rest.n && n < 16) {
		struct str value = str_cut(&rest, ','), key = str_cut(&value, '=');

		out[n++] = batch_add_str_attribute(b, key, value);
	}
	return n;
}

const struct andiron_batch *test_batch(const struct test_shape *s)
{
	struct batch_builder *b = batch_builder_new();
	struct batch_head head = {.start_ns = s->end_ns - 15 * NS_PER_SEC, .end_ns = s->end_ns};
	const struct andiron_batch *batch;
	struct andiron_profile_type type = {.period = PERIOD_NS};
	struct andiron_mapping mapping = {0};
	uint32_t type_index, map_index;

	expect(b);
	type.name = batch_add_string(b, STR("process_cpu"));
	type.type = type.period_type = batch_add_string(b, STR("cpu"));
	type.unit = type.period_unit = batch_add_string(b, STR("nanoseconds"));
	type_index = batch_add_type(b, &type);
	mapping.file = batch_add_string(b, STR("/usr/bin/work"));
	map_index = batch_add_mapping(b, &mapping);
	for (uint32_t g = 0; g < s->n_groups; g++) {
		uint32_t labels[16];

		batch_group_begin(b, labels, add_labels(b, s, g, labels));
		for (uint32_t r = 0; r < s->n_rows; r++) {
			struct andiron_row row = {
				.value = (int64_t)s->samples * PERIOD_NS,
				.samples = s->samples,
				.stack = add_stack(b, map_index, r, s->n_depth, g == 0),
				.type = type_index};

			expect(batch_add_row(b, &row));
		}
	}
	expect_eq(batch_finish(b, &head, &batch), 0);
	return batch;
}
