/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-pyroscope.so: pyroscope.write, parca.write and otlp.write, which share all but their
 * protocol. The ABI's verbs over the engine in writer.h. */
#include "client/loop.h"
#include "pyroscope-push/metrics.h"
#include "pyroscope-push/options.h"
#include "pyroscope-push/writer.h"

#include <andiron/plugin.h>

#include <errno.h>
#include <stddef.h>

static int32_t create(const struct protocol *protocol, const struct abi_context *context,
		      const struct andiron_value *args, void **ret_self,
		      struct andiron_error *ret_err)
{
	struct push_config *config;
	struct error err = ERROR_NULL;
	struct writer *writer;
	int rc = push_config_new(protocol, args, &config, &err);

	if (rc)
		return abi_error(context->host, ret_err, &err, rc);
	rc = writer_new(context, config, &writer);
	if (rc)
		push_config_release(config);
	else
		*ret_self = writer;
	return rc;
}

static int32_t start(void *self, struct andiron_error *ret_err)
{
	struct error err = ERROR_NULL;
	int rc = writer_start(self, &err);

	return abi_error(writer_host(self), ret_err, &err, rc);
}

static int32_t update(void *self, const struct andiron_value *args, struct andiron_error *ret_err)
{
	struct push_config *config;
	struct error err = ERROR_NULL;
	int rc = push_config_new(writer_protocol(self), args, &config, &err);

	if (rc)
		return abi_error(writer_host(self), ret_err, &err, rc);
	rc = writer_update(self, config, &err);
	if (rc)
		push_config_release(config);
	return abi_error(writer_host(self), ret_err, &err, rc);
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
		.drain = writer_drain,                                                             \
		.stop = writer_stop,                                                               \
		.destroy = writer_free,                                                            \
		.batch = writer_batch,                                                             \
		.metrics = metrics_add,                                                            \
		.sender = client_serve,                                                            \
	}

WRITER(pyroscope, "Pushes profiles to Pyroscope.");
WRITER(parca, "Pushes profiles to Parca.");
WRITER(otlp, "Pushes profiles by OTLP, to a Collector or whoever takes them.");

ANDIRON_PLUGIN("pyroscope", ANDIRON_VERSION, "Apache-2.0", &component_pyroscope, &component_parca,
	       &component_otlp);
