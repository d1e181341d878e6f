/* SPDX-License-Identifier: Apache-2.0 */
/* The host as the command line sees it. Contracts in host.h. */
#include "base/check.h"
#include "base/clock.h"
#include "host/graph/inline-targets.h"
#include "host/graph/reload.h"
#include "host/graph/scheduler.h"
#include "host/report/status.h"
#include "host/report/escape.h"
#include "host/services/values.h"

#include <errno.h>
#include <sys/epoll.h>

#define DEFAULT_WORKERS     2
#define DEFAULT_DRAIN_NS    (10 * NS_PER_SEC)
#define DEFAULT_CALL_NS     (30 * NS_PER_SEC)
#define DEFAULT_QUEUE_BYTES ((uint64_t)64 << 20)

static void advance_run(struct loop_task *task)
{
	struct host *host = container_of(task, struct host, advance);

	check(loop_is_here(&host->loop));
	atomic_store(&host->poked, false);
	scheduler_advance(host);
}

static void deadline_fire(struct loop_timer *timer)
{
	host_poke(container_of(timer, struct host, deadline));
}

void host_poke(struct host *host)
{
	if (!atomic_exchange(&host->poked, true))
		loop_post(&host->loop, &host->advance);
}

const char *host_name(struct host *host, const char *name)
{
	uint32_t id = intern_add(&host->names, str_of(name));

	return id == INDEX_NONE ? NULL : intern_get(&host->names, id).p;
}

static void set_defaults(struct host_options *o)
{
	if (!o->workers)
		o->workers = DEFAULT_WORKERS;
	if (!o->drain_ns)
		o->drain_ns = DEFAULT_DRAIN_NS;
	if (!o->queue_bytes)
		o->queue_bytes = DEFAULT_QUEUE_BYTES;
	if (!o->isolate_call_ns)
		o->isolate_call_ns = DEFAULT_CALL_NS;
}

/* What may fail after the loop and the ledger are there. */
static int open_services(struct host *host, struct error *err)
{
	int r = 0;

	r = objects_new(&host->objects, err);
	if (r == 0 && host->options.kernel_symbols > 0) {
		objects_set_kernel_symbols(host->objects, host->options.kernel_symbols);
		host->options.kernel_symbols = 0;
	}
	if (r == 0 && host->options.status_path)
		r = status_new(host, host->options.status_path, &host->status, err);
	return r;
}

int host_new(const struct host_options *options, struct host **ret, struct error *err)
{
	struct host *host = calloc(1, sizeof(*host));
	int r;

	if (!host)
		return error_set(err, -ENOMEM, "out of memory");
	host->options = *options;
	set_defaults(&host->options);
	r = loop_init(&host->loop, err);
	if (r < 0) {
		free(host);
		return r;
	}
	if (ledger_init(&host->ledger) < 0 ||
	    loop_timer_init(&host->loop, &host->deadline, deadline_fire) < 0) {
		vec_free(&host->ledger.skipped);
		loop_fini(&host->loop);
		free(host);
		return error_set(err, -ENOMEM, "out of memory");
	}
	log_init(&host->log, options->log_fd, options->log_level, options->log_format);
	host->log.line_fn = options->log;
	host->log.context = options->context;
	workers_init(&host->workers, host->options.workers);
	pthread_rwlock_init(&host->wiring, NULL);
	host->advance.run = advance_run;
	r = values_init(host);
	if (r == 0)
		r = open_services(host, err);
	if (r < 0) {
		host_free(host);
		return r == -ENOMEM ? error_set(err, r, "out of memory") : r;
	}
	*ret = host;
	return 0;
}

/* Whether nobody is left but those that do not come back. */
static bool all_gone(const struct host *host)
{
	vec_each (&host->instances, at)
		if ((*at)->stage != STAGE_ABANDONED)
			return false;
	return true;
}

static void retire_all(struct host *host, int64_t deadline_ns)
{
	vec_each (&host->instances, at)
		scheduler_retire(*at, deadline_ns);
	host_poke(host);
}

void host_step(struct host *host)
{
	int n_stops;

	loop_step(&host->loop);
	n_stops = atomic_load(&host->n_stops);
	check(n_stops >= host->n_stops_seen);
	/* In the middle of a change instances must not vanish; it looks itself. */
	if (host->reloading || n_stops == host->n_stops_seen)
		return;
	retire_all(host, clock_mono() + (n_stops == 1 ? host->options.drain_ns : 0));
	host->n_stops_seen = n_stops;
}

static void free_calls(struct host *host)
{
	vec_each (&host->calls, at) {
		struct host_call *call = *at;

		if (call->is_watch)
			loop_watch_remove(&host->loop, &call->watch);
		else
			loop_timer_fini(&host->loop, &call->timer);
		free(call);
	}
	vec_free(&host->calls);
}

/* Tasks that were posted for freeing only. */
static void last_tasks(struct host *host)
{
	while (host->loop.n_tasks > 0)
		loop_step(&host->loop);
}

void host_free(struct host *host)
{
	if (!host)
		return;
	loop_adopt(&host->loop);
	retire_all(host, clock_mono());
	while (!all_gone(host))
		host_step(host);
	status_free(host->status);
	free_calls(host);
	last_tasks(host);
	if (host->stuck) {
		workers_stop(&host->workers);
		return;
	}
	workers_fini(&host->workers);
	vec_each (&host->inline_targets, l)
		inline_targets_free(*l);
	vec_free(&host->inline_targets);
	plan_free(host->plan);
	objects_free(host->objects);
	vec_free(&host->instances);
	metrics_free(&host->metrics);
	intern_free(&host->names);
	buf_free(&host->failed);
	ledger_fini(&host->ledger);
	values_fini(host);
	loop_timer_fini(&host->loop, &host->deadline);
	loop_fini(&host->loop);
	log_fini(&host->log);
	pthread_rwlock_destroy(&host->wiring);
	free(host);
}

int host_reload(struct host *host, struct plan *plan, struct error *err)
{
	int r;

	if (host->reloading) {
		plan_free(plan);
		return error_set(err, -EBUSY, "the configuration is being changed already");
	}
	if (plan->waiting.n && !host->options.refresh) {
		r = error_set(err, -EOPNOTSUPP,
			      "%s needs a value that %s supplies while it runs, and only `andiron "
			      "run` waits for such values",
			      plan->waiting.p[0].id, plan->waiting.p[0].waits_for);
		plan_free(plan);
		return r;
	}
	host->reloading = true;
	r = reload_plan(host, plan, err);
	host->reloading = false;
	if (r == 0)
		values_changed_graph(host);
	return r;
}

const struct plan_waiting *host_would_lose(const struct host *host, const struct plan *plan)
{
	return host->plan ? plan_loses(host->plan, plan) : NULL;
}

int host_load(struct host *host, struct plan *plan, struct error *err)
{
	check(!host->plan && !host->running);
	return host_reload(host, plan, err);
}

void host_log_change(struct host *host, uint32_t level, uint32_t format)
{
	log_change(&host->log, level, format);
}

void host_note_configuration(struct host *host, bool taken)
{
	host->configuration.refused = !taken;
	host->configuration.n_refused += !taken;
	if (taken)
		host->configuration.taken_ns = clock_real();
}

void host_note_waiting(struct host *host, bool waits)
{
	host->configuration.waits = waits;
}

static void warn_of_gap(struct host *host)
{
	const char *writer;
	int64_t gap;

	if (!ledger_balanced(&host->ledger, &writer, &gap))
		log_printf(&host->log, ANDIRON_LOG_WARN, writer,
			   "%lld samples are not accounted for: a component counts wrongly",
			   (long long)gap);
}

int host_run(struct host *host, struct error *err)
{
	int r;

	check(!host->running);
	loop_adopt(&host->loop);
	r = workers_start(&host->workers, err);
	if (r < 0)
		return r;
	host->running = true;
	host_poke(host);
	while (host->n_stops_seen == 0 || !all_gone(host))
		host_step(host);
	last_tasks(host);
	host->running = false;
	warn_of_gap(host);
	if (host->failed.n)
		return error_set(err, -EIO, "could not start %s: %s", host->failed.p,
				 host->failed_cause);
	return 0;
}

void host_stop(struct host *host)
{
	atomic_fetch_add(&host->n_stops, 1);
	loop_wake(&host->loop);
}

static void call_timer(struct loop_timer *timer)
{
	struct host_call *call = container_of(timer, struct host_call, timer);

	int64_t now = clock_mono(), next = timer->at_ns + call->every_ns;

	if (call->every_ns > 0)
		loop_timer_set(&call->host->loop, timer, next > now ? next : now + call->every_ns);
	call->fn(call->context);
}

static void call_watch(struct loop_watch *watch, uint32_t events)
{
	struct host_call *call = container_of(watch, struct host_call, watch);

	call->fn(call->context);
	loop_watch_arm(&call->host->loop, watch, EPOLLIN);
}

static struct host_call *call_new(struct host *host, void (*fn)(void *context), void *context)
{
	struct host_call *call = calloc(1, sizeof(*call));

	if (!call || !vec_reserve(&host->calls, 1)) {
		free(call);
		return NULL;
	}
	call->host = host;
	call->fn = fn;
	call->context = context;
	return call;
}

int host_timer(struct host *host, int64_t after_ns, int64_t every_ns, void (*fn)(void *context),
	       void *context)
{
	struct host_call *call = call_new(host, fn, context);

	if (!call || loop_timer_init(&host->loop, &call->timer, call_timer) < 0) {
		free(call);
		return -ENOMEM;
	}
	call->every_ns = every_ns;
	loop_timer_set(&host->loop, &call->timer, clock_mono() + (after_ns > 0 ? after_ns : 0));
	host->calls.p[host->calls.n++] = call;
	return 0;
}

int host_watch(struct host *host, int fd, void (*fn)(void *context), void *context)
{
	struct host_call *call = call_new(host, fn, context);
	int r;

	if (!call)
		return -ENOMEM;
	call->is_watch = true;
	call->watch = (struct loop_watch){.ready = call_watch, .fd = fd};
	r = loop_watch_add(&host->loop, &call->watch, EPOLLIN);
	if (r < 0) {
		free(call);
		return r;
	}
	host->calls.p[host->calls.n++] = call;
	return 0;
}
