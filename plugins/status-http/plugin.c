/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-http.so: status.http, the agent's state over HTTP. The ABI's verbs over service.h. */
#include "status-http/service.h"

#include "abi/option.h"
#include "abi/value.h"

#include <andiron/plugin.h>

#include <errno.h>
#include <stdlib.h>

static const struct andiron_option options[] = {
	OPTION(STRING, "listen_address", "\"127.0.0.1\"",
	       "The IP address to listen at, or \"*\" for all of this machine's. Who can reach it "
	       "can read the metrics, which name endpoints and components. Empty is as absent.",
	       .since = "0.1"),
	OPTION(INT, "listen_port", "12345",
	       "The port; 0 takes one that is free, which the log names. Alloy's own is 12345.",
	       .max = 65535, .since = "0.1"),
	OPTION(BOOL, "reload", "false",
	       "Whether a GET or POST of /-/reload has the configuration read again, as SIGHUP "
	       "does. Whoever reaches the address can then ask for it.",
	       .since = "0.1"),
};

static const struct andiron_options http_options = ANDIRON_OPTIONS(options);

/* What a variable without a value leaves is as good as nothing. */
static struct str address_of(const struct andiron_value *args)
{
	struct str text = value_str(args, "listen_address", STR_NULL);

	if (str_is(text, "*"))
		return STR("");
	return text.n ? text : STR("127.0.0.1");
}

static int32_t validate(const struct andiron_host *host, const struct andiron_value *args,
			struct andiron_report *report)
{
	char *address = str_dup(address_of(args));
	bool loopback;

	if (address && *address && !server_address_ok(address, &loopback))
		abi_report(
			host, report, ANDIRON_REPORT_ERROR, value_get(args, "listen_address"),
			"is no IP address; write \"127.0.0.1\", \"::1\", or \"*\" for all");
	free(address);
	return 0;
}

static void destroy(void *arg)
{
	struct service *self = arg;

	listener_fini(&self->listener);
	free(self);
}

/* The options, whose address is to be freed; NULL there when memory is short. */
static struct server_options options_of(const struct andiron_value *args)
{
	return service_options(str_dup(address_of(args)),
			       (uint16_t)value_int(args, "listen_port", 12345));
}

static int32_t create(const struct andiron_host *host, uint64_t id,
		      const struct andiron_value *args, void **ret_self, struct andiron_error *err)
{
	struct service *self = calloc(1, sizeof(*self));
	struct server_options place = options_of(args);
	int rc = self && place.address ? 0 : -ENOMEM;

	if (!rc)
		rc = service_init(self, &(struct abi_context){host, id}, &place);
	if (!rc)
		rc = host->extension(id, ANDIRON_STATUS_ID, &self->status);
	free((char *)(uintptr_t)place.address);
	if (rc) {
		if (self)
			destroy(self);
		return rc;
	}
	self->reload = value_bool(args, "reload", false);
	self->matters = ANDIRON_COMPONENT_RAW_FRAMES | ANDIRON_COMPONENT_WRITER;
	*ret_self = self;
	return 0;
}

static int32_t start(void *arg, struct andiron_error *ret_err)
{
	struct service *self = arg;
	struct error err = ERROR_NULL;
	int rc = listener_start(&self->listener, &err);

	return abi_error(self->listener.context.host, ret_err, &err, rc);
}

static int32_t update(void *arg, const struct andiron_value *args, struct andiron_error *ret_err)
{
	struct service *self = arg;
	struct server_options place = options_of(args);
	struct error err = ERROR_NULL;
	int rc = place.address ? listener_update(&self->listener, &place, &err) : -ENOMEM;

	free((char *)(uintptr_t)place.address);
	if (!rc)
		self->reload = value_bool(args, "reload", false);
	return abi_error(self->listener.context.host, ret_err, &err, rc);
}

static void stop(void *arg)
{
	listener_stop(&((struct service *)arg)->listener);
}

static const char *const needs[] = {ANDIRON_STATUS_ID, NULL};

static const struct andiron_component http = {
	.size = sizeof(http),
	.flags = ANDIRON_COMPONENT_NO_LABEL,
	.name = "status.http",
	.summary = "Serves metrics and probes over HTTP.",
	.options = &http_options,
	.needs = needs,
	.validate = validate,
	.create = create,
	.start = start,
	.update = update,
	.stop = stop,
	.destroy = destroy,
};

ANDIRON_PLUGIN("http", ANDIRON_VERSION, "Apache-2.0", &http);
