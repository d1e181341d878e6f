/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin as it was written for version 1.0 of the ABI, and is never changed: `baseline.source`
 * gives one target and a batch of 97 samples, `baseline.sink` takes both and says what it got. It
 * is built with the headers of that version, and run by the host of today. */
#include <andiron/plugin.h>
#include <andiron/batch.h>
#include <andiron/target.h>
#include <andiron/value.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N(array)  (sizeof(array) / sizeof((array)[0]))
#define SECOND    INT64_C(1000000000)
#define N_SAMPLES 97

struct part {
	const struct andiron_host *host;
	uint64_t instance;
	uint64_t n_targets;
};

enum { NONE, WORK, PROCESS_CPU, CPU, NANOSECONDS, SERVICE_NAME, BASELINE, N_STRINGS };

static const struct tables {
	char text[64];
	struct andiron_string strings[N_STRINGS];
	struct andiron_function functions[2];
	struct andiron_line lines[1];
	struct andiron_location locations[2];
	struct andiron_mapping mappings[1];
	struct andiron_stack stacks[2];
	uint32_t frames[2];
	struct andiron_attribute attributes[2];
	uint32_t attr_indices[2];
	struct andiron_profile_type types[1];
	struct andiron_group groups[1];
	struct andiron_row rows[1];
} tables = {
	.text = "workprocess_cpucpunanosecondsservice_namebaseline",
	.strings = {{0, 0, 0},
		    {0, 4, 0},
		    {4, 11, 0},
		    {15, 3, 0},
		    {18, 11, 0},
		    {29, 12, 0},
		    {41, 8, 0}},
	.functions = {{0}, {WORK, WORK, NONE, 0}},
	.lines = {{1, 3, 0, 0}},
	.locations = {{0}, {.kind = ANDIRON_FRAME_NATIVE, .line_start = 0, .n_lines = 1}},
	.stacks = {{0}, {.start = 0, .length = 1}},
	.frames = {1, 0},
	.attributes = {{0}, {BASELINE, SERVICE_NAME, ANDIRON_ATTRIBUTE_STRING, 0, 0}},
	.attr_indices = {1},
	.types = {{PROCESS_CPU, CPU, NANOSECONDS, CPU, NANOSECONDS, 0, SECOND / N_SAMPLES}},
	.groups = {{.label_start = 0, .n_labels = 1, .row_start = 0, .n_rows = 1}},
	.rows = {{.value = SECOND, .samples = N_SAMPLES, .stack = 1}},
};

#define COLUMN(id_, member)                                                                        \
	{(id_), sizeof(tables.member[0]), 0, 0, offsetof(struct tables, member), N(tables.member)}

static const struct andiron_column columns[] = {
	COLUMN(ANDIRON_COL_STRING, strings),
	COLUMN(ANDIRON_COL_FUNCTION, functions),
	COLUMN(ANDIRON_COL_LINE, lines),
	COLUMN(ANDIRON_COL_LOCATION, locations),
	COLUMN(ANDIRON_COL_MAPPING, mappings),
	COLUMN(ANDIRON_COL_STACK, stacks),
	COLUMN(ANDIRON_COL_FRAME, frames),
	COLUMN(ANDIRON_COL_ATTRIBUTE, attributes),
	COLUMN(ANDIRON_COL_ATTR_INDEX, attr_indices),
	COLUMN(ANDIRON_COL_TYPE, types),
	COLUMN(ANDIRON_COL_GROUP, groups),
	COLUMN(ANDIRON_COL_ROW, rows),
};

_Static_assert(offsetof(struct tables, attributes) % 8 == 0, "columns are aligned");

static void say(const struct part *p, const char *what, uint64_t n)
{
	char line[64];
	struct andiron_str message = {line, 0};

	message.len =
		(uint64_t)snprintf(line, sizeof(line), "%s %llu", what, (unsigned long long)n);
	p->host->log(p->instance, ANDIRON_LOG_INFO, &message, NULL, 0);
}

/* What is handed on is constant. */
static void keep(void *owner)
{
	(void)owner;
}

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret_self, struct andiron_error *err)
{
	struct part *p = calloc(1, sizeof(*p));

	(void)args;
	if (!p)
		return host->error_add(err, -ENOMEM, "no memory", 9);
	p->host = host;
	p->instance = instance;
	*ret_self = p;
	return 0;
}

static int32_t send_target(const struct part *p)
{
	static const struct andiron_str strings[] = {{"__name__", 8}, {"baseline", 8}};
	static const struct andiron_label labels[] = {{0, 1}};
	static const struct andiron_target rows[] = {{.row = 1, .n_labels = 1}};
	static struct andiron_targets update; /* kept by whoever retains it */

	update.size = sizeof(update);
	update.flags = ANDIRON_TARGETS_SNAPSHOT;
	update.producer = p->instance;
	update.generation = 1;
	update.strings = strings;
	update.n_strings = N(strings);
	update.labels = labels;
	update.n_labels = N(labels);
	update.rows = rows;
	update.n_rows = update.n_added = N(rows);
	update.retain = update.release = keep;
	return p->host->send_targets(p->instance, "targets", &update);
}

static int32_t send_samples(const struct part *p)
{
	static const struct andiron_segment segment = {&tables, sizeof(tables), -1, 0};
	static struct andiron_batch batch;
	struct timespec now;

	timespec_get(&now, TIME_UTC);
	batch.size = sizeof(batch);
	batch.n_columns = N(columns);
	batch.n_segments = 1;
	batch.columns = columns;
	batch.segments = &segment;
	batch.start_ns = (now.tv_sec - 1) * SECOND + now.tv_nsec;
	batch.end_ns = now.tv_sec * SECOND + now.tv_nsec;
	batch.samples = N_SAMPLES;
	batch.bytes = sizeof(tables);
	batch.producer = p->instance;
	batch.sequence = 1;
	batch.retain = batch.release = keep;
	p->host->ledger_add(p->instance, ANDIRON_LEDGER_TAKEN, NULL, N_SAMPLES);
	return p->host->send_batch(p->instance, &batch);
}

static int32_t start_source(void *self, struct andiron_error *err)
{
	const struct part *p = self;
	int32_t r = send_target(p);

	if (r == 0)
		r = send_samples(p);
	return r < 0 ? p->host->error_add(err, r, "refused", 7) : 0;
}

static int32_t start_sink(void *self, struct andiron_error *err)
{
	(void)self;
	(void)err;
	return 0;
}

static void take_targets(void *self, const char *port, const struct andiron_targets *update)
{
	struct part *p = self;

	(void)port;
	p->n_targets += update->n_added;
	say(p, "baseline has targets:", p->n_targets);
}

static void take_batch(void *self, const struct andiron_batch *batch)
{
	const struct part *p = self;

	p->host->ledger_add(p->instance, ANDIRON_LEDGER_DELIVERED, NULL, batch->samples);
	say(p, "baseline has samples:", batch->samples);
}

static void stop(void *self)
{
	(void)self;
}

#define FORWARD  "Where the profiles go."
#define TARGETS  "Targets to be counted."
#define OPTION(name_, type_, doc_) {.name = (name_), .type = (type_), .doc = (doc_)}

static const struct andiron_option source_items[] = {
	OPTION("forward_to", ANDIRON_TYPE_RECEIVERS, FORWARD)};
static const struct andiron_option sink_items[] = {
	OPTION("targets", ANDIRON_TYPE_TARGETS, TARGETS)};
static const struct andiron_options source_options = ANDIRON_OPTIONS(source_items);
static const struct andiron_options sink_options = ANDIRON_OPTIONS(sink_items);
static const struct andiron_export source_exports[] = {
	{"targets", ANDIRON_EXPORT_TARGETS, 0, "One target."}};
static const struct andiron_export sink_exports[] = {
	{"receiver", ANDIRON_EXPORT_RECEIVER, 0, "Takes profiles."}};

static const struct andiron_component source = {
	.size = sizeof(source),
	.name = "baseline.source",
	.summary = "One target and one batch.",
	.options = &source_options,
	.exports = source_exports,
	.n_exports = 1,
	.create = create,
	.start = start_source,
	.stop = stop,
	.destroy = free,
};

static const struct andiron_component sink = {
	.size = sizeof(sink),
	.flags = ANDIRON_COMPONENT_WRITER,
	.name = "baseline.sink",
	.summary = "Says what it gets.",
	.options = &sink_options,
	.exports = sink_exports,
	.n_exports = 1,
	.create = create,
	.start = start_sink,
	.stop = stop,
	.destroy = free,
	.targets = take_targets,
	.batch = take_batch,
};

ANDIRON_PLUGIN("baseline", "1.0", "Apache-2.0", &source, &sink);
