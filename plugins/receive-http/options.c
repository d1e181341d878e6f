/* SPDX-License-Identifier: Apache-2.0 */
/* Alloy's arguments. Contract in options.h. */
#include "receive-http/options.h"

#include "abi/log.h"
#include "abi/option.h"
#include "abi/value.h"
#include "base/clock.h"
#include "grpc-server/grpc-server.h"
#include "http-server/tls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PORT        8080
#define OTLP_PORT   4318
#define GRPC_PORT   4317
#define CONNECTIONS 1024
#define MOST        65536 /* connections */
#define LONGEST     3600  /* seconds */
#define MEMORY      (16u << 10)         /* of a connection: Go's SDK puts many tags into the URL */
#define MAX_BODY    ((size_t)16 << 20)  /* Pyroscope's limit of a profile is 4 MiB uncompressed */
#define MAX_BODIES  ((size_t)64 << 20)

#define SECONDS(n) ((n)*NS_PER_SEC)

/* `port`: the default, as a text. */
#define PLACE(port)										   \
	OPTION(STRING, "listen_address", "\"\"",						   \
	       "The IP address to listen at; empty: all of this machine's."),			   \
	OPTION(INT, "listen_port", port,							   \
	       "The port; 0 takes one that is free, which the log names.", .max = 65535),	   \
	OPTION(INT, "conn_limit", "1024",							   \
	       "How many connections there may be at once; 0, and what is more than 65536, is "	   \
	       "65536. Alloy's default is 16384.", .max = INT32_MAX),				   \
	OPTION(DURATION, "server_read_timeout", "\"30s\"",					   \
	       "How long a request's head may take as a whole, and its body again; 0, and what "   \
	       "is more than 1h, is 1h.",							   \
	       .max = INT64_MAX),								   \
	OPTION(DURATION, "server_write_timeout", "\"30s\"",					   \
	       "How long an answer may take to be made, and again to be sent; likewise.",	   \
	       .max = INT64_MAX),								   \
	OPTION(DURATION, "server_idle_timeout", "\"120s\"",					   \
	       "How long a connection stays open between requests; 0 is server_read_timeout's, "   \
	       "and what is more than 1h, is 1h.",						   \
	       .max = INT64_MAX)
#define TLS										   \
	OPTION(BLOCK, "tls", NULL,								   \
	       "Certificate and key, and what clients must show; without it, plain HTTP.",	   \
	       .block = &server_tls_options)

static const struct andiron_option http[] = {
	PLACE("8080"),
	TLS,
	OPTION(BLOCK, "http2", NULL, "Accepted for Alloy's files.", .flags = ANDIRON_OPTION_IGNORED,
	       .effect = "HTTP/1.1 is spoken, as SDKs speak it"),
};
static const struct andiron_option otlp_http[] = {PLACE("4318"), TLS};
static const struct andiron_option otlp_grpc[] = {PLACE("4317")};
static const struct andiron_options otlp_http_options = ANDIRON_OPTIONS(otlp_http);
static const struct andiron_options otlp_grpc_options = ANDIRON_OPTIONS(otlp_grpc);
static const struct andiron_options http_options = ANDIRON_OPTIONS(http);

static const struct andiron_option options[] = {
	OPTION(RECEIVERS, "forward_to", NULL,
	       "Who gets the profiles. A request is answered once all of them have them; where one "
	       "has no room, with 429 and Retry-After.",
	       .flags = ANDIRON_OPTION_REQUIRED, .since = "0.1"),
	OPTION(BLOCK, "http", NULL,
	       "Where SDKs send to: /ingest, and /push.v1.PusherService/Push. A body may have 16 "
	       "MiB, and 48 MiB uncompressed.",
	       .block = &http_options, .since = "0.1"),
	OPTION(BLOCK, "grpc", NULL,
	       "Accepted for Alloy's files; as there, no profiles are taken by gRPC.",
	       .flags = ANDIRON_OPTION_IGNORED),
	OPTION(DURATION, "graceful_shutdown_timeout", "\"30s\"", "Accepted for Alloy's files.",
	       .flags = ANDIRON_OPTION_IGNORED,
	       .effect = "requests have until the agent's own deadline, --drain-deadline"),
	OPTION(DURATION, "debug_info_upload_timeout", "\"2m\"",
	       "Accepted for Alloy's files; debug information is not taken here.",
	       .flags = ANDIRON_OPTION_IGNORED,
	       .effect = "debug information goes to the server directly"),
};
const struct andiron_options receive_options = ANDIRON_OPTIONS(options);

static const struct andiron_option otlp_options[] = {
	OPTION(RECEIVERS, "forward_to", NULL,
	       "Who gets the profiles. A request is answered once all of them have them; where one "
	       "has no room, with 429 and Retry-After.",
	       .flags = ANDIRON_OPTION_REQUIRED, .since = "0.1"),
	OPTION(BLOCK, "http", NULL,
	       "Where exporters send to by OTLP over HTTP: /v1development/profiles. A body may "
	       "have 16 MiB, and 48 MiB uncompressed. It is there by default, unless there is a "
	       "block `grpc`.",
	       .block = &otlp_http_options, .since = "0.1"),
	OPTION(BLOCK, "grpc", NULL,
	       "Where exporters send to by OTLP over gRPC, without TLS. A message may have 16 MiB, "
	       "and 48 MiB uncompressed.",
	       .block = &otlp_grpc_options, .since = "0.1"),
};
const struct andiron_options receive_otlp_options = ANDIRON_OPTIONS(otlp_options);

static struct str text_of(const struct andiron_value *map, const char *name)
{
	return map ? value_str(map, name, STR_NULL) : STR_NULL;
}

/* Why this place cannot be, and at which of the values; NULL: it can. */
static const char *find_fault(const struct andiron_value *block,
			      const struct andiron_value **ret_at)
{
	const struct andiron_value *t = block ? value_get(block, "tls") : NULL;
	struct str address = text_of(block, "listen_address");
	char text[64];
	bool loopback;

	snprintf(text, sizeof(text), "%.*s", (int)address.n, address.n ? address.p : "");
	*ret_at = block ? value_get(block, "listen_address") : NULL;
	if (address.n && !server_address_ok(text, &loopback))
		return "is no IP address; write \"127.0.0.1\", \"::1\", or \"\" for all";
	*ret_at = t;
	return server_tls_fault(t);
}

static const char *const names[RECEIVE_PROTOCOLS] = {"http", "grpc"};

void receive_check(const struct andiron_host *host, const struct andiron_value *args,
		   struct andiron_report *report)
{
	for (int i = 0; i < RECEIVE_PROTOCOLS; i++) {
		const struct andiron_value *at;
		const char *fault = find_fault(value_get(args, names[i]), &at);

		if (fault)
			abi_report(host, report, ANDIRON_REPORT_ERROR, at, "%s", fault);
	}
}

/* No limit is the longest one: what strangers may cost is bounded. Seconds are rounded up. */
static unsigned int seconds(const struct andiron_value *block, const char *name, int64_t absent)
{
	int64_t ns = block ? value_int(block, name, SECONDS(absent)) : SECONDS(absent);

	if (ns == 0 || ns > SECONDS(LONGEST))
		return LONGEST;
	return (unsigned int)((ns + NS_PER_SEC - 1) / NS_PER_SEC);
}

/* As in Alloy, whose servers are Go's. */
static unsigned int idle_seconds(const struct andiron_value *block)
{
	if (block && value_int(block, "server_idle_timeout", 1) == 0)
		return seconds(block, "server_read_timeout", 30);
	return seconds(block, "server_idle_timeout", 120);
}

/* `block`: NULL for what is there by default. */
static int place_init(struct server_options *ret, const struct andiron_value *block,
		      const char *name, int64_t port, struct error *err)
{
	const struct andiron_value *t = block ? value_get(block, "tls") : NULL, *at;
	const char *fault = find_fault(block, &at);
	int64_t connections = block ? value_int(block, "conn_limit", CONNECTIONS) : CONNECTIONS;

	if (connections == 0 || connections > MOST)
		connections = MOST;
	*ret = (struct server_options){
		.port = (uint16_t)(block ? value_int(block, "listen_port", port) : port),
		.limits = {.connections = (unsigned int)connections,
			   .memory = MEMORY,
			   .request_s = seconds(block, "server_read_timeout", 30),
			   .answer_s = seconds(block, "server_write_timeout", 30),
			   .idle_s = idle_seconds(block),
			   .max_body = MAX_BODY,
			   .max_bodies = MAX_BODIES},
	};
	if (fault)
		return error_set(err, -EINVAL, "%s%s: %s", name, at == t && t ? ".tls" : "", fault);
	ret->address = str_dup(text_of(block, "listen_address"));
	return ret->address ? server_tls_read(t, ret, err) : -ENOMEM;
}

int receive_places_init(struct receive_places *ret, const struct andiron_value *args, bool otlp,
			struct error *err)
{
	const struct andiron_value *http_block = value_get(args, names[RECEIVE_HTTP]);
	const struct andiron_value *grpc = otlp ? value_get(args, names[RECEIVE_GRPC]) : NULL;
	int rc = 0;

	*ret = (struct receive_places){0};
	if (http_block || !grpc)
		rc = place_init(&ret->of[RECEIVE_HTTP], http_block, names[RECEIVE_HTTP],
				otlp ? OTLP_PORT : PORT, err);
	if (!rc && grpc) {
		rc = place_init(&ret->of[RECEIVE_GRPC], grpc, names[RECEIVE_GRPC], GRPC_PORT, err);
		ret->of[RECEIVE_GRPC].open = grpc_server_open;
	}
	if (rc)
		receive_places_fini(ret);
	return rc;
}

void receive_places_fini(struct receive_places *places)
{
	for (int i = 0; i < RECEIVE_PROTOCOLS; i++)
		server_options_fini(&places->of[i]);
}
