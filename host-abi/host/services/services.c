/* SPDX-License-Identifier: Apache-2.0 */
/* The services, each a thin front: find the instance, refuse what no correct component would ask
 * for, pass on. An untrusted plugin may call with any id at any time, so the instance is held for
 * the duration. */
#include "host/services/services.h"

#include "abi/batch-view.h"
#include "abi/value.h"
#include "base/check.h"
#include "base/cleanup.h"
#include "host/flow/offer.h"
#include "host/report/report.h"
#include "host/services/reload-request.h"
#include "host/services/sandboxed-worker.h"
#include "host/services/callbacks.h"
#include "host/services/values.h"
#include "host/state.h"

#include <andiron/status.h>
#include <errno.h>

DEFINE_CLEANUP(struct instance *, instance_unref);

static struct str border(const struct andiron_str *s)
{
	return s && s->ptr ? (struct str){s->ptr, s->len} : STR_NULL;
}

static int32_t error_add(struct andiron_error *err, int32_t code, const char *text, uint64_t len)
{
	int r = code < 0 ? code : -EIO;
	struct str s = text ? str_first((struct str){text, len}, sizeof(err->error.text))
			    : STR_NULL;

	if (err && err->error.code)
		error_wrap(&err->error, r, "%.*s", STR_FMT(s));
	else
		error_set(err ? &err->error : NULL, r, "%.*s", STR_FMT(s));
	if (err)
		err->error.code = r;
	return code;
}

/* Findings belong to `validate`, which is called with a table of its own (lang/validate.c); a
 * component that runs has no report to add to. */
static void report_add(struct andiron_report *report, uint32_t severity,
		       const struct andiron_value *at, const char *text, uint64_t len)
{
}

static int32_t log_enabled(uint64_t instance, uint32_t level)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);

	return i && level <= i->host->log.level;
}

static void log_line(uint64_t instance, uint32_t level, const struct andiron_str *message,
		     const struct andiron_kv *kv, uint64_t n_kv)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);

	if (i)
		log_write(&i->host->log, level, str_of(i->name), border(message), kv,
			  kv ? n_kv : 0);
}

static int32_t watch_add(uint64_t instance, int32_t fd, uint32_t events, andiron_watch_fn fn,
			 void *arg, uint64_t *ret_watch)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);

	return i && fn && ret_watch ? calls_watch_add(i, fd, events, fn, arg, ret_watch) : -EINVAL;
}

static int32_t watch_modify(uint64_t instance, uint64_t watch, uint32_t events)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);

	return i ? calls_watch_modify(i, watch, events) : -EINVAL;
}

static void watch_remove(uint64_t instance, uint64_t watch)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);

	if (i)
		calls_watch_remove(i, watch);
}

static int32_t timer_set(uint64_t instance, int64_t after_ns, int64_t every_ns, andiron_call_fn fn,
			 void *arg, uint64_t *ret_timer)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);

	return i && fn && ret_timer ? calls_timer_set(i, after_ns, every_ns, fn, arg, ret_timer)
				    : -EINVAL;
}

static void timer_cancel(uint64_t instance, uint64_t timer)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);

	if (i)
		calls_timer_cancel(i, timer);
}

static int32_t post(uint64_t instance, andiron_call_fn fn, void *arg)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);

	if (!fn)
		return -EINVAL;
	return i ? calls_post(i, fn, arg) : -ESHUTDOWN;
}

static int32_t work(uint64_t instance, andiron_call_fn run, andiron_call_fn done, void *arg)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);

	if (!run)
		return -EINVAL;
	return i ? calls_work(i, run, done, arg) : -ESHUTDOWN;
}

static int32_t spawn(uint64_t instance, const struct andiron_spawn *spec, andiron_spawn_fn fn,
		     void *arg)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);

	return i && spec && fn ? calls_spawn(i, spec, fn, arg) : -EINVAL;
}

/* The layout, and that `samples` is what rows and encoded profiles say, and no more than it may be:
 * the ledger counts by it. */
static bool sound(const struct andiron_batch *batch)
{
	struct batch_view view;
	uint64_t sum, rows;

	if (!ANDIRON_HAS(batch, andiron_batch, release) || !batch->retain ||
	    batch_view_init(&view, batch) < 0)
		return false;
	rows = batch_count(&view, ANDIRON_COL_ROW);
	sum = batch_count(&view, ANDIRON_COL_ENCODED);
	for (uint64_t n = 0; n < rows; n++)
		if (__builtin_add_overflow(sum, batch_row(&view, (uint32_t)n).samples, &sum))
			return false;
	return rows <= UINT32_MAX && sum == batch->samples && sum <= ANDIRON_BATCH_MAX_SAMPLES;
}

static int32_t send_batch(uint64_t instance, const struct andiron_batch *batch)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);

	if (!i || !batch)
		return -EINVAL;
	if (!sound(batch)) {
		ledger_count(&i->host->ledger, &i->ledger_node, ANDIRON_LEDGER_DROPPED,
			     STR("invalid"),
			     ANDIRON_KNOWS(batch, andiron_batch, samples) ? batch->samples : 0);
		log_printf(&i->host->log, ANDIRON_LOG_ERROR, i->name,
			   "sent a batch that breaks the rules of andiron/batch.h; it is dropped");
		return -EINVAL;
	}
	pthread_rwlock_rdlock(&i->host->wiring);
	if (i->receivers.n)
		atomic_fetch_add(&i->sent, batch->samples);
	vec_each (&i->receivers, to)
		queue_put(*to, batch);
	pthread_rwlock_unlock(&i->host->wiring);
	return 0;
}

static int32_t offer(uint64_t instance, const struct andiron_batch *batch, andiron_offer_fn done,
		     void *arg)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);

	return i && batch && done && sound(batch) ? offer_batch(i, batch, done, arg) : -EINVAL;
}

static void set_full(uint64_t instance, uint32_t full)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);

	if (i)
		atomic_store(&i->full, full != 0);
}

static int32_t send_targets(uint64_t instance, const char *export_name,
			    const struct andiron_targets *update)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);
	struct export *export;
	int r;

	if (!i || !export_name || !update || !ANDIRON_HAS(update, andiron_targets, release) ||
	    !update->retain)
		return -EINVAL;
	export = instance_export(i, export_name);
	if (!export)
		return -EINVAL;
	r = export_send(export, update);
	if (r == -EINVAL)
		log_printf(
			&i->host->log, ANDIRON_LOG_ERROR, i->name,
			"sent targets that break the rules of andiron/target.h; they are dropped");
	return r;
}

static void ledger_add(uint64_t instance, uint32_t entry, const struct andiron_str *reason,
		       uint64_t samples)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);

	if (i && samples)
		ledger_count(&i->host->ledger, &i->ledger_node, entry, border(reason), samples);
}

static void ledger_set(uint64_t instance, uint32_t entry, uint64_t samples)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);

	if (i)
		ledger_level(&i->host->ledger, &i->ledger_node, entry, samples);
}

static void health(uint64_t instance, uint32_t state, const struct andiron_str *message)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);

	if (i)
		instance_health(i, state, border(message));
}

static void drained(uint64_t instance)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);

	if (!i)
		return;
	atomic_store(&i->drained, true);
	host_poke(i->host);
}

/* andiron.status/1 (andiron/status.h); its `self` is the struct host. */
static int32_t status_write(void *self, uint32_t what, andiron_text_fn fn, void *arg)
{
	struct buf text = BUF_NULL;
	int r = -EINVAL;

	if (what == ANDIRON_STATUS_METRICS)
		r = host_metrics(self, &text);
	else if (what == ANDIRON_STATUS_HEALTH)
		r = host_health_json(self, &text);
	else if (what == ANDIRON_STATUS_COMPONENTS)
		r = host_components_json(self, &text);
	else if (what == ANDIRON_STATUS_TARGETS)
		r = host_targets_json(self, &text);
	if (r == 0)
		fn(arg, &(struct andiron_str){text.p, text.n});
	buf_free(&text);
	return r;
}

static int32_t status_component(void *self, const struct andiron_str *id, andiron_text_fn fn,
				void *arg)
{
	struct buf text = BUF_NULL;
	int r = host_component_json(self, abi_str(*id), &text);

	if (r == 0)
		fn(arg, &(struct andiron_str){text.p, text.n});
	buf_free(&text);
	return r;
}

static int32_t status_components(void *self, andiron_component_fn fn, void *arg)
{
	struct host *host = self;

	vec_each (&host->instances, at) {
		struct instance *i = *at;
		struct health health;
		struct andiron_component_state state = {.id = {i->name, strlen(i->name)},
							.flags = i->component->flags,
							.live = i->stage >= STAGE_LIVE};

		pthread_mutex_lock(&i->lock);
		health = i->health;
		pthread_mutex_unlock(&i->lock);
		state.health = health.state;
		state.message = (struct andiron_str){health.text, strlen(health.text)};
		fn(arg, &state);
	}
	for (size_t n = 0; host->plan && n < host->plan->waiting.n; n++) {
		const struct plan_waiting *waiting = &host->plan->waiting.p[n];
		const struct health health = report_waiting(host, waiting);
		const struct andiron_component_state state = {
			.id = {waiting->id, strlen(waiting->id)},
			.message = {health.text, strlen(health.text)},
			/* What nobody knows yet may be what a probe is asked about. */
			.flags = waiting->registered
					 ? waiting->registered->component->flags
					 : ANDIRON_COMPONENT_RAW_FRAMES | ANDIRON_COMPONENT_WRITER,
			.health = health.state,
		};

		fn(arg, &state);
	}
	return 0;
}

static uint64_t status_upstream(void *self, uint64_t instance, uint64_t *ret_dropped)
{
	struct host *host = self;
	struct instance *i = instance_get(instance);
	uint64_t n = 0;

	*ret_dropped = 0;
	if (!i)
		return 0;
	if (i->host == host && (i->component->flags & ANDIRON_COMPONENT_WRITER))
		n = ledger_upstream(&host->ledger, &i->ledger_node, ret_dropped);
	instance_unref(i);
	return n;
}

static int32_t status_reload(void *self, uint64_t instance, andiron_offer_fn fn, void *arg)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);

	return i && fn && i->host == self ? reload_request(i, fn, arg) : -EINVAL;
}

static const struct andiron_status status_service = {
	.size = sizeof(status_service),
	.write = status_write,
	.components = status_components,
	.upstream = status_upstream,
	.reload = status_reload,
	.component = status_component,
};

/* What the host itself offers. */
static bool own_extension(struct host *host, const char *id, struct andiron_extension *ret)
{
	if (strcmp(id, ANDIRON_OBJECTS_ID) == 0) {
		*ret = (struct andiron_extension){&objects_service, host->objects};
		return true;
	}
	if (strcmp(id, ANDIRON_SUBPROCESS_ID) == 0 && host->options.worker) {
		*ret = (struct andiron_extension){&sandboxed_worker, NULL};
		return true;
	}
	if (strcmp(id, ANDIRON_VALUES_ID) == 0 && host->options.refresh) {
		*ret = (struct andiron_extension){&values_service, host};
		return true;
	}
	if (strcmp(id, ANDIRON_STATUS_ID) == 0) {
		*ret = (struct andiron_extension){&status_service, host};
		return true;
	}
	return false;
}

static int32_t extension(uint64_t instance, const char *id, struct andiron_extension *ret)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);
	struct instance *service = NULL;
	struct andiron_extension found;
	int32_t r = -ENOENT;

	if (!i || !id || !ret)
		return -EINVAL;
	if (own_extension(i->host, id, ret))
		return 0;
	pthread_rwlock_rdlock(&i->host->wiring);
	vec_each (&i->host->instances, at)
		vec_each (&(*at)->offers, o)
			if (*at != i && strcmp(o->id, id) == 0) {
				/* Of two that offer it the later one replaces the other. */
				service = *at;
				found = (struct andiron_extension){o->table, service->self};
			}
	if (service)
		r = instance_uses(i, service);
	pthread_rwlock_unlock(&i->host->wiring);
	if (r == 0)
		*ret = found;
	return r;
}

/* The first id behind `last` that begins with the prefix; NULL: none. */
static const char *next_extension(struct host *host, const struct instance *asker,
				  struct str prefix, const char *last)
{
	const char *next = NULL;

	vec_each (&host->instances, at)
		vec_each (&(*at)->offers, o)
			if (*at != asker && str_starts(str_of(o->id), prefix) &&
			    (!last || strcmp(o->id, last) > 0) &&
			    (!next || strcmp(o->id, next) < 0))
				next = o->id;
	return next;
}

static void each_extension(uint64_t instance, const char *prefix,
			   void (*fn)(void *context, const char *id), void *context)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);
	const char *id = NULL;

	if (!i || !prefix)
		return;
	for (;;) {
		pthread_rwlock_rdlock(&i->host->wiring);
		id = next_extension(i->host, i, str_of(prefix), id);
		pthread_rwlock_unlock(&i->host->wiring);
		if (!id)
			break;
		fn(context, id); /* a plugin's constant: plugins are never unloaded */
	}
}

static void request_targets(uint64_t instance, const char *port)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);

	if (!i || !port)
		return;
	check(loop_is_here(&i->host->loop));
	vec_each (&i->host->instances, at)
		for (size_t n = 0; n < (*at)->n_exports; n++)
			export_again(&(*at)->exports[n], i, port);
	vec_each (&i->host->inline_targets, l)
		export_again(&(*l)->export, i, port);
}

const struct andiron_host host_services = {
	.size = sizeof(host_services),
	.abi_minor = ANDIRON_ABI_MINOR,
	.error_add = error_add,
	.report_add = report_add,
	.log_enabled = log_enabled,
	.log = log_line,
	.watch_add = watch_add,
	.watch_modify = watch_modify,
	.watch_remove = watch_remove,
	.timer_set = timer_set,
	.timer_cancel = timer_cancel,
	.post = post,
	.work = work,
	.spawn = spawn,
	.send_batch = send_batch,
	.send_targets = send_targets,
	.ledger_add = ledger_add,
	.ledger_set = ledger_set,
	.health = health,
	.drained = drained,
	.extension = extension,
	.request_targets = request_targets,
	.each_extension = each_extension,
	.offer_batch = offer,
	.full = set_full,
};
