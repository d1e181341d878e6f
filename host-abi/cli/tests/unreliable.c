/* SPDX-License-Identifier: Apache-2.0 */
/* A writer that delivers, until it is given a batch of 13 samples: then it does what its argument
 * `fault` says. With `keeps` it delivers at the end only; with "start" it does not even begin. And
 * a relay of targets, which dies of one that has a label of the value "crash". And a source of one
 * target, which begins without, and dies later. */
#include <andiron/plugin.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOCKET 3 /* of the process that runs it */

struct writer {
	const struct andiron_host *host;
	uint64_t instance, kept;
	char fault[16];
	int keeps;
};

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret_self, struct andiron_error *err)
{
	struct writer *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->host = host;
	w->instance = instance;
	for (uint64_t i = 0; i < args->n_items; i++) {
		const struct andiron_value *v = &args->items[i];

		if (v->kind == ANDIRON_VALUE_BOOL)
			w->keeps = v->integer != 0;
		else if (v->kind == ANDIRON_VALUE_STRING && v->string.len < sizeof(w->fault))
			memcpy(w->fault, v->string.ptr, v->string.len);
	}
	*ret_self = w;
	return 0;
}

static int32_t start(void *self, struct andiron_error *err)
{
	struct writer *w = self;

	if (strcmp(w->fault, "start") == 0)
		raise(SIGKILL);
	if (strcmp(w->fault, "refuse") == 0)
		return w->host->error_add(err, -EINVAL, "no such luck", 12);
	return 0;
}

static void misbehave(const struct writer *w)
{
	static const char junk[100] = "junk";

	if (strcmp(w->fault, "crash") == 0)
		raise(SIGKILL);
	while (strcmp(w->fault, "hang") == 0)
		pause();
	if (strcmp(w->fault, "lie") == 0)
		w->host->ledger_add(w->instance, ANDIRON_LEDGER_DELIVERED, NULL, 1000);
	if (strcmp(w->fault, "junk") == 0 && write(SOCKET, junk, sizeof(junk)) < 0)
		raise(SIGKILL);
}

static void batch(void *self, const struct andiron_batch *b)
{
	struct writer *w = self;

	if (b->samples == 13)
		misbehave(w);
	if (w->keeps) {
		w->kept += b->samples;
		w->host->ledger_set(w->instance, ANDIRON_LEDGER_IN_FLIGHT, w->kept);
	} else {
		w->host->ledger_add(w->instance, ANDIRON_LEDGER_DELIVERED, NULL, b->samples);
	}
}

static int32_t drain(void *self, int64_t deadline_ns)
{
	struct writer *w = self;

	w->host->ledger_set(w->instance, ANDIRON_LEDGER_IN_FLIGHT, 0);
	w->host->ledger_add(w->instance, ANDIRON_LEDGER_DELIVERED, NULL, w->kept);
	w->kept = 0;
	w->host->drained(w->instance);
	return 0;
}

static void stop(void *self)
{
}

static void metrics(void *self, const struct andiron_metric_sink *sink)
{
	const struct andiron_metric m = {
		.name = "test_metric", .help = "Of the test.", .kind = 2, .value = 42};

	sink->add(sink->self, &m);
}

static const struct andiron_option options[] = {
	{.name = "fault", .type = ANDIRON_TYPE_STRING, .doc = "What it does at 13 samples."},
	{.name = "keeps", .type = ANDIRON_TYPE_BOOL, .doc = "Whether it delivers at the end."},
};
static const struct andiron_options table = ANDIRON_OPTIONS(options);
static const struct andiron_export exports[] = {
	{"receiver", ANDIRON_EXPORT_RECEIVER, 0, "Takes profiles."},
};

static const struct andiron_component writer = {
	.size = sizeof(writer),
	.flags = ANDIRON_COMPONENT_WRITER,
	.name = "test.unreliable",
	.summary = "A writer for tests.",
	.options = &table,
	.exports = exports,
	.n_exports = 1,
	.create = create,
	.start = start,
	.drain = drain,
	.stop = stop,
	.destroy = free,
	.batch = batch,
	.metrics = metrics,
};

/* --- The relay: of one producer --- */

static void targets(void *self, const char *port, const struct andiron_targets *update)
{
	const struct writer *w = self;
	struct andiron_targets own = *update;

	for (uint64_t i = 0; i < update->n_strings; i++)
		if (update->strings[i].len == 5 && memcmp(update->strings[i].ptr, "crash", 5) == 0)
			raise(SIGKILL);
	own.producer = w->instance;
	w->host->send_targets(w->instance, "targets", &own);
}

static const struct andiron_option relay_options[] = {
	{.name = "targets", .type = ANDIRON_TYPE_TARGETS, .doc = "What is passed on."},
};
static const struct andiron_options relay_table = ANDIRON_OPTIONS(relay_options);
static const struct andiron_export relay_exports[] = {
	{"targets", ANDIRON_EXPORT_TARGETS, 0, "The same."},
};

static const struct andiron_component relay = {
	.size = sizeof(relay),
	.name = "test.relay",
	.summary = "A relay for tests.",
	.options = &relay_table,
	.exports = relay_exports,
	.n_exports = 1,
	.create = create,
	.start = start,
	.stop = stop,
	.destroy = free,
	.targets = targets,
};

/* --- The source: its target is the process --- */

static void borrowed(void *owner)
{
}

static void send_row(const struct writer *w, uint64_t generation, uint64_t n)
{
	static const struct andiron_str strings[] = {{"name", 4}, {"source", 6}};
	static const struct andiron_label label = {0, 1};
	static struct andiron_target row;
	struct andiron_targets update = {
		.size = sizeof(update),
		.flags = generation == 1 ? ANDIRON_TARGETS_SNAPSHOT : 0,
		.producer = w->instance,
		.generation = generation,
		.strings = strings,
		.n_strings = 2,
		.labels = &label,
		.n_labels = 1,
		.rows = &row,
		.n_rows = n,
		.n_added = n,
		.retain = borrowed,
		.release = borrowed,
	};

	row = (struct andiron_target){.row = (uint64_t)getpid(), .n_labels = 1};
	w->host->send_targets(w->instance, "targets", &update);
}

static void on_timer(void *self)
{
	struct writer *w = self;

	if (w->kept++)
		raise(SIGKILL);
	send_row(w, 2, 1);
}

static int32_t start_source(void *self, struct andiron_error *err)
{
	struct writer *w = self;
	uint64_t timer;

	send_row(w, 1, 0);
	return w->host->timer_set(w->instance, 500000000, 500000000, on_timer, w, &timer);
}

static const struct andiron_component source = {
	.size = sizeof(source),
	.name = "test.source",
	.summary = "A source for tests.",
	.exports = relay_exports,
	.n_exports = 1,
	.create = create,
	.start = start_source,
	.stop = stop,
	.destroy = free,
};

ANDIRON_PLUGIN("unreliable", "1.0", "Apache-2.0", &writer, &relay, &source);
