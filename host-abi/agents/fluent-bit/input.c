/* SPDX-License-Identifier: Apache-2.0 */
/* in_andiron.so, an input of Fluent Bit: runs a configuration of andiron's through libandiron, and
 * gives profiles, metrics of andiron itself, and records of CPU time by service and target.
 *
 * It speaks the interface that Fluent Bit has for plugins written in Go, since that has not changed
 * (docs/decisions/0110-fluent-bit.md). An input of this kind returns records; profiles and metrics
 * it hands over by functions that Fluent Bit exports (host.h), within its callback: the pipeline
 * takes them from the input's own thread alone.
 *
 * The interface hands the instance to some functions by a pointer that has not the same place in
 * all releases. So there is one instance, and a second is refused. */
#include "agents/fluent-bit/host.h"
#include "agents/fluent-bit/profiles.h"
#include "agents/fluent-bit/records.h"
#include "agents/kit/metric-choice.h"
#include "agents/kit/profiler.h"
#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define EXPORT __attribute__((visibility("default")))

/* How long a batch waits for the callback, which comes each second unless the input is paused. */
#define PATIENCE_NS (10 * NS_PER_SEC)

enum emitted { PROFILES = 1, METRICS = 2, RECORDS = 4 };

static struct {
	struct host_handle host;
	unsigned int emit; /* enum emitted */
	struct andiron *andiron;
	struct cpu_usage *usage;
	struct records records;
	struct handover handover;
	struct times times; /* of profiles; on_profile's own */
	char *labels[16];
	size_t n_labels;
	int64_t interval_ns, metrics_ns; /* when metrics were read last */
} module;

int FLBPluginRegister(struct host_definition *definition);
int FLBPluginInit(struct host_plugin *input);
int FLBPluginInputCallback(void **ret_data, size_t *ret_size);
int FLBPluginInputCleanupCallback(void *data);
int FLBPluginExit(void);

/* Fluent Bit's levels are andiron's, one higher. */
static void on_log(void *context, uint32_t level, const char *component, const char *line)
{
	host_say(&module.host, (int)level + HOST_LOG_ERROR, component, line);
}

static void on_sum(void *context, const struct cpu_usage_sum *sum)
{
	records_add_cpu(&module.records, sum);
}

static int give_profiles(const struct andiron_batch *batch)
{
	struct profiles p = {0};
	int r = profiles_add(&p, &module.times, batch);

	handover_lose(&module.handover, p.lost);
	if (r == 0 && p.requests.n > 0)
		r = handover_give(&module.handover, &p, PATIENCE_NS);
	profiles_free(&p);
	return r;
}

static int32_t on_profile(void *context, const struct andiron_profile *profile)
{
	int r = 0;

	if (module.emit & RECORDS)
		r = cpu_usage_add(module.usage, profile->batch, on_sum, NULL);
	if (r == 0 && (module.emit & PROFILES))
		r = give_profiles(profile->batch);
	return r;
}

static int refuse(int code, const char *why)
{
	host_say(&module.host, HOST_LOG_ERROR, "", why);
	return code;
}

/* "a,b" */
static int read_labels(const char *text)
{
	struct str rest = str_of(text);

	while (rest.n > 0) {
		struct str label = str_trim(str_cut(&rest, ','));

		if (module.n_labels == sizeof(module.labels) / sizeof(module.labels[0]))
			return refuse(-E2BIG, "target_labels has more than 16 names");
		module.labels[module.n_labels] = str_dup(label);
		if (!module.labels[module.n_labels++])
			return refuse(-ENOMEM, strerror(ENOMEM));
	}
	return 0;
}

static int check_emit(void)
{
	if ((module.emit & PROFILES) && !host_has_profiles())
		return refuse(-ENOTSUP, "emit has profiles, and this Fluent Bit has no such signal "
					"that andiron can fill: they need 5.0 or later; leave "
					"them out");
	if ((module.emit & METRICS) && !host_has_metrics())
		return refuse(-ENOTSUP, "emit has metrics, and this Fluent Bit was built without "
					"what reads them, which its input prometheus_scrape "
					"brings; leave them out");
	return 0;
}

/* "profiles,records"; NULL: what this Fluent Bit has. */
static int read_emit(const char *text)
{
	static const char *const words[] = {"profiles", "metrics", "records"};
	const char *usual = host_has_profiles() ? "profiles" : "metrics,records";
	struct str rest = str_of(text ? text : usual);

	while (rest.n > 0) {
		struct str word = str_trim(str_cut(&rest, ','));
		unsigned int i = 0;

		while (i < 3 && !str_eq(word, str_of(words[i])))
			i++;
		if (i == 3)
			return refuse(-EINVAL, "emit is one or more of profiles, metrics and "
					       "records, apart by commas");
		module.emit |= 1U << i;
	}
	if (!host_has_metrics() && !text)
		module.emit &= ~(unsigned int)METRICS;
	return check_emit();
}

static int open_and_start(uint64_t seconds, char **ret_text)
{
	const struct host_handle *h = &module.host;
	const struct profiler_options options = {
		.consumer = "fluent_bit",
		.config = host_property(h, "config"),
		.interval_ms = seconds * 1000,
		.names = module.emit & PROFILES,
		.take = on_profile,
		.embed = {.log_level = ANDIRON_LOG_INFO,
			  .plugin_dirs = host_property(h, "plugin_dirs"),
			  .worker = host_property(h, "worker"),
			  .log = on_log,
			  .answers = HOST_ANSWERS},
	};
	int r = profiler_open(&options, &module.andiron, ret_text);

	if (r < 0)
		return r;
	host_warn(h, ret_text);
	r = andiron_start(module.andiron, ret_text);
	return r == -EIO ? 0 : r; /* what has failed is said, and the rest runs */
}

static void close_all(void)
{
	andiron_close(module.andiron);
	cpu_usage_free(module.usage);
	records_fini(&module.records);
	handover_fini(&module.handover);
	while (module.n_labels > 0)
		free(module.labels[--module.n_labels]);
	memset(&module, 0, sizeof(module));
}

static int begin(void)
{
	const struct host_handle *h = &module.host;
	uint64_t seconds = host_number(h, "interval_sec", 10, 3600);
	uint64_t series = host_number(h, "max_series", 1000, 100000);
	char *text = NULL;
	int r = seconds && series ? read_emit(host_property(h, "emit")) : -EINVAL;

	if (r == 0)
		r = read_labels(host_property(h, "target_labels"));
	if (r < 0)
		return r; /* the log has why */
	module.interval_ns = (int64_t)seconds * NS_PER_SEC;
	module.usage = cpu_usage_new(module.labels, module.n_labels, (uint32_t)series);
	r = module.usage ? open_and_start(seconds, &text) : -ENOMEM;
	if (text || r < 0)
		host_say(h, HOST_LOG_ERROR, "", text ? text : strerror(-r));
	andiron_text_free(text);
	return r;
}

EXPORT int FLBPluginRegister(struct host_definition *definition)
{
	definition->type = HOST_INPUT_PLUGIN;
	definition->proxy = HOST_PROXY_GO;
	definition->flags = 0;
	definition->name = strdup("andiron"); /* Fluent Bit frees both */
	definition->description = strdup("Continuous profiling: CPU time by service and target");
	return definition->name && definition->description ? 0 : -1;
}

/* Positive for success; else Fluent Bit does not start. */
EXPORT int FLBPluginInit(struct host_plugin *input)
{
	uint64_t seed = 0;

	if (module.host.property) {
		host_say(&module.host, HOST_LOG_ERROR, "",
			 "there is one input of andiron's already, and no room for two");
		return -1;
	}
	module.host = (struct host_handle){*input->api, input->instance, input->api->input_property,
					   "input:andiron"};
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = (uint64_t)clock_real();
	module.times = times_init(seed);
	records_init(&module.records);
	handover_init(&module.handover);
	if (begin() == 0)
		return 1;
	close_all();
	return -1;
}

static void add_metric_records(struct str text, int64_t now)
{
	struct exposition x = {.rest = text};
	struct exposition_sample sample;

	while (exposition_next(&x, &sample))
		if (metric_is_usual(sample.name))
			records_add_metric(&module.records, &sample, now);
}

/* With the time behind each sample: without one Fluent Bit says 1970. */
static void add_timed_metrics(struct str text, int64_t now)
{
	struct buf timed = BUF_NULL;

	while (text.n > 0) {
		struct str line = str_cut(&text, '\n');

		buf_str_append(&timed, line);
		if (line.n > 0 && line.p[0] != '#')
			buf_printf(&timed, " %" PRId64, now / NS_PER_MSEC);
		buf_putc(&timed, '\n');
	}
	if (!timed.failed && !host_add_metrics(module.host.instance, buf_str(&timed)))
		host_say(&module.host, HOST_LOG_WARN, "",
			 "Fluent Bit has not taken the metrics: its pipeline is full, or cannot "
			 "read them");
	buf_free(&timed);
}

/* Where they cannot be read now, the next callback tries again. */
static void add_metrics(int64_t now)
{
	bool is_due = now - module.metrics_ns >= module.interval_ns || now < module.metrics_ns;
	char *text = NULL;

	if (!is_due || !(module.emit & (METRICS | RECORDS)))
		return;
	if (andiron_read(module.andiron, ANDIRON_READ_METRICS, &text) == 0 && text) {
		module.metrics_ns = now;
		if (module.emit & METRICS)
			add_timed_metrics(str_of(text), now);
		if (module.emit & RECORDS)
			add_metric_records(str_of(text), now);
	}
	andiron_text_free(text);
}

/* A pipeline that is full takes a second to say so, each time. */
static int add_profiles(void *context, const struct profiles *p)
{
	vec_each (&p->requests, request)
		if (!host_add_profiles(module.host.instance, buf_str(request)))
			return -EAGAIN;
	return 0;
}

static void say_losses(void)
{
	uint64_t lost[SERIES_N_LOSSES];
	char line[512];

	handover_take_lost(&module.handover, lost);
	for (enum series_loss i = 0; i < SERIES_N_LOSSES; i++) {
		const char *advice = series_loss_advice(i);

		if (!lost[i])
			continue;
		snprintf(line, sizeof(line), "profiles lack %" PRIu64 " samples: %s%s%s", lost[i],
			 series_loss_word(i), advice ? ": " : "", advice ? advice : "");
		host_say(&module.host, HOST_LOG_WARN, "", line);
	}
}

/* Each second. */
EXPORT int FLBPluginInputCallback(void **ret_data, size_t *ret_size)
{
	int64_t now = clock_real();

	*ret_data = NULL;
	*ret_size = 0;
	handover_take(&module.handover, add_profiles, NULL);
	say_losses();
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
	if (!module.host.property)
		return 1;
	handover_close(&module.handover);
	if (module.andiron)
		andiron_stop(module.andiron, 5 * NS_PER_SEC, NULL);
	close_all();
	return 1;
}
