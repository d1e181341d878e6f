/* SPDX-License-Identifier: Apache-2.0 */
/*
 * andiron-symbolize.so: profile.symbolize. A batch goes on with names, or as it
 * came where naming it fails: missing names are a nuisance, missing samples a
 * lie.
 */
#include "options.h"
#include "symbolizer.h"

#include "abi/batch-build.h"
#include "abi/log.h"
#include "base/clock.h"

#include <andiron/plugin.h>

#include <errno.h>
#include <stdlib.h>

struct instance {
	struct abi_context context;
	struct symbolizer symbolizer;
	uint64_t unnamed_batches;
	bool kernel_hidden;
};

static void broken_file(void *context, const struct andiron_str *path, const struct error *why)
{
	const struct instance *i = context;

	abi_log(&i->context, ANDIRON_LOG_WARN, "no names from %.*s: %s; it is set aside",
		(int)path->len, path->ptr, why->text);
}

static int32_t symbolize_create(const struct andiron_host *host, uint64_t instance,
				const struct andiron_value *args, void **ret_self,
				struct andiron_error *err)
{
	struct andiron_extension objects;
	struct instance *i;
	int32_t r = host->extension(instance, ANDIRON_OBJECTS_ID, &objects);

	if (r < 0)
		return r;
	i = calloc(1, sizeof(*i));
	if (!i)
		return -ENOMEM;
	i->context = (struct abi_context){host, instance};
	symbolizer_init(&i->symbolizer, &objects, symbolize_cache_bytes(args), broken_file, i);
	*ret_self = i;
	return 0;
}

static int32_t symbolize_start(void *self, struct andiron_error *err)
{
	struct instance *i = self;

	abi_health(&i->context, ANDIRON_HEALTH_HEALTHY, "naming frames");
	return 0;
}

static int32_t symbolize_update(void *self, const struct andiron_value *args,
				struct andiron_error *err)
{
	struct instance *i = self;

	i->symbolizer.cache.limit = symbolize_cache_bytes(args);
	return 0;
}

static void symbolize_stop(void *self)
{
}

static void symbolize_destroy(void *self)
{
	struct instance *i = self;

	symbolizer_fini(&i->symbolizer);
	free(i);
}

static void say_kernel_state(struct instance *i)
{
	const struct error *why = &i->symbolizer.kernel.why;
	bool hidden = why->code && !i->symbolizer.kernel.loaded;

	if (hidden == i->kernel_hidden)
		return;
	i->kernel_hidden = hidden;
	if (hidden)
		abi_log(&i->context, ANDIRON_LOG_WARN, "kernel functions have no names: %s",
			why->text);
	abi_health(&i->context, ANDIRON_HEALTH_HEALTHY, "naming frames%s%s",
		   hidden ? "; kernel functions have no names: " : "", hidden ? why->text : "");
}

static void symbolize_batch(void *self, const struct andiron_batch *batch)
{
	struct instance *i = self;
	const struct andiron_host *host = i->context.host;
	const struct andiron_batch *named = NULL;
	int r = symbolizer_run_apart(&i->symbolizer, batch, clock_mono(), &named);

	if (r < 0) {
		i->unnamed_batches++;
		abi_log(&i->context, ANDIRON_LOG_WARN,
			"a batch goes on without names: %s (error %d)",
			r == -ENOMEM ? "memory is short" : "it cannot be symbolized", -r);
	}
	host->send_batch(i->context.instance, named ? named : batch);
	if (named)
		batch_release(named);
	say_kernel_state(i);
}

static void add_metric(const struct andiron_metric_sink *sink, uint32_t kind, const char *name,
		       const char *help, uint64_t value)
{
	const struct andiron_metric m = {
		.name = name, .help = help, .kind = kind, .value = (double)value};

	sink->add(sink->self, &m);
}

/* One counter for each of `words`, told apart by a label. */
static void add_family(const struct andiron_metric_sink *sink, struct andiron_metric m,
		       const char *label, const char *const *words, const uint64_t *values)
{
	for (; *words; words++, values++) {
		const struct andiron_kv kv = {{label, strlen(label)}, {*words, strlen(*words)}};

		m.kind = ANDIRON_METRIC_COUNTER;
		m.n_labels = 1;
		m.labels = &kv;
		m.value = (double)*values;
		sink->add(sink->self, &m);
	}
}

static void symbolize_metrics(void *self, const struct andiron_metric_sink *sink)
{
	static const char *const sources[] = {"symtab", "debug", "dynsym", "kernel", NULL};
	static const char *const reasons[] = {"no_object", "unavailable",   "broken",
					      "no_symbol", "kernel_hidden", NULL};
	const struct andiron_metric resolved = {.name = "andiron_symbolize_frames_resolved_total",
						.help = "Frames that got a name, by its source."};
	const struct andiron_metric unresolved = {
		.name = "andiron_symbolize_frames_unresolved_total",
		.help = "Frames that got no name, by the reason."};
	const struct instance *i = self;
	const struct symbolizer *s = &i->symbolizer;

	add_family(sink, resolved, "source", sources, s->totals.resolved);
	add_family(sink, unresolved, "reason", reasons, s->totals.unresolved);
	add_metric(sink, ANDIRON_METRIC_COUNTER, "andiron_symbolize_broken_files_total",
		   "Files that did not parse and were set aside.", s->totals.broken_files);
	add_metric(sink, ANDIRON_METRIC_COUNTER, "andiron_symbolize_unnamed_batches_total",
		   "Batches that went on without names.", i->unnamed_batches);
	add_metric(sink, ANDIRON_METRIC_COUNTER, "andiron_symbolize_kallsyms_reads_total",
		   "How often the list of kernel symbols was read.", s->kernel.reads);
	add_metric(sink, ANDIRON_METRIC_GAUGE, "andiron_symbolize_cache_bytes",
		   "Symbol tables and remembered names, without the kernel's.", s->cache.bytes);
	add_metric(sink, ANDIRON_METRIC_GAUGE, "andiron_symbolize_kernel_bytes",
		   "Memory of the kernel's names.", kernel_bytes(&s->kernel));
}

static const struct andiron_export exports[] = {
	{"receiver", ANDIRON_EXPORT_RECEIVER, 0, "Takes profiles whose frames have no names."}};
static const char *const needs[] = {ANDIRON_OBJECTS_ID, NULL};
static const char *const capabilities[] = {"CAP_SYSLOG", NULL};

static const struct andiron_component symbolize = {
	.size = sizeof(symbolize),
	.flags = ANDIRON_COMPONENT_NAMES,
	.name = "profile.symbolize",
	.summary = "Gives names to native and kernel frames.",
	.options = &symbolize_options,
	.exports = exports,
	.n_exports = 1,
	.needs = needs,
	.capabilities = capabilities,
	.create = symbolize_create,
	.start = symbolize_start,
	.update = symbolize_update,
	.stop = symbolize_stop,
	.destroy = symbolize_destroy,
	.batch = symbolize_batch,
	.metrics = symbolize_metrics,
};

static const struct andiron_component *const components[] = {&symbolize};
const struct andiron_plugin andiron_plugin_v1 = {
	.size = sizeof(andiron_plugin_v1),
	.abi_minor = ANDIRON_ABI_MINOR,
	.name = "symbolize",
	.version = ANDIRON_VERSION,
	.license = "Apache-2.0",
	.components = components,
	.n_components = 1,
};
