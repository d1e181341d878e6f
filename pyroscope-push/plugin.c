/* SPDX-License-Identifier: Apache-2.0 */
/*
 * andiron-pyroscope.so: pyroscope.write. The ABI's verbs over the engine in
 * writer.h.
 */
#include "options.h"
#include "writer.h"

#include <andiron/plugin.h>

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

struct instance {
	struct abi_context context;
	struct writer *writer;
};

static int32_t validate(const struct andiron_host *host, const struct andiron_value *args,
			struct andiron_report *report)
{
	push_check(host, args, report);
	return 0;
}

static int32_t give(const struct andiron_host *host, struct andiron_error *ret_err,
		    const struct error *err, int code)
{
	return err->code ? abi_error(host, ret_err, err) : code;
}

static int32_t create(const struct andiron_host *host, uint64_t id,
		      const struct andiron_value *args, void **ret_self,
		      struct andiron_error *ret_err)
{
	struct instance *self = calloc(1, sizeof(*self));
	struct push_config *config = NULL;
	struct error err = ERROR_NULL;
	int rc = self ? push_config_new(&protocol_pyroscope, args, &config, &err) : -ENOMEM;

	if (rc == 0) {
		self->context = (struct abi_context){host, id};
		rc = writer_new(&self->context, config, &self->writer);
	}
	if (rc) {
		push_config_release(config);
		free(self);
		return give(host, ret_err, &err, rc);
	}
	*ret_self = self;
	return 0;
}

static int32_t start(void *arg, struct andiron_error *ret_err)
{
	struct instance *self = arg;
	struct error err = ERROR_NULL;
	int rc = writer_start(self->writer, &err);

	return give(self->context.host, ret_err, &err, rc);
}

static int32_t update(void *arg, const struct andiron_value *args, struct andiron_error *ret_err)
{
	struct instance *self = arg;
	struct push_config *config;
	struct error err = ERROR_NULL;
	int rc = push_config_new(&protocol_pyroscope, args, &config, &err);

	if (rc)
		return give(self->context.host, ret_err, &err, rc);
	rc = writer_update(self->writer, config, &err);
	if (rc)
		push_config_release(config);
	return give(self->context.host, ret_err, &err, rc);
}

static void batch(void *arg, const struct andiron_batch *b)
{
	writer_batch(((struct instance *)arg)->writer, b);
}

static int32_t drain(void *arg, int64_t deadline_ns)
{
	writer_drain(((struct instance *)arg)->writer, deadline_ns);
	return 0;
}

static void stop(void *arg)
{
	writer_stop(((struct instance *)arg)->writer);
}

static void destroy(void *arg)
{
	struct instance *self = arg;

	writer_free(self->writer);
	free(self);
}

static const struct {
	const char *name, *help;
	uint32_t kind;
	size_t offset; /* of a uint64_t in struct endpoint_counts */
} all_metrics[] = {
	{"pyroscope_write_sent_bytes_total", "Bytes delivered.", ANDIRON_METRIC_COUNTER,
	 offsetof(struct endpoint_counts, sent_bytes)},
	{"pyroscope_write_sent_profiles_total", "Profiles delivered.", ANDIRON_METRIC_COUNTER,
	 offsetof(struct endpoint_counts, sent_profiles)},
	{"pyroscope_write_dropped_bytes_total", "Bytes given up.", ANDIRON_METRIC_COUNTER,
	 offsetof(struct endpoint_counts, dropped_bytes)},
	{"pyroscope_write_dropped_profiles_total", "Profiles given up.", ANDIRON_METRIC_COUNTER,
	 offsetof(struct endpoint_counts, dropped_profiles)},
	{"pyroscope_write_requests_total", "Requests, every try counted.", ANDIRON_METRIC_COUNTER,
	 offsetof(struct endpoint_counts, requests)},
	{"pyroscope_write_retries_total", "Requests set aside to be tried again.",
	 ANDIRON_METRIC_COUNTER, offsetof(struct endpoint_counts, retries)},
	{"pyroscope_write_latency_nanoseconds_total", "Time until the answer, over all requests.",
	 ANDIRON_METRIC_COUNTER, offsetof(struct endpoint_counts, latency_ns)},
	{"pyroscope_write_queued_bytes", "Bytes held, those in flight included.",
	 ANDIRON_METRIC_GAUGE, offsetof(struct endpoint_counts, queued_bytes)},
};

static void metrics(void *arg, const struct andiron_metric_sink *sink)
{
	const struct writer *w = ((struct instance *)arg)->writer;

	for (size_t m = 0; m < sizeof(all_metrics) / sizeof(*all_metrics); m++)
		for (size_t i = 0; i < writer_n_endpoints(w); i++) {
			const struct endpoint *e = writer_endpoint(w, i);
			const char *counts = (const char *)endpoint_counts(e);
			const char *name = endpoint_name(e);
			struct andiron_kv label = {{"endpoint", 8}, {name, strlen(name)}};
			struct andiron_metric metric = {all_metrics[m].name,
							all_metrics[m].help,
							all_metrics[m].kind,
							1,
							&label,
							0};
			uint64_t value;

			memcpy(&value, counts + all_metrics[m].offset, sizeof(value));
			metric.value = (double)value;
			sink->add(sink->self, &metric);
		}
}

static const struct andiron_export exports[] = {
	{"receiver", ANDIRON_EXPORT_RECEIVER, 0, "Takes the profiles that are to be pushed."},
};

static const struct andiron_component write_component = {
	.size = sizeof(write_component),
	.flags = ANDIRON_COMPONENT_WRITER | ANDIRON_COMPONENT_WANTS_NAMES,
	.name = "pyroscope.write",
	.summary = "Pushes profiles to Pyroscope.",
	.options = &push_options,
	.exports = exports,
	.n_exports = 1,
	.validate = validate,
	.create = create,
	.start = start,
	.update = update,
	.drain = drain,
	.stop = stop,
	.destroy = destroy,
	.batch = batch,
	.metrics = metrics,
};

static const struct andiron_component *const components[] = {&write_component};

const struct andiron_plugin andiron_plugin_v1 = {
	.size = sizeof(andiron_plugin_v1),
	.abi_minor = ANDIRON_ABI_MINOR,
	.name = "pyroscope",
	.version = ANDIRON_VERSION,
	.license = "Apache-2.0",
	.components = components,
	.n_components = 1,
};
