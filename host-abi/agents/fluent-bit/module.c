/* SPDX-License-Identifier: Apache-2.0 */
/* in_andiron.so, an input of Fluent Bit: runs a configuration of andiron's through libandiron, and
 * gives records of CPU time by service and target, and of what andiron counts of itself.
 *
 * It speaks the interface that Fluent Bit has for plugins written in Go: functions found by name,
 * and three structures that have only grown at their ends, from 2.2 to 5.1. The interface for
 * plugins in C is a structure without size or version, whose members have moved three times in
 * those releases, so a file would serve one of them. The price is that the signals of metrics and
 * profiles are out of reach: an input of this kind gives records.
 *
 * The interface hands the instance to some functions by a pointer that has not the same place in
 * all releases. So there is one instance, and a second is refused. */
#include "agents/fluent-bit/records.h"
#include "agents/kit/metric-choice.h"
#include "agents/kit/profiler.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* Fluent Bit's, as far as this file needs them: flb_plugin_proxy_def, flb_api and
 * flbgo_input_plugin. */
#define INPUT_PLUGIN 1
#define PROXY_GO     11
#define LOG_ERROR    1

struct definition {
	int type;
	int proxy;
	int flags;
	char *name;
	char *description;
};

struct api {
	const char *(*output_property)(const char *key, void *instance);
	const char *(*input_property)(const char *key, void *instance);
	void *unused[2];
	void (*log)(int level, const char *file, int line, const char *format, ...);
};

struct input {
	char *name;
	const struct api *api;
	void *instance;
};

static struct {
	const struct api *api;
	struct andiron *andiron;
	struct cpu_usage *usage;
	struct records records;
	char *labels[16];
	size_t n_labels;
	int64_t interval_ns, metrics_ns; /* when metrics were read last */
} module;

int FLBPluginRegister(struct definition *definition);
int FLBPluginInit(struct input *input);
int FLBPluginInputCallback(void **ret_data, size_t *ret_size);
int FLBPluginInputCleanupCallback(void *data);
int FLBPluginExit(void);

static void say(int level, const char *component, const char *line)
{
	module.api->log(level, NULL, 0, "[input:andiron] %s%s%s", component,
			component[0] ? ": " : "", line);
}

/* Fluent Bit's levels are andiron's, one higher. */
static void on_log(void *context, uint32_t level, const char *component, const char *line)
{
	say((int)level + LOG_ERROR, component, line);
}

static void on_sum(void *context, const struct cpu_usage_sum *sum)
{
	records_add_cpu(&module.records, sum);
}

static int32_t on_profile(void *context, const struct andiron_profile *profile)
{
	return cpu_usage_add(module.usage, profile->batch, on_sum, NULL);
}

static const char *property(const struct input *input, const char *key)
{
	const char *value = input->api->input_property(key, input->instance);

	return value && value[0] ? value : NULL;
}

/* A whole number of that range, or `usual` where there is none; 0: it is something else. */
static uint64_t number(const struct input *input, const char *key, uint64_t usual, uint64_t most)
{
	const char *text = property(input, key);
	uint64_t value = usual;
	char line[128];

	if (text && (!str_u64(str_of(text), &value) || value < 1 || value > most)) {
		snprintf(line, sizeof(line), "%s is a whole number from 1 to %llu", key,
			 (unsigned long long)most);
		say(LOG_ERROR, "", line);
		return 0;
	}
	return value;
}

/* "a,b": false when memory is short or there are too many. */
static bool read_labels(const char *text)
{
	struct str rest = str_of(text);

	while (rest.n > 0) {
		struct str label = str_trim(str_cut(&rest, ','));

		if (module.n_labels == sizeof(module.labels) / sizeof(module.labels[0]))
			return false;
		module.labels[module.n_labels] = str_dup(label);
		if (!module.labels[module.n_labels++])
			return false;
	}
	return true;
}

static int open_and_start(const struct input *input, uint64_t seconds, char **ret_text)
{
	const struct profiler_options options = {
		.consumer = "fluent_bit",
		.config = property(input, "config"),
		.interval_ms = seconds * 1000,
		.take = on_profile,
		.embed = {.log_level = ANDIRON_LOG_INFO,
			  .plugin_dirs = property(input, "plugin_dirs"),
			  .worker = property(input, "worker"),
			  .log = on_log},
	};
	int r = profiler_open(&options, &module.andiron, ret_text);

	if (r < 0)
		return r;
	andiron_text_free(*ret_text);
	*ret_text = NULL;
	r = andiron_start(module.andiron, ret_text);
	return r == -EIO ? 0 : r; /* what has failed is said, and the rest runs */
}

static void close_all(void)
{
	andiron_close(module.andiron);
	cpu_usage_free(module.usage);
	records_fini(&module.records);
	while (module.n_labels > 0)
		free(module.labels[--module.n_labels]);
	memset(&module, 0, sizeof(module));
}

static int begin(const struct input *input)
{
	uint64_t seconds = number(input, "interval_sec", 10, 3600);
	uint64_t series = number(input, "max_series", 1000, 100000);
	char *text = NULL;
	int r = seconds && series ? 0 : -EINVAL;

	if (r == 0 && !read_labels(property(input, "target_labels")))
		r = -ENOMEM;
	module.interval_ns = (int64_t)seconds * NS_PER_SEC;
	module.usage = cpu_usage_new(module.labels, module.n_labels, (uint32_t)series);
	if (r == 0)
		r = module.usage ? open_and_start(input, seconds, &text) : -ENOMEM;
	if (text || r < 0)
		say(LOG_ERROR, "", text ? text : strerror(-r));
	andiron_text_free(text);
	return r;
}

EXPORT int FLBPluginRegister(struct definition *definition)
{
	definition->type = INPUT_PLUGIN;
	definition->proxy = PROXY_GO;
	definition->flags = 0;
	definition->name = strdup("andiron"); /* Fluent Bit frees both */
	definition->description = strdup("Continuous profiling: CPU time by service and target");
	return definition->name && definition->description ? 0 : -1;
}

/* Positive for success; else Fluent Bit does not start. */
EXPORT int FLBPluginInit(struct input *input)
{
	if (module.api) {
		say(LOG_ERROR, "", "there is one input of andiron's already, and no room for two");
		return -1;
	}
	module.api = input->api;
	records_init(&module.records);
	if (begin(input) == 0)
		return 1;
	close_all();
	return -1;
}

static void add_metrics(int64_t now)
{
	struct exposition x = {0};
	struct exposition_sample sample;
	char *text = NULL;

	if (andiron_read(module.andiron, ANDIRON_READ_METRICS, &text) == 0)
		x.rest = str_of(text);
	while (exposition_next(&x, &sample))
		if (metric_is_usual(sample.name))
			records_add_metric(&module.records, &sample, now);
	andiron_text_free(text);
	module.metrics_ns = now;
}

/* Each second. */
EXPORT int FLBPluginInputCallback(void **ret_data, size_t *ret_size)
{
	int64_t now = clock_real();

	*ret_data = NULL;
	*ret_size = 0;
	if (now - module.metrics_ns >= module.interval_ns || now < module.metrics_ns)
		add_metrics(now);
	*ret_data = records_take(&module.records, ret_size);
	return 1;
}

EXPORT int FLBPluginInputCleanupCallback(void *data)
{
	free(data);
	return 1;
}

EXPORT int FLBPluginExit(void)
{
	if (module.andiron)
		andiron_stop(module.andiron, 5 * NS_PER_SEC, NULL);
	if (module.api)
		close_all();
	return 1;
}
