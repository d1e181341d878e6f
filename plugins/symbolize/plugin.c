/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-symbolize.so: profile.symbolize. A batch goes on with names, or as it came where naming
 * it fails: missing names are a nuisance, missing samples a lie. */
#include "symbolize/parser/sandboxed-parser.h"
#include "symbolize/options.h"
#include "symbolize/symbolizer.h"

#include "abi/batch-build.h"
#include "abi/log.h"
#include "base/clock.h"

#include <andiron/plugin.h>

#include <errno.h>
#include <stdlib.h>

struct instance {
	struct abi_context context;
	struct symbolizer symbolizer;
	struct sandboxed_parser parser;
	struct fetch fetch;
	uint64_t unnamed_batches;
	bool kernel_hidden;
};

static void file_aside(void *context, const struct andiron_str *path, bool all,
		       const struct error *why)
{
	const struct instance *i = context;

	abi_log(&i->context, ANDIRON_LOG_WARN, "%s from %.*s: %s; %s set aside",
		all ? "no names" : "not all names and lines", (int)path->len, path->ptr, why->text,
		all ? "it is" : "these are");
}

static int open_fetched(void *self, struct str build_id)
{
	return fetch_open(&((const struct instance *)self)->fetch, build_id);
}

static void want(void *self, struct str build_id, int64_t now_ns)
{
	fetch_want(&((struct instance *)self)->fetch, build_id, now_ns);
}

/* What is remembered was said without the file that has come. */
static void arrived(void *context)
{
	cache_clear(&((struct instance *)context)->symbolizer.cache);
}

static int32_t symbolize_create(const struct andiron_host *host, uint64_t instance,
				const struct andiron_value *args, void **ret_self,
				struct andiron_error *err)
{
	const struct symbolizer_settings settings = symbolize_settings(args);
	struct andiron_extension objects, subprocess;
	struct instance *i;
	int32_t r = host->extension(instance, ANDIRON_OBJECTS_ID, &objects);

	if (r < 0)
		return r;
	i = calloc(1, sizeof(*i));
	if (!i)
		return -ENOMEM;
	i->context = (struct abi_context){host, instance};
	symbolizer_init(&i->symbolizer, &objects, &settings, file_aside, i);
	/* A host that has no processes to give parses here. */
	i->parser = SANDBOXED_PARSER_NULL;
	if (host->extension(instance, ANDIRON_SUBPROCESS_ID, &subprocess) == 0) {
		i->parser.service = subprocess.table;
		i->parser.self = subprocess.self;
		i->parser.instance = instance;
		i->symbolizer.port = (struct parser_port){sandboxed_parser_ask, &i->parser};
	}
	fetch_init(&i->fetch, &i->context, arrived, i);
	i->symbolizer.source = (struct symbolizer_source){open_fetched, want, i};
	if (symbolize_fetch(args, &i->fetch) < 0) {
		symbolizer_fini(&i->symbolizer);
		free(i);
		return -ENOMEM;
	}
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
	const struct symbolizer_settings settings = symbolize_settings(args);
	struct instance *i = self;

	symbolizer_set(&i->symbolizer, &settings);
	return symbolize_fetch(args, &i->fetch);
}

static void symbolize_stop(void *self)
{
}

static void symbolize_destroy(void *self)
{
	struct instance *i = self;

	symbolizer_fini(&i->symbolizer);
	sandboxed_parser_stop(&i->parser);
	fetch_fini(&i->fetch);
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
	int r = symbolizer_run_on_thread(&i->symbolizer, batch, clock_mono(), &named);

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
	fetch_start(&i->fetch);
}

static void symbolize_metrics(void *self, const struct andiron_metric_sink *sink)
{
	const struct instance *i = self;

	symbolize_count(&i->symbolizer, i->unnamed_batches, sink);
}

static const struct andiron_export exports[] = {
	{"receiver", ANDIRON_EXPORT_RECEIVER, 0, "Takes profiles whose frames have no names."}};
static const char *const needs[] = {ANDIRON_OBJECTS_ID, NULL};
static const char *const capabilities[] = {"CAP_SYSLOG", NULL};

static const struct andiron_component symbolize = {
	.size = sizeof(symbolize),
	.flags = ANDIRON_COMPONENT_SYMBOLIZER,
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
	.subprocess = sandboxed_parser_serve,
};

ANDIRON_PLUGIN("symbolize", ANDIRON_VERSION, "Apache-2.0", &symbolize);
