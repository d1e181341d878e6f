/* SPDX-License-Identifier: Apache-2.0 */
/* See driver.h. Notes are taken and jobs launched in serial calls; the lock is there for `stop`
 * alone, which waits for a running job. */
#include "ebpf/driver.h"

#include "ebpf/kernel/cpu-events.h"
#include "ebpf/metrics.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/vec.h"
#include "proc/haste.h"

#include <andiron/object.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#define WANT_ATTEND  1u
#define WANT_TARGETS 2u
#define WANT_OPTIONS 4u
#define WANT_COLLECT 8u
#define WANT_FINISH  16u
#define WANT_CPUS    32u

/* A job that takes longer than this and three intervals does not come back soon: a disk or a
 * kernel that hangs. Loading takes seconds on a busy machine. */
#define STALL_NS (20 * NS_PER_SEC)

struct wants {
	uint32_t what;
	VEC(const struct andiron_targets *) updates;
	struct ebpf_options options;
};

struct driver {
	struct abi_context c;
	struct engine *engine;
	struct wants next, now; /* what is noted, what the job does */
	bool in_flight;         /* from launch to done */
	bool stalled;           /* and too long */
	bool unwell;            /* the health has a cause that a stall must not hide */
	int64_t launched_ns;
	bool finished, announced;
	uint64_t watch, timer, second, cpus, look; /* 0: none */
	int cpu_events;                            /* or a negative errno */
	int64_t interval_ns;                       /* of the timer */
	struct engine_stats stats;
	struct error error; /* of the start, or the job */
	pthread_mutex_t lock;
	pthread_cond_t idle;
	bool running, stopped; /* under lock */
};

static void wants_fini(struct wants *w)
{
	vec_each (&w->updates, u)
		(*u)->release((*u)->owner);
	vec_free(&w->updates);
	ebpf_options_fini(&w->options);
	w->what = 0;
}

static void on_batch(void *context, const struct andiron_batch *batch)
{
	struct driver *d = context;

	d->c.host->send_batch(d->c.instance, batch);
}

static void on_counts(void *context, const struct engine_counts *b)
{
	const struct abi_context *c = &((struct driver *)context)->c;

	c->host->ledger_set(c->instance, ANDIRON_LEDGER_UNREAD, 0);
	abi_ledger(c, ANDIRON_LEDGER_TAKEN, NULL, b->taken);
	abi_ledger(c, ANDIRON_LEDGER_SKIPPED, "idle", b->idle);
	abi_ledger(c, ANDIRON_LEDGER_SKIPPED, "unselected", b->unselected);
	abi_ledger(c, ANDIRON_LEDGER_SKIPPED, "missed", b->missed);
	abi_ledger(c, ANDIRON_LEDGER_DROPPED, "unfinished", b->dropped_unfinished);
	abi_ledger(c, ANDIRON_LEDGER_DROPPED, "ring_full", b->dropped_ring_full);
	abi_ledger(c, ANDIRON_LEDGER_DROPPED, "no_memory", b->dropped_memory);
}

static void on_log(void *context, uint32_t level, const char *text)
{
	abi_log(&((struct driver *)context)->c, level, "%s", text);
}

static void do_job(struct driver *d)
{
	struct wants *w = &d->now;
	int r = 0;

	vec_each (&w->updates, u)
		engine_apply(d->engine, *u);
	if (w->what & WANT_TARGETS)
		r = engine_retarget(d->engine, &d->error);
	if (w->what & WANT_OPTIONS) {
		r = engine_reconfigure(d->engine, &w->options, &d->error);
		w->options = (struct ebpf_options){0}; /* the engine's now */
	}
	if (w->what & WANT_CPUS && r == 0)
		r = engine_follow_cpus(d->engine, &d->error);
	if (w->what & (WANT_COLLECT | WANT_FINISH))
		engine_attend(d->engine);
	if (w->what & WANT_COLLECT)
		engine_collect(d->engine);
	if (w->what & WANT_FINISH) {
		engine_finish(d->engine);
		engine_drop_unread(d->engine);
	}
	engine_attend(d->engine);
	if (w->what & ~WANT_ATTEND)
		engine_count(d->engine);
	if (r != 0 && d->error.code == 0)
		error_errno(&d->error, r, "cannot take over the change");
}

/* While this thread works for the sampler it goes before others, where that is allowed: a new
 * process is looked at as soon as it is sampled or not at all, and it is the busy machines where
 * that matters. The work is little: see docs/figures.md. */
static void do_job_in_haste(struct driver *d)
{
	int nice = haste_begin(HASTE_GAIN);

	do_job(d);
	haste_end(nice);
}

static void run(void *arg)
{
	struct driver *d = arg;

	pthread_mutex_lock(&d->lock);
	check(d->in_flight && !d->running);
	d->running = !d->stopped;
	pthread_mutex_unlock(&d->lock);
	if (!d->running)
		return;
	do_job_in_haste(d);
	pthread_mutex_lock(&d->lock);
	d->running = false;
	pthread_cond_broadcast(&d->idle);
	pthread_mutex_unlock(&d->lock);
}

static void launch(struct driver *d);

static void want(struct driver *d, uint32_t what)
{
	d->next.what |= what;
	if (!d->in_flight)
		launch(d);
}

static void on_tick(void *arg)
{
	want(arg, WANT_COLLECT);
}

/* Who asks whether this agent samples is told no, while the kernel's logs fill unread. */
static void look_for_stall(struct driver *d)
{
	int64_t passed = clock_mono() - d->launched_ns;

	if (d->stalled || d->unwell || passed < STALL_NS + 3 * d->interval_ns)
		return;
	d->stalled = true;
	abi_health(&d->c, ANDIRON_HEALTH_UNHEALTHY,
		   "no samples have been read for %lld s: the work on them has not come back; if "
		   "this lasts, look for a disk that hangs, and restart the agent",
		   (long long)(passed / NS_PER_SEC));
}

/* What a kill would cost now, for those who keep that. A job under way says it itself. */
static void on_second(void *arg)
{
	struct driver *d = arg;

	if (d->in_flight) {
		look_for_stall(d);
		return;
	}
	d->c.host->ledger_set(d->c.instance, ANDIRON_LEDGER_UNREAD, engine_coming(d->engine));
}

static void on_cpus(void *arg, int32_t fd, uint32_t events)
{
	if (cpu_events_take(fd))
		want(arg, WANT_CPUS);
}

static void on_ring(void *arg, int32_t fd, uint32_t events)
{
	want(arg, WANT_ATTEND);
}

static void on_look(void *arg)
{
	struct driver *d = arg;

	d->look = 0;
	want(d, WANT_ATTEND);
}

/* In time for processes that have just begun. */
static void set_look(struct driver *d)
{
	int64_t due = d->finished ? INT64_MAX : engine_due(d->engine), now = clock_mono();

	if (d->look != 0)
		d->c.host->timer_cancel(d->c.instance, d->look);
	d->look = 0;
	if (due < INT64_MAX)
		d->c.host->timer_set(d->c.instance, due > now ? due - now : 0, 0, on_look, d,
				     &d->look);
}

/* Watches and timer as the engine is now. Fails only where the host sets no timer for the end of
 * the interval; what else it refuses makes the sampler later. */
static int rearm(struct driver *d)
{
	const struct andiron_host *host = d->c.host;
	int64_t interval = engine_interval(d->engine);
	int fd = d->finished ? -1 : engine_fd(d->engine);

	if (!d->finished && d->second == 0)
		host->timer_set(d->c.instance, NS_PER_SEC, NS_PER_SEC, on_second, d, &d->second);
	if (!d->finished && d->cpu_events >= 0 && d->cpus == 0)
		host->watch_add(d->c.instance, d->cpu_events, ANDIRON_WATCH_IN, on_cpus, d,
				&d->cpus);
	if (fd >= 0 && d->watch == 0)
		host->watch_add(d->c.instance, fd, ANDIRON_WATCH_IN, on_ring, d, &d->watch);
	set_look(d);
	if (d->finished || (d->timer != 0 && interval == d->interval_ns))
		return 0;
	if (d->timer != 0)
		host->timer_cancel(d->c.instance, d->timer);
	d->timer = 0;
	d->interval_ns = interval;
	return host->timer_set(d->c.instance, interval, interval, on_tick, d, &d->timer);
}

static void unwatch(struct driver *d, uint64_t *watch)
{
	if (*watch != 0)
		d->c.host->watch_remove(d->c.instance, *watch);
	*watch = 0;
}

/* All but the ring, which is read to its end. */
static void disarm(struct driver *d)
{
	unwatch(d, &d->cpus);
	if (d->timer != 0)
		d->c.host->timer_cancel(d->c.instance, d->timer);
	if (d->second != 0)
		d->c.host->timer_cancel(d->c.instance, d->second);
	if (d->look != 0)
		d->c.host->timer_cancel(d->c.instance, d->look);
	d->timer = d->second = d->look = 0;
}

/* Once, when the programs are first loaded. */
static void announce(struct driver *d)
{
	struct utsname name = {.release = "?"};

	if (d->announced)
		return;
	d->announced = true;
	uname(&name);
	abi_log(&d->c, ANDIRON_LOG_INFO,
		"sampling has begun: %u CPUs at %u Hz, Linux %s, %llu kB of the kernel's memory",
		d->stats.session.n_cpus, d->stats.session.rate_hz, name.release,
		(unsigned long long)d->stats.session.map_bytes / 1024);
}

static void say_health(struct driver *d)
{
	const struct session_info *info = &d->stats.session;

	d->unwell = d->error.code != 0;
	if (d->error.code != 0) {
		abi_log(&d->c, ANDIRON_LOG_ERROR, "%s", d->error.text);
		abi_health(&d->c, ANDIRON_HEALTH_UNHEALTHY, "%s", d->error.text);
	} else if (engine_fd(d->engine) < 0) {
		abi_health(&d->c, ANDIRON_HEALTH_HEALTHY, "waiting for a first target (lazy_mode)");
	} else {
		announce(d);
		abi_health(&d->c, ANDIRON_HEALTH_HEALTHY, "sampling %u CPUs at %u Hz%s%s",
			   info->n_cpus, info->rate_hz,
			   info->user_only ? ", without time in the kernel" : "",
			   engine_notes(d->engine));
	}
}

static void done(void *arg)
{
	struct driver *d = arg;
	uint32_t did = d->now.what;
	int r;

	check(d->in_flight);
	d->in_flight = false;
	wants_fini(&d->now);
	if (d->stopped)
		return;
	engine_get_stats(d->engine, &d->stats);
	d->finished = d->finished || (did & WANT_FINISH);
	if (d->stalled || did & (WANT_TARGETS | WANT_OPTIONS | WANT_CPUS))
		say_health(d);
	d->stalled = false;
	r = rearm(d);
	if (r != 0) {
		d->stalled = true; /* until the next job has set one */
		abi_health(&d->c, ANDIRON_HEALTH_UNHEALTHY,
			   "no timer for the end of the interval: %s", strerror(-r));
	}
	if (did & WANT_FINISH)
		d->c.host->drained(d->c.instance);
	else if (!d->finished && engine_must_attend(d->engine))
		d->next.what |= WANT_ATTEND;
	if (d->next.what)
		launch(d);
}

static void launch(struct driver *d)
{
	check(!d->in_flight && d->next.what != 0);
	/* The ring stays readable until the job has read it, and may be another then. */
	unwatch(d, &d->watch);
	d->now = d->next;
	d->next = (struct wants){0};
	d->error = ERROR_NULL;
	d->in_flight = true;
	d->launched_ns = clock_mono();
	if (d->c.host->work(d->c.instance, run, done, d) != 0) {
		run(d);
		done(d);
	}
}

const char *const driver_needs[] = {ANDIRON_OBJECTS_ID, NULL};
const char *const driver_offers[] = {ANDIRON_TARGET_PROCESSES_ID, NULL};

static int need_objects(const struct abi_context *c, struct andiron_extension *ret,
			struct andiron_error *err)
{
	struct error error = ERROR_NULL;
	int r = c->host->extension(c->instance, ANDIRON_OBJECTS_ID, ret);

	if (r == 0)
		return 0;
	error_set(&error, r,
		  "the host does not offer " ANDIRON_OBJECTS_ID
		  ", by which the sampler keeps files");
	return abi_error(c->host, err, &error, r);
}

int32_t driver_new(const struct abi_context *c, struct ebpf_options *options, void **ret,
		   struct andiron_error *err)
{
	struct driver *d = calloc(1, sizeof(*d));
	struct engine_out out = {d, on_batch, on_counts, on_log};
	struct andiron_extension objects;
	int r = d ? need_objects(c, &objects, err) : -ENOMEM;

	if (r != 0) {
		ebpf_options_fini(options);
		free(d);
		return r;
	}
	d->c = *c;
	d->cpu_events = cpu_events_open();
	if (d->cpu_events < 0)
		abi_log(c, ANDIRON_LOG_WARN,
			"the kernel does not report CPUs that come online (%s), so they are not "
			"sampled; allow sockets of AF_NETLINK to this process",
			strerror(-d->cpu_events));
	ebpf_options_find_runtimes(options, c->host, c->instance);
	r = engine_new(c->instance, options, &objects, &out, &d->engine);
	if (r != 0) {
		closep(&d->cpu_events);
		free(d);
		return r;
	}
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->idle, NULL);
	*ret = d;
	return 0;
}

void driver_free(void *self)
{
	struct driver *d = self;

	check(!d->running);
	engine_free(d->engine);
	wants_fini(&d->now);
	wants_fini(&d->next);
	pthread_cond_destroy(&d->idle);
	pthread_mutex_destroy(&d->lock);
	closep(&d->cpu_events);
	free(d);
}

int32_t driver_start(void *self, struct andiron_error *err)
{
	struct driver *d = self;
	int nice = haste_begin(HASTE_GAIN_START);
	int r;

	/* libbpf takes 7 KiB of stack: none of it is spent on a text. */
	d->error = ERROR_NULL;
	r = engine_start(d->engine, &d->error);
	haste_end(nice);
	if (r != 0)
		return abi_error(d->c.host, err, &d->error, r);
	engine_count(d->engine);
	engine_get_stats(d->engine, &d->stats);
	r = rearm(d);
	if (r != 0) {
		error_errno(&d->error, r, "the host sets no timer, so no interval would end");
		return abi_error(d->c.host, err, &d->error, r);
	}
	say_health(d);
	return 0;
}

void driver_update(struct driver *d, struct ebpf_options *options)
{
	ebpf_options_find_runtimes(options, d->c.host, d->c.instance);
	ebpf_options_fini(&d->next.options);
	d->next.options = *options;
	want(d, WANT_OPTIONS);
}

void driver_targets(void *self, const char *port, const struct andiron_targets *update)
{
	struct driver *d = self;

	if (!vec_push(&d->next.updates, update)) {
		abi_health(&d->c, ANDIRON_HEALTH_UNHEALTHY,
			   "out of memory: an update of targets was lost");
		return;
	}
	update->retain(update->owner);
	want(d, WANT_TARGETS);
}

int32_t driver_drain(void *self, int64_t deadline_ns)
{
	disarm(self);
	want(self, WANT_FINISH);
	return 0;
}

/* Where a job lasted over the drain deadline, the last one was never begun. */
static void count_unread(struct driver *d)
{
	uint64_t n = engine_give_up(d->engine);

	if (n == 0)
		return;
	d->c.host->ledger_set(d->c.instance, ANDIRON_LEDGER_UNREAD, 0);
	abi_ledger(&d->c, ANDIRON_LEDGER_TAKEN, NULL, n);
	abi_ledger(&d->c, ANDIRON_LEDGER_DROPPED, "deadline", n);
}

void driver_stop(void *self)
{
	struct driver *d = self;

	pthread_mutex_lock(&d->lock);
	d->stopped = true;
	while (d->running)
		pthread_cond_wait(&d->idle, &d->lock);
	pthread_mutex_unlock(&d->lock);
	count_unread(d);
	disarm(d);
	unwatch(d, &d->watch);
}

const struct engine_stats *driver_stats(const struct driver *d)
{
	return &d->stats;
}

void driver_metrics(void *self, const struct andiron_metric_sink *sink)
{
	metrics_add(driver_stats(self), sink);
}

/* -EBUSY while a job has the engine. */
static int32_t each_target(void *self, const struct andiron_target_processes_sink *sink)
{
	struct target_report_sink adding = {.sink = sink};
	struct driver *d = self;
	int r = -EBUSY;

	if (!d->in_flight)
		r = engine_report_targets(d->engine, target_report_add, &adding);
	return r == 0 && adding.failed ? -ENOMEM : r;
}

const void *driver_extension(void *self, const char *id)
{
	static const struct andiron_target_processes table = {.size = sizeof(table),
							      .each = each_target};

	return strcmp(id, ANDIRON_TARGET_PROCESSES_ID) == 0 ? &table : NULL;
}
