/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-receive-http.so: pyroscope.receive_http, profiles from SDKs, and otlp.receive, profiles
 * from OpenTelemetry's exporters. The ABI's verbs over the engine in receiver.h. */
#include "receive-http/metrics.h"
#include "receive-http/options.h"
#include "receive-http/receiver.h"

#include <andiron/plugin.h>

#include <errno.h>

static int32_t validate(const struct andiron_host *host, const struct andiron_value *args,
			struct andiron_report *report)
{
	receive_check(host, args, report);
	return 0;
}

static int32_t make(const struct andiron_host *host, uint64_t id, const struct andiron_value *args,
		    bool otlp, void **ret_self, struct andiron_error *ret_err)
{
	const struct abi_context context = {host, id};
	struct error err = ERROR_NULL;
	struct receive_places places;
	struct receiver *receiver;
	int rc;

	if (!ANDIRON_HAS(host, andiron_host, offer_batch)) {
		error_set(&err, -ENOSYS, "this host is too old: it has no offer_batch");
		return abi_error(host, ret_err, &err, -ENOSYS);
	}
	rc = receive_places_init(&places, args, otlp, &err);
	if (rc)
		return abi_error(host, ret_err, &err, rc);
	rc = receiver_new(&context, places.of, otlp, &receiver);
	receive_places_fini(&places);
	if (!rc)
		*ret_self = receiver;
	return rc;
}

static int32_t create(const struct andiron_host *host, uint64_t id,
		      const struct andiron_value *args, void **ret_self, struct andiron_error *err)
{
	return make(host, id, args, false, ret_self, err);
}

static int32_t create_otlp(const struct andiron_host *host, uint64_t id,
			   const struct andiron_value *args, void **ret_self,
			   struct andiron_error *err)
{
	return make(host, id, args, true, ret_self, err);
}

static int32_t start(void *self, struct andiron_error *ret_err)
{
	struct error err = ERROR_NULL;
	int rc = receiver_start(self, &err);

	return abi_error(receiver_host(self), ret_err, &err, rc);
}

static int32_t update(void *self, const struct andiron_value *args, struct andiron_error *ret_err)
{
	struct error err = ERROR_NULL;
	struct receive_places places;
	int rc = receive_places_init(&places, args, receiver_takes_otlp(self), &err);

	if (!rc) {
		rc = receiver_update(self, places.of, &err);
		receive_places_fini(&places);
	}
	return abi_error(receiver_host(self), ret_err, &err, rc);
}

static void metrics(void *self, const struct andiron_metric_sink *sink)
{
	receive_metrics(self, sink);
}

static const struct andiron_component receive_http = {
	.size = sizeof(receive_http),
	.name = "pyroscope.receive_http",
	.summary = "Receives profiles from SDKs and agents over HTTP.",
	.options = &receive_options,
	.validate = validate,
	.create = create,
	.start = start,
	.update = update,
	.drain = receiver_drain,
	.stop = receiver_stop,
	.destroy = receiver_free,
	.metrics = metrics,
};

static const struct andiron_component otlp_receive = {
	.size = sizeof(otlp_receive),
	.name = "otlp.receive",
	.summary = "Receives OTLP's profiles signal, over HTTP or gRPC.",
	.options = &receive_otlp_options,
	.validate = validate,
	.create = create_otlp,
	.start = start,
	.update = update,
	.drain = receiver_drain,
	.stop = receiver_stop,
	.destroy = receiver_free,
	.metrics = metrics,
};

ANDIRON_PLUGIN("receive-http", ANDIRON_VERSION, "Apache-2.0", &receive_http, &otlp_receive);
