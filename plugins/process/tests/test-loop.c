/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in test-loop.h. */
#include "process/tests/test-loop.h"

#include "base/clock.h"
#include "testing/test.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

static struct loop *loop; /* a test is one process, and has one */

static int32_t error_add(struct andiron_error *err, int32_t code, const char *text, uint64_t len)
{
	return code;
}

static int32_t log_enabled(uint64_t instance, uint32_t level)
{
	return 1;
}

static void log_line(uint64_t instance, uint32_t level, const struct andiron_str *message,
		     const struct andiron_kv *kv, uint64_t n_kv)
{
	loop->n_warnings += level <= ANDIRON_LOG_WARN;
}

static int32_t watch_add(uint64_t instance, int32_t fd, uint32_t events, andiron_watch_fn fn,
			 void *arg, uint64_t *ret_watch)
{
	for (size_t i = 0; i < LOOP_SLOTS; i++) {
		if (loop->watches[i].fn)
			continue;
		loop->watches[i] = (struct loop_watch){fn, arg, fd};
		*ret_watch = i + 1;
		return 0;
	}
	return -ENOMEM;
}

static void watch_remove(uint64_t instance, uint64_t watch)
{
	expect(watch >= 1 && watch <= LOOP_SLOTS && loop->watches[watch - 1].fn);
	loop->watches[watch - 1].fn = NULL;
}

static int32_t call_add(struct loop_call call, uint64_t *ret)
{
	for (size_t i = 0; i < LOOP_SLOTS; i++) {
		if (loop->calls[i].fn)
			continue;
		loop->calls[i] = call;
		if (ret)
			*ret = i + 1;
		return 0;
	}
	return -ENOMEM;
}

static int32_t timer_set(uint64_t instance, int64_t after_ns, int64_t every_ns, andiron_call_fn fn,
			 void *arg, uint64_t *ret_timer)
{
	expect(every_ns == 0);
	return call_add((struct loop_call){.fn = fn, .arg = arg, .at_ns = clock_mono() + after_ns},
			ret_timer);
}

static void timer_cancel(uint64_t instance, uint64_t timer)
{
	if (timer >= 1 && timer <= LOOP_SLOTS && loop->calls[timer - 1].at_ns)
		loop->calls[timer - 1].fn = NULL;
}

static int32_t post(uint64_t instance, andiron_call_fn fn, void *arg)
{
	return call_add((struct loop_call){.fn = fn, .arg = arg}, NULL);
}

static int32_t work(uint64_t instance, andiron_call_fn run, andiron_call_fn done, void *arg)
{
	return call_add((struct loop_call){.fn = run, .done = done, .arg = arg}, NULL);
}

static void changed(void *context, int change, struct target_row *row)
{
	loop->n_rows_sent++;
}

static int32_t send_targets(uint64_t instance, const char *export_name,
			    const struct andiron_targets *update)
{
	expect(!strcmp(export_name, "targets"));
	loop->n_updates++;
	return target_table_apply(loop->targets, update, changed, NULL);
}

static void health(uint64_t instance, uint32_t state, const struct andiron_str *message)
{
	loop->health = state;
	snprintf(loop->health_text, sizeof(loop->health_text), "%.*s", (int)message->len,
		 message->ptr);
}

static int32_t extension(uint64_t instance, const char *id, struct andiron_extension *ret)
{
	if (!loop->events.table || strcmp(id, ANDIRON_PROCESS_EVENTS_ID) != 0)
		return -ENOENT;
	*ret = loop->events;
	return 0;
}

static const struct andiron_host host = {
	.size = sizeof(host),
	.error_add = error_add,
	.log_enabled = log_enabled,
	.log = log_line,
	.watch_add = watch_add,
	.watch_remove = watch_remove,
	.timer_set = timer_set,
	.timer_cancel = timer_cancel,
	.post = post,
	.work = work,
	.send_targets = send_targets,
	.health = health,
	.extension = extension,
};

const struct andiron_host *loop_init(struct loop *l)
{
	*l = (struct loop){.targets = target_table_new()};
	expect(l->targets != NULL);
	loop = l;
	return &host;
}

void loop_fini(struct loop *l)
{
	target_table_free(l->targets);
	loop = NULL;
}

/* Runs what is due; how long until the next timer, in ms. */
static int run_calls(int timeout_ms)
{
	int64_t now = clock_mono();

	for (size_t i = 0; i < LOOP_SLOTS; i++) {
		struct loop_call call = loop->calls[i];

		if (!call.fn)
			continue;
		if (call.at_ns > now) {
			int64_t ms = (call.at_ns - now) / NS_PER_MSEC + 1;

			timeout_ms = ms < timeout_ms ? (int)ms : timeout_ms;
			continue;
		}
		loop->calls[i].fn = NULL;
		call.fn(call.arg);
		if (call.done)
			call.done(call.arg);
		timeout_ms = 0;
	}
	return timeout_ms;
}

static void run_watches(int timeout_ms)
{
	struct pollfd fds[LOOP_SLOTS];

	for (size_t i = 0; i < LOOP_SLOTS; i++)
		fds[i] = (struct pollfd){loop->watches[i].fn ? loop->watches[i].fd : -1, POLLIN, 0};
	if (poll(fds, LOOP_SLOTS, timeout_ms) <= 0)
		return;
	for (size_t i = 0; i < LOOP_SLOTS; i++)
		if (fds[i].fd >= 0 && fds[i].revents && loop->watches[i].fn)
			loop->watches[i].fn(loop->watches[i].arg, fds[i].fd, ANDIRON_WATCH_IN);
}

bool loop_run(bool (*done)(void *context), void *context, int timeout_ms)
{
	int64_t end = clock_mono() + timeout_ms * NS_PER_MSEC;

	while (!done(context)) {
		int64_t left = (end - clock_mono()) / NS_PER_MSEC;

		if (left <= 0)
			return false;
		run_watches(run_calls((int)left));
	}
	return true;
}
