/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-scrape.so: pyroscope.scrape. The ABI's verbs over the engine in scraper.h. */
#include "abi/value.h"
#include "base/arena.h"
#include "client/loop.h"
#include "scrape/metrics.h"
#include "scrape/options.h"
#include "scrape/scraper.h"

#include <andiron/plugin.h>
#include <andiron/target-processes.h>

#include <errno.h>
#include <stdlib.h>

struct instance {
	struct abi_context context;
	struct scraper *scraper;
};

static int32_t validate(const struct andiron_host *host, const struct andiron_value *args,
			struct andiron_report *report)
{
	settings_check(host, args, report);
	return 0;
}

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret_self, struct andiron_error *err)
{
	struct instance *in = calloc(1, sizeof(*in));
	struct error cause = ERROR_NULL;
	struct settings *settings;
	int r = in ? settings_new(args, &settings, &cause) : -ENOMEM;

	if (r == 0) {
		in->context = (struct abi_context){host, instance};
		r = scraper_new(&in->context, settings, &in->scraper);
	}
	if (r < 0) {
		free(in);
		return abi_error(host, err, &cause, r);
	}
	*ret_self = in;
	return 0;
}

static int32_t start(void *self, struct andiron_error *err)
{
	struct instance *in = self;
	struct error cause = ERROR_NULL;

	return abi_error(in->context.host, err, &cause, scraper_start(in->scraper, &cause));
}

static int32_t update(void *self, const struct andiron_value *args, struct andiron_error *err)
{
	struct instance *in = self;
	struct error cause = ERROR_NULL;
	struct settings *settings;
	int r = settings_new(args, &settings, &cause);

	if (r < 0)
		return abi_error(in->context.host, err, &cause, r);
	scraper_update(in->scraper, settings);
	return 0;
}

static int32_t drain(void *self, int64_t deadline_ns)
{
	scraper_drain(((struct instance *)self)->scraper);
	return 0;
}

static void stop(void *self)
{
	scraper_stop(((struct instance *)self)->scraper);
}

static void destroy(void *self)
{
	struct instance *in = self;

	scraper_free(in->scraper);
	free(in);
}

static void targets(void *self, const char *port, const struct andiron_targets *change)
{
	scraper_targets(((struct instance *)self)->scraper, change);
}

static void metrics(void *self, const struct andiron_metric_sink *sink)
{
	const struct scraper *scraper = ((struct instance *)self)->scraper;
	struct scraper_counts counts = scraper_counts(scraper);

	metrics_add(&counts, sink);
	client_loop_metrics(scraper_loop(scraper), sink);
}

struct listing {
	const struct andiron_target_processes_sink *sink;
	bool failed;
};

/* A scraped target has no process here; what it has is why it brings nothing. */
static void add_target(void *context, const struct target_row *row, const char *why)
{
	struct listing *listing = context;
	struct andiron_kv *labels = calloc(row->n_labels + 1, sizeof(*labels));
	struct andiron_target_processes_row target = {
		.labels = labels,
		.n_labels = row->n_labels,
		.why = abi_str_of(str_of(why)),
	};

	listing->failed |= !labels;
	for (uint32_t i = 0; labels && i < row->n_labels; i++)
		labels[i] = (struct andiron_kv){abi_str_of(row->labels[i].name),
						abi_str_of(row->labels[i].value)};
	if (labels)
		listing->sink->add(listing->sink->self, &target);
	free(labels);
}

static int32_t each_target(void *self, const struct andiron_target_processes_sink *sink)
{
	struct listing listing = {.sink = sink};
	int r = scraper_each(((struct instance *)self)->scraper, add_target, &listing);

	return r == 0 && listing.failed ? -ENOMEM : r;
}

static const void *extension(void *self, const char *id)
{
	static const struct andiron_target_processes table = {.size = sizeof(table),
							      .each = each_target};

	return strcmp(id, ANDIRON_TARGET_PROCESSES_ID) == 0 ? &table : NULL;
}

static const char *const offers[] = {ANDIRON_TARGET_PROCESSES_ID, NULL};

static const struct andiron_component scrape = {
	.size = sizeof(scrape),
	.name = "pyroscope.scrape",
	.summary = "Fetches pprof profiles of targets over HTTP.",
	.options = &scrape_options,
	.offers = offers,
	.validate = validate,
	.create = create,
	.start = start,
	.update = update,
	.drain = drain,
	.stop = stop,
	.destroy = destroy,
	.targets = targets,
	.metrics = metrics,
	.extension = extension,
	.sender = client_serve,
};

ANDIRON_PLUGIN("scrape", ANDIRON_VERSION, "Apache-2.0", &scrape);
