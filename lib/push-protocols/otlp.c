/* SPDX-License-Identifier: Apache-2.0 */
/* otlp.write's protocols: OTLP's profiles signal over HTTP and over gRPC. Sources:
 * opentelemetry-proto, docs/specification.md (what is retried); lib/export/otlp.h for the messages.
 * A request has one series, since a request has one dictionary. The message is kept compressed: the
 * same bytes are an HTTP body and a gRPC message. Ages are limited as by Pyroscope, which may be
 * behind a Collector. The resource has the target's own identity, by which a Collector finds the
 * pod. */
#include "http/grpc.h"
#include "push-protocols/protocol.h"

#include "base/clock.h"
#include "export/otlp.h"
#include "pprof/gzip.h"
#include "protobuf/message.h"
#include "protobuf/otlp.pb-c.h"

#include <stdio.h>

#define GZIP_LEVEL     1
#define MAX_ATTRIBUTES 64

static const struct label_rename renames[] = {
	{"__container_id__", "container.id"},
	{"__process_pid__", "process.pid"},
	{"__process_executable_name", "process.executable.name"},
	{"__process_executable_path", "process.executable.path"},
	{"__meta_kubernetes_node_name", "k8s.node.name"},
	{"__meta_kubernetes_pod_node_name", "k8s.node.name"},
	{"__meta_kubernetes_namespace", "k8s.namespace.name"},
	{"__meta_kubernetes_pod_name", "k8s.pod.name"},
	{"__meta_kubernetes_pod_uid", "k8s.pod.uid"},
	{"__meta_kubernetes_pod_container_name", "k8s.container.name"},
	{NULL, NULL},
};

/* FNV-1a: the same labels have the same id in every run. */
static uint64_t series_id(const struct label *labels, size_t n)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < labels[i].name.n + labels[i].value.n; k++) {
			const struct label *l = &labels[i];
			char c = k < l->name.n ? l->name.p[k] : l->value.p[k - l->name.n];

			hash = (hash ^ (unsigned char)c) * 0x100000001b3;
		}
	return hash;
}

static size_t put_resource(const struct label *labels, size_t n, struct otlp_attribute *out)
{
	size_t used = 0;

	for (size_t i = 0; i < n && used < MAX_ATTRIBUTES; i++) {
		struct str key = labels[i].name;

		if (str_is(key, "__name__"))
			continue;
		if (str_is(key, "service_name"))
			key = STR("service.name");
		out[used++] = (struct otlp_attribute){.key = key,
						      .text = labels[i].value,
						      .is_number = str_is(key, "process.pid")};
	}
	return used;
}

static void compress(struct str plain, struct buf *out)
{
	struct gzip_writer w = {0};

	if (gzip_open(&w, out, GZIP_LEVEL) != 0) {
		out->failed = true;
		return;
	}
	gzip_write(&w, plain);
	out->failed |= gzip_close(&w) != 0;
}

static void put_series(struct buf *b, const struct label *labels, size_t n, struct str pprof)
{
	struct otlp_attribute resource[MAX_ATTRIBUTES];
	struct otlp_head head = {.resource = resource,
				 .n_resource = put_resource(labels, n, resource),
				 .scope = STR("andiron"),
				 .version = STR(ANDIRON_VERSION),
				 .id = series_id(labels, n)};
	struct buf plain = BUF_NULL;
	struct profile *p = NULL;

	if (profile_decode(pprof, &p, NULL) != 0 || otlp_encode(p, &head, &plain) != 0)
		b->failed = true;
	else
		compress(buf_str(&plain), b);
	profile_free(p);
	buf_free(&plain);
}

/* The body is gzip in any case; without a series it is gzip of nothing. */
static void put_http(struct buf *b, const struct str *series, size_t n)
{
	if (!n)
		compress(STR(""), b);
	for (size_t i = 0; i < n; i++)
		buf_str_append(b, series[i]);
}

static void put_grpc(struct buf *b, const struct str *series, size_t n)
{
	size_t start = grpc_begin(b);

	put_http(b, series, n);
	grpc_end(b, start);
	if (!b->failed)
		b->p[start - 5] = 1; /* compressed */
}

/* What was rejected is not to be sent again. An answer that cannot be read says nothing of it. */
static void judge_partial(struct str body, struct answer *a)
{
	const Otlp__ExportProfilesPartialSuccess *partial;
	struct arena arena = ARENA_NULL;
	const void *answer = NULL;

	if (message_unpack(&otlp__export_profiles_service_response__descriptor, body,
			   &MESSAGE_ANSWER, &arena, &answer) == 0) {
		partial = ((const Otlp__ExportProfilesServiceResponse *)answer)->partial_success;
		if (partial && partial->rejected_profiles) {
			struct str why = message_str(partial->error_message);

			a->action = ANSWER_ISOLATE;
			snprintf(a->text, sizeof(a->text), "the server rejected it: %.*s",
				 STR_FMT(str_first(why, 240)));
			answer_clean(a);
		}
	}
	arena_free(&arena);
}

static struct answer classify_http(const struct http_response *r)
{
	struct answer a = {.action = ANSWER_LOST};

	if (r->status == 0) {
		snprintf(a.text, sizeof(a.text), "%.300s", r->error);
		return a;
	}
	a.action = answer_find(ANSWERS_OTLP, r->status, r->body);
	if (a.action != ANSWER_ACCEPTED) {
		snprintf(a.text, sizeof(a.text), "status %d: %.*s", r->status,
			 STR_FMT(str_first(r->body, 240)));
		answer_clean(&a);
	} else if (str_starts(r->content_type, STR("application/x-protobuf"))) {
		judge_partial(r->body, &a);
	} else if (r->content_type.n && !str_starts(r->content_type, STR("application/"))) {
		a.action = ANSWER_REFUSED;
		snprintf(a.text, sizeof(a.text),
			 "content type \"%.*s\" is not the answer of an OTLP server",
			 STR_FMT(str_first(r->content_type, 80)));
	}
	return a;
}

static struct answer classify_call(const struct http_response *r)
{
	struct answer a = answer_grpc(r, ANSWERS_GRPC);

	if (a.action == ANSWER_ACCEPTED)
		judge_partial(str_skip(r->body, 5), &a);
	return a;
}

static const struct http_header http_headers[] = {
	{{"Content-Type", 12}, {"application/x-protobuf", 22}},
	{{"Content-Encoding", 16}, {"gzip", 4}},
};

static const struct http_header call_headers[] = {
	{{"Content-Type", 12}, {"application/grpc", 16}},
	{{"TE", 2}, {"trailers", 8}},
	{{"grpc-encoding", 13}, {"gzip", 4}},
};

#define LIMITS                                                                                     \
	.component = "otlp.write", .renames = renames, .addresses = true, .ids = true,             \
	.whole = true, .node_label = true,                                                         \
	.limits = {.max_samples = 16000, .max_raw = 1400u << 10, .hard_raw = 1536u << 10},         \
	.max_series = 1, .max_raw = 1536u << 10, .max_age_ns = 59 * 60 * NS_PER_SEC,               \
	.max_ahead_ns = 9 * 60 * NS_PER_SEC, .put_series = put_series

const struct protocol protocol_otlp = {
	LIMITS,
	.path = "/v1development/profiles",
	.headers = http_headers,
	.n_headers = sizeof(http_headers) / sizeof(http_headers[0]),
	.put_body = put_http,
	.classify = classify_http,
};

const struct protocol protocol_otlp_grpc = {
	LIMITS,
	.path = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
	.headers = call_headers,
	.n_headers = sizeof(call_headers) / sizeof(call_headers[0]),
	.wanted = {GRPC_WANTED},
	.http2 = true,
	.put_body = put_grpc,
	.classify = classify_call,
};
