/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-http.so: status.http, the agent's state over HTTP. The ABI's verbs over service.h. */
#include "status-http/service.h"

#include "abi/option.h"
#include "abi/value.h"
#include "base/clock.h"
#include "http-server/tls.h"

#include <andiron/plugin.h>

#include <errno.h>
#include <stdlib.h>

#define KEEP_NS (600 * NS_PER_SEC)

static const struct andiron_option options[] = {
	OPTION(STRING, "listen_address", "\"127.0.0.1\"",
	       "The IP address to listen at, or \"*\" for all of this machine's. Who can reach it "
	       "can read metrics, targets, and all arguments but secrets. Empty is as absent.",
	       .since = "0.1"),
	OPTION(INT, "listen_port", "12345",
	       "The port; 0 takes one that is free, which the log names. Alloy's own is 12345.",
	       .max = 65535, .since = "0.1"),
	OPTION(BOOL, "reload", "false",
	       "Whether a GET or POST of /-/reload has the configuration read again, as SIGHUP "
	       "does. Whoever reaches the address can then ask for it.",
	       .since = "0.1"),
	OPTION(DURATION, "keep_profiles", "\"10m\"",
	       "How long profiles that are forwarded to its receiver are kept for /flame and "
	       "/profile, at most 16 MiB of them.",
	       .min = 1, .max = 86400000000000, .since = "0.1"),
	OPTION(BLOCK, "tls", NULL,
	       "Certificate and key, and what clients must show; without it, plain HTTP.",
	       .block = &server_tls_options, .since = "0.1"),
	OPTION(BLOCK, "auth", NULL, "Who may ask; without it, everybody.", .block = &auth_options,
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
	if (server_tls_fault(value_get(args, "tls")))
		abi_report(host, report, ANDIRON_REPORT_ERROR, value_get(args, "tls"), "%s",
			   server_tls_fault(value_get(args, "tls")));
	return 0;
}

static void destroy(void *arg)
{
	struct service *self = arg;

	listener_fini(&self->listener);
	recent_fini(&self->kept);
	auth_fini(&self->auth);
	free(self);
}

/* What the arguments say, in memory of its own: 0, or a negative errno and nothing to be freed. */
static int read_arguments(const struct andiron_value *args, struct server_options *ret_place,
			  struct auth *ret_auth, struct error *err)
{
	struct server_options place = service_options(
		str_dup(address_of(args)), (uint16_t)value_int(args, "listen_port", 12345));
	int rc = place.address ? server_tls_read(value_get(args, "tls"), &place, err) : -ENOMEM;

	if (!rc)
		rc = auth_init(ret_auth, value_get(args, "auth"));
	if (rc)
		server_options_fini(&place);
	else
		*ret_place = place;
	return rc;
}

static int32_t create(const struct andiron_host *host, uint64_t id,
		      const struct andiron_value *args, void **ret_self, struct andiron_error *err)
{
	struct service *self = calloc(1, sizeof(*self));
	struct server_options place;
	struct error error = ERROR_NULL;
	int rc = self ? read_arguments(args, &place, &self->auth, &error) : -ENOMEM;

	if (rc) {
		free(self);
		return abi_error(host, err, &error, rc);
	}
	rc = service_init(self, &(struct abi_context){host, id}, &place);
	if (!rc)
		rc = host->extension(id, ANDIRON_STATUS_ID, &self->status);
	server_options_fini(&place);
	if (rc) {
		destroy(self);
		return rc;
	}
	self->reload = value_bool(args, "reload", false);
	self->kept.keep_ns = value_int(args, "keep_profiles", KEEP_NS);
	self->kept.max_bytes = LIVE_BYTES;
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
	struct server_options place;
	struct error err = ERROR_NULL;
	struct auth auth;
	int rc = read_arguments(args, &place, &auth, &err);

	if (rc)
		return abi_error(self->listener.context.host, ret_err, &err, rc);
	rc = listener_update(&self->listener, &place, &err);
	server_options_fini(&place);
	if (rc) {
		auth_fini(&auth);
		return abi_error(self->listener.context.host, ret_err, &err, rc);
	}
	auth_fini(&self->auth);
	self->auth = auth;
	self->reload = value_bool(args, "reload", false);
	self->kept.keep_ns = value_int(args, "keep_profiles", KEEP_NS);
	return 0;
}

static void batch(void *arg, const struct andiron_batch *batch)
{
	recent_take(&((struct service *)arg)->kept, batch);
}

static void stop(void *arg)
{
	listener_stop(&((struct service *)arg)->listener);
}

static const char *const needs[] = {ANDIRON_STATUS_ID, NULL};

static const struct andiron_export exports[] = {
	{"receiver", ANDIRON_EXPORT_RECEIVER, 0, "Keeps the profiles of the last minutes."},
};

static const struct andiron_component http = {
	.size = sizeof(http),
	.flags = ANDIRON_COMPONENT_NO_LABEL | ANDIRON_COMPONENT_WANTS_NAMES,
	.name = "status.http",
	.summary = "Serves metrics and probes over HTTP.",
	.options = &http_options,
	.exports = exports,
	.n_exports = 1,
	.needs = needs,
	.validate = validate,
	.create = create,
	.start = start,
	.update = update,
	.stop = stop,
	.destroy = destroy,
	.batch = batch,
};

ANDIRON_PLUGIN("status-http", ANDIRON_VERSION, "Apache-2.0", &http);
