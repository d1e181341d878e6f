/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the small host (host-min.h) that a plugin calls: a table of host.h, up to
 * `extension`, and the loop and the queue behind it. Each function does what host.h says of its
 * member. host-min.h says what is left out, and why. */
#ifndef ANDIRON_HOST_MIN_TABLE_H
#define ANDIRON_HOST_MIN_TABLE_H

/* -std=c11 hides POSIX, unless this is said before the first header of the C library. */
#if defined(__STRICT_ANSI__) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include <andiron/host.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ANDIRON_MIN_FN static inline __attribute__((unused))
#else
#define ANDIRON_MIN_FN static inline
#endif

struct andiron_component;

#define ANDIRON_MIN_QUEUE_BYTES (2ull * ANDIRON_BATCH_MAX_BYTES)

/* Text for people: causes, the outermost first. Empty: nothing was said. */
struct andiron_error {
	char text[1024];
};

/* Findings of `validate`, one a line. */
struct andiron_report {
	char text[4096];
	uint32_t n_errors;
	uint32_t n_warnings;
};

struct andiron_min;

/* What waits for the loop's thread: run, then done; or a batch. */
struct andiron_min_call {
	struct andiron_min_call *next;
	struct andiron_min *part;
	andiron_call_fn run, done;
	void *arg;
	const struct andiron_batch *batch;
};

/* A descriptor that is watched: a component's, or that of a timer. */
struct andiron_min_source {
	struct andiron_min_source *next;
	struct andiron_min *part;
	uint64_t id;
	int32_t fd;
	int32_t is_timer, is_periodic;
	andiron_watch_fn on_ready;
	andiron_call_fn on_time;
	void *arg;
};

struct andiron_min_loop {
	/* Filled in by the caller, or NULL: a line of a component's log. [any]. */
	void (*log)(void *context, uint32_t level, const struct andiron_min *part,
		    const struct andiron_str *text);
	void *context;

	int32_t epoll, wake;
	uint64_t last_id;
	struct andiron_min_source *sources;
	pthread_mutex_t lock; /* over all below, and over a part's results */
	struct andiron_min_call *calls, *last_call;
	uint64_t queued_bytes;
};

/* A component that runs. The caller fills in what comes first, and zeroes the rest. */
struct andiron_min {
	/* Where its output goes; NULL: nowhere. On the loop's thread; borrowed for the call. */
	void (*on_targets)(void *context, const char *export_name,
			   const struct andiron_targets *update);
	void (*on_batch)(void *context, const struct andiron_batch *batch);
	/* As `extension` of host.h; NULL: it has none. */
	int32_t (*extension)(void *context, const char *id, struct andiron_extension *ret);
	void *context;
	/* Lives as long as the process; NULL: andiron_min_host(). */
	const struct andiron_host *host;

	struct andiron_min_loop *loop;
	const struct andiron_component *component;
	void *self;
	struct andiron_error error; /* why create or start failed */
	uint64_t pending;           /* calls that wait for the loop */
	int32_t is_ending;
	int32_t gone; /* no more calls are accepted */
	/* What it has said; under the loop's lock. */
	uint32_t is_drained;
	uint32_t health; /* ANDIRON_HEALTH_… */
	char health_text[512];
	uint64_t ledger[16]; /* by ANDIRON_LEDGER_… */
};

ANDIRON_MIN_FN struct andiron_min *andiron_min_part(uint64_t instance)
{
	return (struct andiron_min *)(uintptr_t)instance;
}

ANDIRON_MIN_FN void andiron_min_copy(char *to, size_t size, const struct andiron_str *text)
{
	size_t n = text->len < size - 1 ? (size_t)text->len : size - 1;

	if (n)
		memcpy(to, text->ptr, n);
	to[n] = '\0';
}

ANDIRON_MIN_FN int32_t andiron_min_error_add(struct andiron_error *err, int32_t code,
					     const char *text, uint64_t len)
{
	const size_t size = sizeof(err->text) - 1;
	size_t n = len < size / 2 ? (size_t)len : size / 2;
	size_t inner, gap;

	if (!err)
		return code;
	inner = strlen(err->text);
	gap = inner ? 2 : 0;
	if (inner > size - n - gap)
		inner = size - n - gap;
	memmove(err->text + n + gap, err->text, inner);
	memcpy(err->text + n, ": ", gap);
	memcpy(err->text, text, n);
	err->text[n + gap + inner] = '\0';
	return code;
}

ANDIRON_MIN_FN void andiron_min_report_add(struct andiron_report *report, uint32_t severity,
					   const struct andiron_value *at, const char *text,
					   uint64_t len)
{
	size_t n = strlen(report->text);

	(void)at;
	snprintf(report->text + n, sizeof(report->text) - n, "%s%s%.*s", n ? "\n" : "",
		 severity == ANDIRON_REPORT_ERROR ? "" : "warning: ",
		 (int)(len < 512 ? len : 512), text);
	if (severity == ANDIRON_REPORT_ERROR)
		report->n_errors++;
	else
		report->n_warnings++;
}

ANDIRON_MIN_FN int32_t andiron_min_log_enabled(uint64_t instance, uint32_t level)
{
	return level <= ANDIRON_LOG_INFO && andiron_min_part(instance)->loop->log;
}

ANDIRON_MIN_FN void andiron_min_log(uint64_t instance, uint32_t level,
				    const struct andiron_str *message, const struct andiron_kv *kv,
				    uint64_t n_kv)
{
	const struct andiron_min *part = andiron_min_part(instance);

	(void)kv;
	(void)n_kv;
	if (part->loop->log)
		part->loop->log(part->loop->context, level, part, message);
}

ANDIRON_MIN_FN int32_t andiron_min_add_source(struct andiron_min_source s, uint32_t events,
					      uint64_t *ret_id)
{
	struct andiron_min_loop *loop = s.part->loop;
	struct andiron_min_source *kept = (struct andiron_min_source *)malloc(sizeof(*kept));
	struct epoll_event e;
	int32_t r;

	if (!kept)
		return -ENOMEM;
	s.id = ++loop->last_id;
	e.events = events;
	e.data.u64 = s.id;
	if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, s.fd, &e) < 0) {
		r = -errno;
		free(kept);
		return r;
	}
	s.next = loop->sources;
	*kept = s;
	loop->sources = kept;
	*ret_id = s.id;
	return 0;
}

ANDIRON_MIN_FN struct andiron_min_source *andiron_min_source_of(struct andiron_min_loop *loop,
								uint64_t id)
{
	struct andiron_min_source *s = loop->sources;

	while (s && s->id != id)
		s = s->next;
	return s;
}

ANDIRON_MIN_FN void andiron_min_source_remove(struct andiron_min_loop *loop, uint64_t id)
{
	struct andiron_min_source **at = &loop->sources;
	struct andiron_min_source *s;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	s = *at;
	if (!s)
		return;
	*at = s->next;
	epoll_ctl(loop->epoll, EPOLL_CTL_DEL, s->fd, NULL);
	if (s->is_timer)
		close(s->fd);
	free(s);
}

ANDIRON_MIN_FN int32_t andiron_min_watch_add(uint64_t instance, int32_t fd, uint32_t events,
					     andiron_watch_fn fn, void *arg, uint64_t *ret_watch)
{
	struct andiron_min_source s;

	memset(&s, 0, sizeof(s));
	s.part = andiron_min_part(instance);
	s.fd = fd;
	s.on_ready = fn;
	s.arg = arg;
	return andiron_min_add_source(s, events, ret_watch);
}

ANDIRON_MIN_FN int32_t andiron_min_watch_modify(uint64_t instance, uint64_t watch, uint32_t events)
{
	struct andiron_min_loop *loop = andiron_min_part(instance)->loop;
	const struct andiron_min_source *s = andiron_min_source_of(loop, watch);
	struct epoll_event e;

	if (!s)
		return -ENOENT;
	e.events = events;
	e.data.u64 = watch;
	return epoll_ctl(loop->epoll, EPOLL_CTL_MOD, s->fd, &e) < 0 ? -errno : 0;
}

/* Also serves as timer_cancel. */
ANDIRON_MIN_FN void andiron_min_watch_remove(uint64_t instance, uint64_t watch)
{
	andiron_min_source_remove(andiron_min_part(instance)->loop, watch);
}

ANDIRON_MIN_FN int32_t andiron_min_timer_set(uint64_t instance, int64_t after_ns, int64_t every_ns,
					     andiron_call_fn fn, void *arg, uint64_t *ret_timer)
{
	const int64_t second = 1000000000;
	struct andiron_min_source s;
	struct itimerspec when;
	int32_t r;

	if (after_ns < 1)
		after_ns = 1; /* 0 would mean: never */
	when.it_value.tv_sec = (time_t)(after_ns / second);
	when.it_value.tv_nsec = (long)(after_ns % second);
	when.it_interval.tv_sec = (time_t)(every_ns / second);
	when.it_interval.tv_nsec = (long)(every_ns % second);
	memset(&s, 0, sizeof(s));
	s.part = andiron_min_part(instance);
	s.is_timer = 1;
	s.is_periodic = every_ns > 0;
	s.on_time = fn;
	s.arg = arg;
	s.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (s.fd < 0)
		return -errno;
	r = timerfd_settime(s.fd, 0, &when, NULL) < 0
		    ? -errno
		    : andiron_min_add_source(s, EPOLLIN, ret_timer);
	if (r < 0)
		close(s.fd);
	return r;
}

/* Queues a call. `post` sets only `run`. `work` sets `run` and `done`. A batch sets neither. */
ANDIRON_MIN_FN int32_t andiron_min_queue(struct andiron_min *part, andiron_call_fn run,
					 andiron_call_fn done, void *arg,
					 const struct andiron_batch *batch)
{
	const uint64_t one = 1;
	struct andiron_min_loop *loop = part->loop;
	struct andiron_min_call *call = (struct andiron_min_call *)calloc(1, sizeof(*call));

	if (!call)
		return -ENOMEM;
	call->part = part;
	call->run = run;
	call->done = done;
	call->arg = arg;
	call->batch = batch;
	pthread_mutex_lock(&loop->lock);
	if (part->gone) {
		pthread_mutex_unlock(&loop->lock);
		free(call);
		return -ESHUTDOWN;
	}
	part->pending++;
	if (loop->calls)
		loop->last_call->next = call;
	else
		loop->calls = call;
	loop->last_call = call;
	pthread_mutex_unlock(&loop->lock);
	/* It fails where the counter is full, and then the loop wakes up as well. */
	(void)!write(loop->wake, &one, sizeof(one));
	return 0;
}

ANDIRON_MIN_FN int32_t andiron_min_post(uint64_t instance, andiron_call_fn fn, void *arg)
{
	return andiron_min_queue(andiron_min_part(instance), fn, NULL, arg, NULL);
}

ANDIRON_MIN_FN int32_t andiron_min_work(uint64_t instance, andiron_call_fn run,
					andiron_call_fn done, void *arg)
{
	return andiron_min_queue(andiron_min_part(instance), run, done, arg, NULL);
}

ANDIRON_MIN_FN int32_t andiron_min_spawn(uint64_t instance, const struct andiron_spawn *spawn,
					 andiron_spawn_fn fn, void *arg)
{
	(void)instance;
	(void)spawn;
	(void)fn;
	(void)arg;
	return -ENOSYS;
}

ANDIRON_MIN_FN void andiron_min_ledger_add(uint64_t instance, uint32_t entry,
					   const struct andiron_str *reason, uint64_t samples)
{
	struct andiron_min *part = andiron_min_part(instance);

	(void)reason;
	pthread_mutex_lock(&part->loop->lock);
	if (entry < sizeof(part->ledger) / sizeof(part->ledger[0]))
		part->ledger[entry] += samples;
	pthread_mutex_unlock(&part->loop->lock);
}

ANDIRON_MIN_FN void andiron_min_ledger_set(uint64_t instance, uint32_t entry, uint64_t samples)
{
	struct andiron_min *part = andiron_min_part(instance);

	pthread_mutex_lock(&part->loop->lock);
	if (entry < sizeof(part->ledger) / sizeof(part->ledger[0]))
		part->ledger[entry] = samples;
	pthread_mutex_unlock(&part->loop->lock);
}

/* A batch that does not fit is dropped, and counted. */
ANDIRON_MIN_FN int32_t andiron_min_send_batch(uint64_t instance, const struct andiron_batch *batch)
{
	struct andiron_min *part = andiron_min_part(instance);
	struct andiron_min_loop *loop = part->loop;
	int32_t r = -ENOMEM;
	int fits;

	if (!part->on_batch)
		return 0;
	pthread_mutex_lock(&loop->lock);
	fits = loop->queued_bytes + batch->bytes <= ANDIRON_MIN_QUEUE_BYTES;
	if (fits)
		loop->queued_bytes += batch->bytes;
	pthread_mutex_unlock(&loop->lock);
	batch->retain(batch->owner);
	if (fits)
		r = andiron_min_queue(part, NULL, NULL, NULL, batch);
	if (r == 0)
		return 0;
	andiron_min_ledger_add(instance, ANDIRON_LEDGER_DROPPED, NULL, batch->samples);
	pthread_mutex_lock(&loop->lock);
	if (fits)
		loop->queued_bytes -= batch->bytes;
	pthread_mutex_unlock(&loop->lock);
	batch->release(batch->owner);
	return 0;
}

ANDIRON_MIN_FN int32_t andiron_min_send_targets(uint64_t instance, const char *export_name,
						const struct andiron_targets *update)
{
	const struct andiron_min *part = andiron_min_part(instance);

	if (part->on_targets)
		part->on_targets(part->context, export_name, update);
	return 0;
}

ANDIRON_MIN_FN void andiron_min_health(uint64_t instance, uint32_t state,
				       const struct andiron_str *message)
{
	struct andiron_min *part = andiron_min_part(instance);

	pthread_mutex_lock(&part->loop->lock);
	part->health = state;
	andiron_min_copy(part->health_text, sizeof(part->health_text), message);
	pthread_mutex_unlock(&part->loop->lock);
}

ANDIRON_MIN_FN void andiron_min_drained(uint64_t instance)
{
	struct andiron_min *part = andiron_min_part(instance);

	pthread_mutex_lock(&part->loop->lock);
	part->is_drained = 1;
	pthread_mutex_unlock(&part->loop->lock);
}

ANDIRON_MIN_FN int32_t andiron_min_extension(uint64_t instance, const char *id,
					     struct andiron_extension *ret)
{
	const struct andiron_min *part = andiron_min_part(instance);

	return part->extension ? part->extension(part->context, id, ret) : -ENOENT;
}

/* The table up to `extension`: what is behind it may be absent. */
ANDIRON_MIN_FN const struct andiron_host *andiron_min_host(void)
{
	static const struct andiron_host host = {
		(uint32_t)offsetof(struct andiron_host, request_targets),
		ANDIRON_ABI_MINOR,
		andiron_min_error_add,
		andiron_min_report_add,
		andiron_min_log_enabled,
		andiron_min_log,
		andiron_min_watch_add,
		andiron_min_watch_modify,
		andiron_min_watch_remove,
		andiron_min_timer_set,
		andiron_min_watch_remove,
		andiron_min_post,
		andiron_min_work,
		andiron_min_spawn,
		andiron_min_send_batch,
		andiron_min_send_targets,
		andiron_min_ledger_add,
		andiron_min_ledger_set,
		andiron_min_health,
		andiron_min_drained,
		andiron_min_extension,
		NULL,
		NULL,
		NULL,
		NULL,
	};

	return &host;
}

#ifdef __cplusplus
}
#endif

#endif
