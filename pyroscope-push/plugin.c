/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-pyroscope.so: pyroscope.write, parca.write and otlp.write, which share all but their
 * protocol. The ABI's verbs over the engine in writer.h. */
#include "pyroscope-push/metrics.h"
#include "pyroscope-push/options.h"
#include "pyroscope-push/writer.h"

#include <andiron/plugin.h>

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

struct instance {
	struct abi_context context;
	const struct protocol *protocol;
	struct writer *writer;
};

static int32_t create(const struct protocol *protocol, const struct abi_context *context,
		      const struct andiron_value *args, void **ret_self,
		      struct andiron_error *ret_err)
{
	struct instance *self = calloc(1, sizeof(*self));
	struct push_config *config = NULL;
	struct error err = ERROR_NULL;
	int rc = self ? push_config_new(protocol, args, &config, &err) : -ENOMEM;

	if (rc == 0) {
		self->protocol = protocol;
		self->context = *context;
		rc = writer_new(&self->context, config, &self->writer);
	}
	if (rc) {
		push_config_release(config);
		free(self);
		return abi_error(context->host, ret_err, &err, rc);
	}
	*ret_self = self;
	return 0;
}

static int32_t start(void *arg, struct andiron_error *ret_err)
{
	struct instance *self = arg;
	struct error err = ERROR_NULL;
	int rc = writer_start(self->writer, &err);

	return abi_error(self->context.host, ret_err, &err, rc);
}

static int32_t update(void *arg, const struct andiron_value *args, struct andiron_error *ret_err)
{
	struct instance *self = arg;
	struct push_config *config;
	struct error err = ERROR_NULL;
	int rc = push_config_new(self->protocol, args, &config, &err);

	if (rc)
		return abi_error(self->context.host, ret_err, &err, rc);
	rc = writer_update(self->writer, config, &err);
	if (rc)
		push_config_release(config);
	return abi_error(self->context.host, ret_err, &err, rc);
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

static void metrics(void *arg, const struct andiron_metric_sink *sink)
{
	metrics_add(((struct instance *)arg)->writer, sink);
}

static const struct andiron_export exports[] = {
	{"receiver", ANDIRON_EXPORT_RECEIVER, 0, "Takes the profiles that are to be pushed."},
};

/* A writer is its protocol, its arguments and what they all share. */
#define WRITER(word, summary_)                                                                     \
	static int32_t validate_##word(const struct andiron_host *host,                            \
				       const struct andiron_value *args,                           \
				       struct andiron_report *report)                              \
	{                                                                                          \
		push_check(&protocol_##word, host, args, report);                                  \
		return 0;                                                                          \
	}                                                                                          \
	static int32_t create_##word(const struct andiron_host *host, uint64_t id,                 \
				     const struct andiron_value *args, void **ret_self,            \
				     struct andiron_error *err)                                    \
	{                                                                                          \
		return create(&protocol_##word, &(struct abi_context){host, id}, args, ret_self,   \
			      err);                                                                \
	}                                                                                          \
	static const struct andiron_component component_##word = {                                 \
		.size = sizeof(component_##word),                                                  \
		.flags = ANDIRON_COMPONENT_WRITER | ANDIRON_COMPONENT_WANTS_NAMES,                 \
		.name = #word ".write",                                                            \
		.summary = (summary_),                                                             \
		.options = &word##_options,                                                        \
		.exports = exports,                                                                \
		.n_exports = 1,                                                                    \
		.validate = validate_##word,                                                       \
		.create = create_##word,                                                           \
		.start = start,                                                                    \
		.update = update,                                                                  \
		.drain = drain,                                                                    \
		.stop = stop,                                                                      \
		.destroy = destroy,                                                                \
		.batch = batch,                                                                    \
		.metrics = metrics,                                                                \
	}

WRITER(pyroscope, "Pushes profiles to Pyroscope.");
WRITER(parca, "Pushes profiles to Parca.");
WRITER(otlp, "Pushes profiles by OTLP, to a Collector or whoever takes them.");

ANDIRON_PLUGIN("pyroscope", ANDIRON_VERSION, "Apache-2.0", &component_pyroscope, &component_parca,
	       &component_otlp);
