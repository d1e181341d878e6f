/* SPDX-License-Identifier: Apache-2.0 */
/* Paths, types, and the bodies of answers. Contract in dialect.h. */
#include "receive-http/dialect.h"

#include "base/json.h"
#include "grpc-server/grpc-server.h"
#include "protobuf/message.h"
#include "protobuf/otlp.pb-c.h"
#include "protobuf/wire.h"
#include "receive-http/json/json-body.h"

#define RETRY_S     5
#define PROTOBUF    "application/x-protobuf"
#define JSON        "application/json"
#define GRPC_METHOD "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"

bool dialect_is_push(const struct server_request *request)
{
	return str_is(server_request_path(request), "/push.v1.PusherService/Push");
}

static bool is_json(const struct server_request *request)
{
	return json_body_is(server_request_header(request, "Content-Type"));
}

static const char *mistyped(enum dialect dialect, const struct server_request *request)
{
	struct str type = server_request_header(request, "Content-Type");

	if (is_json(request))
		return NULL;
	if (dialect == DIALECT_OTLP && !str_starts(type, STR(PROTOBUF)) &&
	    !str_starts(type, STR("application/protobuf")))
		return "send profiles with Content-Type " PROTOBUF " or " JSON
		       ", which are an exporter's encodings proto and json";
	if (dialect_is_push(request) && !str_starts(type, STR("application/proto")))
		return "push with Content-Type application/proto or " JSON "; gRPC is not "
		       "spoken here";
	return NULL;
}

/* By path, method and type. */
static const char *misplaced(enum dialect dialect, const struct server_request *request,
			     unsigned int *ret_status)
{
	struct str path = server_request_path(request);

	*ret_status = 404;
	if (dialect == DIALECT_GRPC)
		return str_is(path, GRPC_METHOD)
			       ? NULL
			       : "of profiles there is " GRPC_METHOD
				 ", from version 1.10 of OTLP on; other signals are not taken";
	if (dialect == DIALECT_OTLP && !str_is(path, "/v1development/profiles"))
		return "there is /v1development/profiles; gRPC has a port of its own, and other "
		       "signals are not taken";
	if (dialect == DIALECT_SDK && !dialect_is_push(request) && !str_is(path, "/ingest"))
		return "there are /push.v1.PusherService/Push and /ingest";
	*ret_status = 405;
	if (!server_request_is(request, "POST"))
		return "profiles are sent by POST";
	*ret_status = 415;
	return mistyped(dialect, request);
}

const char *dialect_fault(enum dialect dialect, const struct server_request *request,
			  unsigned int *ret_status)
{
	struct str encoding = server_request_header(request, "Content-Encoding");
	const char *why = misplaced(dialect, request, ret_status);

	if (why || !encoding.n || str_is(encoding, "gzip") || str_is(encoding, "identity"))
		return why;
	*ret_status = 415;
	return "the only Content-Encoding that is taken is gzip";
}

/* The words of Connect for a status. */
static const char *connect_code(unsigned int status)
{
	switch (status) {
	case 401:
		return "unauthenticated";
	case 404:
	case 405:
	case 415:
		return "unimplemented";
	case 413:
	case 429:
		return "resource_exhausted";
	case 503:
		return "unavailable";
	default:
		return status < 500 ? "invalid_argument" : "internal";
	}
}

/* google.rpc.Status{ code=1, message=2 }: of it OTLP's senders look at none, they go by the status
 * of HTTP. In the encoding that was asked in. */
static void put_status(struct buf *b, bool json, unsigned int status, const char *why)
{
	if (json) {
		buf_printf(b, "{\"code\":%u,\"message\":", grpc_server_code(status));
		json_put_str(b, str_of(why));
		buf_putc(b, '}');
		return;
	}
	wire_put_field(b, 1, grpc_server_code(status));
	wire_put_bytes(b, 2, str_of(why));
}

void dialect_refuse(enum dialect dialect, struct server_request *request, unsigned int status,
		    const char *why)
{
	struct server_answer answer = {.status = status, .type = "text/plain; charset=utf-8"};
	struct buf text = BUF_NULL;

	if (dialect == DIALECT_GRPC) {
		buf_printf(&text, "%s", why);
	} else if (dialect == DIALECT_OTLP) {
		answer.type = is_json(request) ? JSON : PROTOBUF;
		put_status(&text, is_json(request), status, why);
	} else if (dialect_is_push(request)) {
		answer.type = JSON;
		buf_printf(&text, "{\"code\":\"%s\",\"message\":", connect_code(status));
		json_put_str(&text, str_of(why));
		buf_putc(&text, '}');
	} else {
		buf_printf(&text, "%s\n", why);
	}
	answer.body = buf_str(&text);
	if (status == 429 || status == 503)
		answer.retry_s = RETRY_S;
	server_answer(request, &answer);
	buf_free(&text);
}

static void accept_otlp(struct server_request *request, bool json,
			const struct otlp_rejected *rejected)
{
	Otlp__ExportProfilesPartialSuccess partial = OTLP__EXPORT_PROFILES_PARTIAL_SUCCESS__INIT;
	Otlp__ExportProfilesServiceResponse response = OTLP__EXPORT_PROFILES_SERVICE_RESPONSE__INIT;
	struct server_answer answer = {.status = 200, .type = json ? JSON : PROTOBUF};
	struct buf body = BUF_NULL;

	partial.rejected_profiles = (int64_t)rejected->n;
	partial.error_message = message_bytes(str_of(rejected->why.text));
	if (rejected->n)
		response.partial_success = &partial;
	if (!json) {
		message_pack(&response, &body);
	} else if (rejected->n) {
		buf_printf(&body,
			   "{\"partialSuccess\":{\"rejectedProfiles\":\"%llu\",\"errorMessage\":",
			   (unsigned long long)rejected->n);
		json_put_str(&body, str_of(rejected->why.text));
		buf_str_append(&body, STR("}}"));
	} else {
		buf_str_append(&body, STR("{}"));
	}
	answer.body = buf_str(&body);
	server_answer(request, &answer);
	buf_free(&body);
}

static void accept_sdk(struct server_request *request)
{
	struct server_answer answer = {.status = 200};

	if (dialect_is_push(request)) {
		answer.type = is_json(request) ? JSON : "application/proto";
		answer.body = is_json(request) ? STR("{}") : STR_NULL;
	}
	server_answer(request, &answer);
}

void dialect_accept(enum dialect dialect, struct server_request *request,
		    const struct otlp_rejected *rejected)
{
	if (dialect == DIALECT_SDK)
		accept_sdk(request);
	else
		accept_otlp(request, dialect == DIALECT_OTLP && is_json(request), rejected);
}
