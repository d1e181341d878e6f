/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in's verbs. Contract in isolated.h. */
#include "host/isolate/isolated-private.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "host/isolate/metric-bytes.h"
#include "host/isolate/target-bytes.h"
#include "host/isolate/value-bytes.h"
#include "host/lang/isolation.h"
#include "host/services/callbacks.h"

#include <errno.h>
#include <poll.h>

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret_self, struct andiron_error *err)
{
	struct instance *i = instance_get(instance);
	struct isolated *p;

	if (!i)
		return -EINVAL;
	instance_unref(i); /* it has us, and outlives its calls */
	p = i->isolated;
	p->instance = i;
	if (!i->host->options.worker)
		return error_set(&err->error, -ENOENT,
				 "`isolate` needs the andiron command, which runs the component: "
				 "install it, or name it as the worker");
	p->arguments.limit = VALUE_BYTES_MAX;
	p->targets.limit = ISOLATE_MAX_TARGETS;
	value_bytes_put(&p->arguments, args);
	p->packet = malloc(sizeof(*p->packet));
	if (p->arguments.failed || !p->packet)
		return -ENOMEM;
	*ret_self = p;
	return 0;
}

/* Waits until it is ready: 0, or what is wrong. */
static int await_ready(struct isolated *p)
{
	int r = 0;

	while (r == 0 && !p->ready) {
		struct pollfd readable = {.fd = p->socket, .events = POLLIN};
		int64_t left = p->due_ns - clock_mono();

		if (left <= 0)
			return -ETIMEDOUT;
		poll(&readable, 1, (int)(left / NS_PER_MSEC) + 1);
		r = isolated_read(p);
	}
	return r;
}

static int32_t start(void *self, struct andiron_error *err)
{
	struct isolated *p = self;
	char how[64] = "", why[480];
	int r = isolated_start(p);

	if (r == 0)
		r = await_ready(p);
	if (r == 0)
		r = isolated_watch(p);
	if (r == 0)
		return 0;
	isolated_close(p, how, sizeof(how));
	isolated_reason(p, r, how, why, sizeof(why));
	return error_set(&err->error, r, "%s%s", p->why[0] ? "" : "in its own process: ", why);
}

/* Whether it has taken the batch, or dropped and counted it. */
static bool take(struct isolated *p, const struct andiron_batch *batch)
{
	if (!p->stopping && !p->told)
		return holdings_add(p, batch) == 0;
	isolated_count(p, ANDIRON_LEDGER_DROPPED, STR("stopped"), batch->samples);
	return false;
}

/* Who has offered the batch hears when the queue goes on, and whether it was dropped. */
static void batch(void *self, const struct andiron_batch *batch)
{
	struct isolated *p = self;

	queue_hold(p->instance);
	if (!take(p, batch)) {
		queue_resume(p->instance, true);
		return;
	}
	p->holds_queue = true;
	holdings_show(p);
	isolated_go_on(p, 0);
}

/* What comes while none is ready is among what the next one asks for. */
static void targets(void *self, const char *port, const struct andiron_targets *update)
{
	struct isolated *p = self;

	if (!p->ready)
		return;
	isolated_go_on(p, target_bytes_put(&p->targets, port, update));
}

static int32_t drain(void *self, int64_t deadline_ns)
{
	struct isolated *p = self;

	p->drains = true;
	isolated_go_on(p, 0);
	return 0;
}

/* What is in its store stays there, what is uncertain stays that, and what else it still has is
 * lost: as what any component has at its deadline, unless it has ended before and by itself. Then
 * what it has said of its store is final. */
static void leave(struct isolated *p)
{
	struct ledger *l = &p->instance->host->ledger;
	struct ledger_node *node = &p->instance->ledger_node;
	uint64_t stored = isolated_stored(p), uncertain = p->counts.uncertain, kept;

	kept = p->ended ? p->counts.spooled + uncertain : stored;
	if (kept < stored) {
		isolated_count(p, ANDIRON_LEDGER_DROPPED, STR("isolate_died"), stored - kept);
		stored = kept;
	}
	uncertain = uncertain < stored ? uncertain : stored;
	ledger_level(l, node, ANDIRON_LEDGER_SPOOLED, stored - uncertain);
	ledger_level(l, node, ANDIRON_LEDGER_UNCERTAIN, uncertain);
	holdings_clear(p, p->ended ? STR("isolate_died") : STR("deadline"));
	p->given = p->passed = 0;
	p->counts = (struct isolate_counts){0};
	holdings_show(p);
}

static void stop(void *self)
{
	struct isolated *p = self;
	struct instance *i = p->instance;
	char how[64];

	p->stopping = true;
	isolated_arm(p);
	isolated_close(p, how, sizeof(how));
	leave(p);
	if (p->holds_queue)
		queue_resume(i, true);
	p->holds_queue = false;
}

static void destroy(void *self)
{
	/* The instance frees it. */
}

static void metrics(void *self, const struct andiron_metric_sink *sink)
{
	const struct isolated *p = self;
	struct andiron_metric m = {
		.name = "andiron_isolate_starts_total",
		.help = "Processes that were started for this component.",
		.kind = ANDIRON_METRIC_COUNTER,
		.value = (double)p->n_starts,
	};

	sink->add(sink->self, &m);
	m.name = "andiron_isolate_lost_batches_total";
	m.help = "Batches that were lost because such a process ended.";
	m.value = (double)p->n_lost;
	sink->add(sink->self, &m);
	m.name = "andiron_isolate_up";
	m.help = "Whether such a process runs and is ready.";
	m.kind = ANDIRON_METRIC_GAUGE;
	m.value = p->socket >= 0 && p->ready;
	sink->add(sink->self, &m);
	metric_bytes_each(buf_str(&p->metrics), sink);
}

struct isolated *isolated_new(const struct andiron_component *of)
{
	struct isolated *p = calloc(1, sizeof(*p) + of->n_exports * sizeof(p->heard[0]));

	if (!p)
		return NULL;
	p->of = of;
	p->forwards = isolation_forwards(of);
	p->socket = p->pidfd = p->dying = -1;
	p->component = (struct andiron_component){
		.size = sizeof(p->component),
		.flags = of->flags,
		.name = of->name,
		.summary = of->summary,
		.options = of->options,
		.exports = of->exports,
		.n_exports = of->n_exports,
		.create = create,
		.start = start,
		.drain = drain,
		.stop = stop,
		.destroy = destroy,
		.targets = targets,
		.batch = of->batch ? batch : NULL,
		.metrics = metrics,
	};
	return p;
}

void isolated_free(struct isolated *p)
{
	if (!p)
		return;
	if (isolated_is_dying(p)) /* what is left of it goes with this process */
		close(p->dying);
	vec_each (&p->holdings, h)
		h->batch->release(h->batch->owner);
	vec_free(&p->holdings);
	buf_free(&p->arguments);
	buf_free(&p->metrics);
	buf_free(&p->targets);
	free(p->packet);
	free(p);
}

const struct andiron_component *isolated_stand_in(const struct isolated *p)
{
	return &p->component;
}

const struct andiron_component *isolated_original(const struct isolated *p)
{
	return p->of;
}
