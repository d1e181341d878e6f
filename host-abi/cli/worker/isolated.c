/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in isolated.h. What the component says of its samples is read from this host's ledger,
 * which keeps the equation for it as for any other: what was taken here is what was given. All
 * that goes to the agent may be waited for, since the agent never waits for this process. */
#include "cli/worker/isolated.h"
#include "cli/worker/isolated-targets.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "host/isolate/batch-memory.h"
#include "host/isolate/message.h"
#include "host/isolate/metric-bytes.h"
#include "host/isolate/value-bytes.h"
#include "host/lang/isolation.h"
#include "host/services/sandboxed-worker.h"
#include "host/services/services.h"
#include "host/state.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define TICK_NS     (200 * NS_PER_MSEC)
#define QUEUE_BYTES ((uint64_t)256 << 20) /* more than the one batch that is in it */
#define ID_BYTES    512

enum { NODE_IN, NODE_COMPONENT, NODE_OUT, N_NODES };

struct process {
	struct host *host;
	struct isolate_packet packet;
	char id[ID_BYTES];
	struct registered_component registered[N_NODES];
	struct andiron_value arguments, nothing;
	struct isolated_targets *targets; /* NULL: it is given batches */
	bool forwards, is_live;
	uint64_t number;
	/* As it was said last. */
	struct isolate_counts counts;
	struct health health;
	bool full;
	struct buf metrics, fresh_metrics;
};

static void say_with(uint32_t type, uint64_t number, struct str text, int fd)
{
	struct isolate_message m = {.type = type, .number = number, .text = text};

	if (isolate_put(SANDBOXED_WORKER_SOCKET, &m, fd, true) < 0)
		_exit(EXIT_FAILURE); /* nobody listens any more, or this process can say nothing */
}

static void say(uint32_t type, uint64_t number, struct str text)
{
	say_with(type, number, str_first(text, ISOLATE_MAX_TEXT), -1);
}

void isolated_send(int fd, uint64_t samples)
{
	say_with(ISOLATE_SEND, samples, STR_NULL, fd);
}

void isolated_give_up(const char *why)
{
	say(ISOLATE_LOG, ANDIRON_LOG_ERROR, str_of(why));
	_exit(EXIT_FAILURE);
}

struct isolated_targets *isolated_targets_of(uint64_t instance)
{
	struct instance *i = instance_get(instance);
	const struct process *p = i ? i->host->options.context : NULL;

	if (i)
		instance_unref(i);
	return p ? p->targets : NULL;
}

void isolated_refuse(int code, const char *why)
{
	say(ISOLATE_READY, (uint64_t)-code, str_of(why));
}

static struct instance *instance_of(const struct process *p, const char *id)
{
	vec_each (&p->host->instances, at)
		if (strcmp((*at)->name, id) == 0)
			return *at;
	return NULL;
}

/* --- The components at both ends --- */

static int32_t in_create(const struct andiron_host *host, uint64_t instance,
			 const struct andiron_value *args, void **ret_self,
			 struct andiron_error *err)
{
	*ret_self = NULL; /* it only has a name */
	return 0;
}

static int32_t out_create(const struct andiron_host *host, uint64_t instance,
			  const struct andiron_value *args, void **ret_self,
			  struct andiron_error *err)
{
	uint64_t *self = malloc(sizeof(*self));

	if (!self)
		return -ENOMEM;
	*self = instance;
	*ret_self = self;
	return 0;
}

static void out_batch(void *self, const struct andiron_batch *batch)
{
	const uint64_t *instance = self;
	_cleanup_(closep) int fd = -1;
	int r = memory_of_batch(batch, &fd);

	if (r < 0) {
		const char *why = r == -E2BIG ? "too_large" : "no_memory";

		host_services.ledger_add(*instance, ANDIRON_LEDGER_DROPPED,
					 &(struct andiron_str){why, 9}, batch->samples);
		return;
	}
	isolated_send(fd, batch->samples);
	host_services.ledger_add(*instance, ANDIRON_LEDGER_DELIVERED, NULL, batch->samples);
}

static const struct andiron_component in_component = {
	.size = sizeof(in_component), .name = "in", .summary = "", .create = in_create};
static const struct andiron_component out_component = {
	.size = sizeof(out_component),
	.flags = ANDIRON_COMPONENT_WRITER,
	.name = "out",
	.summary = "",
	.create = out_create,
	.destroy = free,
	.batch = out_batch,
};

/* --- What is said --- */

static void add_reason(struct isolate_counts *c, const struct ledger_reason *r)
{
	struct isolate_reason *to = &c->dropped[c->n_reasons];

	/* What finds no room is under the last word. */
	if (c->n_reasons == ISOLATE_REASONS) {
		to[-1].samples += r->samples;
		return;
	}
	to->samples = r->samples;
	snprintf(to->word, sizeof(to->word), "%.*s", ISOLATE_REASON_BYTES - 1, r->reason);
	for (size_t i = 0; i < c->n_reasons; i++)
		if (strcmp(c->dropped[i].word, to->word) == 0) {
			c->dropped[i].samples += r->samples;
			return;
		}
	c->n_reasons++;
}

static void say_counts(struct process *p)
{
	const struct ledger_view *view = host_ledger(p->host);
	const char *row = p->forwards ? out_component.name : p->id;
	struct isolate_counts c = {0};

	for (size_t i = 0; view && i < view->n_writers; i++) {
		const struct ledger_writer *w = &view->writers[i];

		if (strcmp(w->component, row) != 0)
			continue;
		c.delivered = w->delivered;
		c.carried = w->carried;
		c.spooled = w->spooled;
		c.uncertain = w->uncertain;
		for (size_t n = 0; n < w->n_reasons; n++)
			if (w->reasons[n].samples && w->reasons[n].reason[0])
				add_reason(&c, &w->reasons[n]);
	}
	if (memcmp(&c, &p->counts, sizeof(c)) == 0)
		return;
	p->counts = c;
	say(ISOLATE_COUNTS, 0, isolate_counts_text(&c));
}

static void say_health(struct process *p, struct instance *i)
{
	struct health h;

	pthread_mutex_lock(&i->lock);
	h = i->health;
	pthread_mutex_unlock(&i->lock);
	if (h.state == p->health.state && strcmp(h.text, p->health.text) == 0)
		return;
	p->health = h;
	say(ISOLATE_HEALTH, h.state, str_of(h.text));
}

static void add_metric(void *self, const struct andiron_metric *metric)
{
	if (metric->name)
		metric_bytes_put(self, metric);
}

static void say_metrics(struct process *p, struct instance *i)
{
	struct buf *fresh = &p->fresh_metrics, was = p->metrics;
	struct andiron_metric_sink sink = {.size = sizeof(sink), .self = fresh, .add = add_metric};

	buf_clear(fresh);
	if (!i->component->metrics || !i->self || !strand_enter(&i->strand))
		return;
	i->component->metrics(i->self, &sink);
	strand_leave(&i->strand);
	if (str_eq(buf_str(fresh), buf_str(&was)))
		return;
	p->metrics = *fresh;
	*fresh = was;
	say(ISOLATE_METRICS, 0, buf_str(&p->metrics));
}

static void on_tick(void *context)
{
	struct process *p = context;
	struct instance *i = instance_of(p, p->id);
	bool full;

	if (!p->is_live || !i)
		return;
	say_counts(p);
	say_health(p, i);
	say_metrics(p, i);
	if (p->targets)
		isolated_targets_tick(p->targets);
	full = atomic_load(&i->full);
	if (full != p->full)
		say(ISOLATE_FULL, full, STR_NULL);
	p->full = full;
}

static void on_log(void *context, uint32_t level, const char *component, const char *line)
{
	/* Not of the ends of its graph, which are not the component's. */
	if (strcmp(component, in_component.name) != 0 && strcmp(component, out_component.name) != 0)
		say(ISOLATE_LOG, level, str_of(line));
}

/* --- What is heard --- */

static void on_done(void *arg, int32_t result)
{
	struct process *p = arg;

	say_counts(p);
	say(ISOLATE_DONE, p->number, STR_NULL);
}

static void on_given(void *arg)
{
	on_done(arg, 0);
}

static void on_targets(struct process *p, uint64_t number, int fd)
{
	struct instance *i = instance_of(p, p->id);

	p->number = number;
	if (!i || !isolated_targets_give(p->targets, i, fd) ||
	    host_services.post(i->id, on_given, p) < 0)
		isolated_give_up("out of memory for targets");
}

static void on_batch(struct process *p, uint64_t number, int fd)
{
	struct instance *i = instance_of(p, p->id), *in = instance_of(p, in_component.name);
	const struct andiron_batch *batch;
	int r = memory_batch(fd, NULL, &batch);

	if (r < 0 || !i || !in)
		_exit(EXIT_FAILURE);
	p->number = number;
	/* One whose store is full is given it all the same: the agent does not hold back. */
	atomic_store(&i->full, false);
	r = host_services.offer_batch(in->id, batch, on_done, p);
	if (p->full)
		atomic_store(&i->full, true);
	batch->release(batch->owner);
	if (r < 0)
		_exit(EXIT_FAILURE);
}

static void on_readable(void *context)
{
	struct process *p = context;
	struct isolate_message m;
	_cleanup_(closep) int fd = -1;
	int r = isolate_take(SANDBOXED_WORKER_SOCKET, &p->packet, &m, &fd);

	if (r == 0)
		return;
	if (r == 1 && m.type == ISOLATE_BATCH && p->targets) {
		on_targets(p, m.number, fd);
	} else if (r == 1 && m.type == ISOLATE_BATCH) {
		on_batch(p, m.number, fd);
	} else if (r == 1 && m.type == ISOLATE_DRAIN) {
		p->host->options.drain_ns = (int64_t)m.number;
		host_stop(p->host);
	} else {
		_exit(EXIT_FAILURE);
	}
}

static void on_live(void *context, const char *failed)
{
	struct process *p = context;

	if (failed) {
		isolated_refuse(-EIO, p->host->failed_cause);
		_exit(EXIT_FAILURE);
	}
	say_counts(p);
	say(ISOLATE_READY, 0, STR_NULL);
	p->is_live = true;
	on_tick(p);
}

/* --- Its life --- */

/* Ends the process with the agent, also where a call does not return. */
static void *watch_agent(void *arg)
{
	struct pollfd closed = {.fd = SANDBOXED_WORKER_SOCKET};

	while (poll(&closed, 1, -1) <= 0 || !(closed.revents & (POLLHUP | POLLERR)))
		;
	_exit(EXIT_FAILURE);
}

static void await_start(struct process *p, uint32_t *ret_level, struct arena *arena)
{
	struct pollfd readable = {.fd = SANDBOXED_WORKER_SOCKET, .events = POLLIN};
	struct isolate_message m;
	struct buf bytes = {.limit = VALUE_BYTES_MAX + 1};
	int fd = -1, r;

	while ((r = isolate_take(SANDBOXED_WORKER_SOCKET, &p->packet, &m, &fd)) == 0)
		poll(&readable, 1, -1);
	if (r != 1 || m.type != ISOLATE_START || m.text.n >= ID_BYTES ||
	    memory_bytes(fd, VALUE_BYTES_MAX, &bytes) < 0 ||
	    value_bytes_get(buf_str(&bytes), arena, &p->arguments) < 0)
		_exit(EXIT_FAILURE);
	buf_free(&bytes);
	close(fd);
	snprintf(p->id, sizeof(p->id), "%.*s", STR_FMT(m.text));
	*ret_level = (uint32_t)m.number;
}

static bool add_node(struct process *p, struct plan *plan, int node, const char *id,
		     const struct andiron_value *args)
{
	struct plan_node n = {.id = id, .registered = &p->registered[node], .args = args};
	struct plan_edge edge = {
		.from = (uint32_t)node - 1, .to = (uint32_t)node, .kind = PLAN_BATCHES};

	return vec_push(&plan->nodes, n) &&
	       (node == NODE_IN || p->targets || vec_push(&plan->edges, edge));
}

static int load(struct process *p, struct arena *arena, struct error *err)
{
	struct plan *plan = calloc(1, sizeof(*plan));
	bool good = plan;

	if (good)
		arena_join(&plan->arena, arena);
	p->nothing.kind = ANDIRON_VALUE_MAP;
	good = good &&
	       (p->targets || add_node(p, plan, NODE_IN, in_component.name, &p->nothing)) &&
	       add_node(p, plan, NODE_COMPONENT, p->id, &p->arguments) &&
	       (!p->forwards || add_node(p, plan, NODE_OUT, out_component.name, &p->nothing));
	if (good)
		return host_load(p->host, plan, err);
	plan_free(plan);
	return error_set(err, -ENOMEM, "out of memory");
}

static int run(struct process *p, struct error *err)
{
	struct host_options options = {.log_fd = -1,
				       .log = on_log,
				       .live = on_live,
				       .context = p,
				       .queue_bytes = QUEUE_BYTES,
				       .worker = "/proc/self/exe"};
	struct arena arena = ARENA_NULL;
	pthread_t thread;
	int r;

	await_start(p, &options.log_level, &arena);
	if (pthread_create(&thread, NULL, watch_agent, NULL) != 0)
		return error_set(err, -EAGAIN, "it cannot start a thread");
	r = host_new(&options, &p->host, err);
	if (r == 0)
		r = load(p, &arena, err);
	if (r == 0)
		r = host_watch(p->host, SANDBOXED_WORKER_SOCKET, on_readable, p);
	if (r == 0)
		r = host_timer(p->host, TICK_NS, TICK_NS, on_tick, p);
	return r < 0 ? r : host_run(p->host, err);
}

void isolated_serve(const struct registered_plugin *plugin,
		    const struct andiron_component *component)
{
	struct error err = ERROR_NULL;
	struct process *p = calloc(1, sizeof(*p));
	int r = -ENOMEM;

	if (p) {
		p->forwards = isolation_forwards(component);
		if (isolated_has_targets(component)) {
			p->targets = isolated_targets_new(component);
			if (!p->targets)
				_exit(EXIT_FAILURE);
			component = isolated_targets_component(p->targets);
		}
		p->registered[NODE_IN].component = &in_component;
		p->registered[NODE_COMPONENT] = (struct registered_component){component, plugin};
		p->registered[NODE_OUT].component = &out_component;
		p->metrics.limit = p->fresh_metrics.limit = ISOLATE_MAX_TEXT;
		r = run(p, &err);
	}
	if (!p || (r < 0 && !p->is_live)) {
		isolated_refuse(r, err.code ? err.text : strerror(-r));
		_exit(EXIT_FAILURE);
	}
	say_counts(p);
	say(ISOLATE_ENDED, 0, STR_NULL);
	_exit(EXIT_SUCCESS);
}
