/* SPDX-License-Identifier: Apache-2.0 */
/* andiron.so, a plugin of collectd 5: runs a configuration of andiron's through libandiron, and
 * dispatches CPU time by service and target, what andiron counts of itself, and what it costs.
 *
 * collectd reads its configuration before it forks into the background, and calls init after. An
 * instance does not live through a fork, so the first callback only tries the configuration, since
 * what it refuses keeps collectd from starting; the instance that runs is opened by the second. CPU
 * time is dispatched when a batch comes, at the time at which that ends: a rate read at collectd's
 * own times would rise and fall, since its interval is another than the sampler's. */
#include "agents/collectd/settings.h"
#include "agents/collectd/values.h"
#include "agents/kit/cpu-usage.h"
#include "agents/kit/own-cost.h"
#include "agents/kit/profiler.h"
#include "base/buf.h"
#include "base/clock.h"

#include <collectd/core/daemon/plugin.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

/* collectd's callbacks have no argument that could carry this. */
static struct {
	bool configured;
	struct settings settings;
	struct andiron *andiron;
	struct cpu_usage *usage;
	struct own_cost cost;
	atomic_bool ends; /* collectd takes no values any more */
} module;

/* --- What andiron says, in collectd's log --- */

/* A line each, since collectd cuts off what is longer than a kilobyte. Frees the text. */
static void log_lines(int severity, char *text, const char *without)
{
	struct str rest = str_of(text);

	while (rest.n > 0) {
		struct str line = str_cut(&rest, '\n');

		if (line.n > 0)
			plugin_log(severity, "andiron: %.*s", STR_FMT(line));
	}
	if (!text && without)
		plugin_log(severity, "andiron: %s", without);
	andiron_text_free(text);
}

static void on_log(void *context, uint32_t level, const char *component, const char *line)
{
	static const int severities[] = {LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG};

	plugin_log(severities[level < 4 ? level : 3], "andiron: %s%s%s", component,
		   component[0] ? ": " : "", line);
}

static int refuse(int r, char *text)
{
	log_lines(LOG_ERR, text, strerror(-r));
	return -1;
}

/* --- Profiles --- */

static void on_sum(void *context, const struct cpu_usage_sum *sum)
{
	if (!module.ends)
		values_put_cpu(sum);
}

static int32_t on_profile(void *context, const struct andiron_profile *profile)
{
	return cpu_usage_add(module.usage, profile->batch, on_sum, NULL);
}

/* --- An instance --- */

/* The folders, apart by ":"; NULL where there are none, or memory is short. */
static char *join(const settings_texts *folders)
{
	struct buf b = BUF_NULL;

	vec_each (folders, folder)
		buf_printf(&b, "%s%s", b.n > 0 ? ":" : "", *folder);
	return b.n > 0 ? buf_take(&b) : NULL;
}

/* 0, or a negative errno, and a text either way. */
static int open_loaded(struct andiron **ret, char **ret_text)
{
	const struct settings *s = &module.settings;
	char *folders = join(&s->plugin_dirs);
	const struct profiler_options options = {
		.consumer = "collectd",
		.config = s->config,
		.interval_ms = CDTIME_T_TO_MS(plugin_get_interval()),
		.take = on_profile,
		.embed = {.log_level = s->log_level,
			  .plugin_dirs = folders,
			  .worker = s->worker,
			  .queue_bytes = (uint64_t)s->queue_megabytes << 20,
			  .workers = s->workers,
			  .log = on_log},
	};
	int r = s->plugin_dirs.n > 0 && !folders ? -ENOMEM : profiler_open(&options, ret, ret_text);

	free(folders);
	return r;
}

/* --- collectd's callbacks --- */

static int on_config(oconfig_item_t *block)
{
	struct andiron *a = NULL;
	struct error err = ERROR_NULL;
	char *text = NULL;
	int r;

	if (!module.configured)
		settings_init(&module.settings);
	module.configured = true;
	r = settings_read(&module.settings, block, &err);
	if (r < 0) {
		plugin_log(LOG_ERR, "andiron: %s", err.text[0] ? err.text : strerror(-r));
		return -1;
	}
	r = open_loaded(&a, &text);
	andiron_close(a);
	if (r < 0)
		return refuse(r, text);
	andiron_text_free(text); /* warnings, which init says */
	return 0;
}

static int on_read(user_data_t *data)
{
	char *text = NULL;
	int r = andiron_read(module.andiron, ANDIRON_READ_METRICS, &text);

	if (r == 0 && text)
		values_put_metrics(text, &module.settings.metrics);
	andiron_text_free(text);
	if (own_cost_look(&module.cost) == 0)
		values_put_own_cost(&module.cost);
	return r == 0 || r == -EBUSY ? 0 : -1;
}

static void end(void)
{
	andiron_close(module.andiron);
	module.andiron = NULL;
	cpu_usage_free(module.usage);
	module.usage = NULL;
	own_cost_free(&module.cost);
	settings_free(&module.settings);
}

/* Components that fail, as the sampler without its privileges, are said, and stay to be seen as
 * gauge-component_healthy; the others run. */
static int begin(void)
{
	const struct settings *s = &module.settings;
	char *text = NULL;
	int r;

	module.usage = cpu_usage_new(s->target_labels.p, s->target_labels.n, s->max_series);
	r = module.usage ? open_loaded(&module.andiron, &text) : -ENOMEM;
	if (r < 0)
		return refuse(r, text);
	log_lines(LOG_WARNING, text, NULL);
	text = NULL;
	r = andiron_start(module.andiron, &text);
	if (r < 0)
		log_lines(LOG_ERR, text, strerror(-r));
	if (r < 0 && r != -EIO)
		return -1;
	return plugin_register_complex_read(NULL, "andiron", on_read, 0, NULL);
}

static int on_init(void)
{
	if (module.andiron)
		return 0;
	if (!module.configured)
		settings_init(&module.settings);
	module.configured = true;
	if (begin() == 0)
		return 0;
	end();
	return -1;
}

static int on_shutdown(void)
{
	char *text = NULL;
	int r;

	module.ends = true;
	if (!module.andiron)
		return 0;
	r = andiron_stop(module.andiron, module.settings.stop_seconds * NS_PER_SEC, &text);
	if (r < 0)
		log_lines(LOG_WARNING, text, strerror(-r));
	end();
	return 0;
}

__attribute__((visibility("default"))) void module_register(void)
{
	plugin_register_complex_config("andiron", on_config);
	plugin_register_init("andiron", on_init);
	plugin_register_shutdown("andiron", on_shutdown);
}
