/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyroscope.write's wire: Connect's unary Push with application/proto.
 * Source of the messages: pyroscope, api/push/v1/push.proto. The limits are a
 * server's defaults (pkg/validation/limits.go): more than 2 MiB uncompressed
 * is refused for ever, being more than it takes at once, and a request that
 * goes beyond what is left of them is refused with a part of it stored.
 */
#include "protocol.h"

#include "base/clock.h"
#include "pprof/wire.h"

#define MAX_REQUEST (1536u << 10)

static const struct http_header headers[] = {
	{{"Content-Type", 12}, {"application/proto", 17}},
	{{"Connect-Protocol-Version", 24}, {"1", 1}},
};

/* RawProfileSeries{ labels=1{name=1, value=2}, samples=2{raw_profile=1} }. */
static void put_series(struct buf *b, const struct label *labels, size_t n, struct str pprof)
{
	for (size_t i = 0; i < n; i++) {
		wire_put_head(b, 1, wire_size(labels[i].name.n) + wire_size(labels[i].value.n));
		wire_put_bytes(b, 1, labels[i].name);
		wire_put_bytes(b, 2, labels[i].value);
	}
	wire_put_head(b, 2, wire_size(pprof.n));
	wire_put_bytes(b, 1, pprof);
}

/* PushRequest{ series=1 }. */
static void put_body(struct buf *b, const struct fifo *records)
{
	for (const struct entry *i = records->head; i; i = i->next)
		wire_put_bytes(b, 1, buf_str(&i->record->message));
}

const struct protocol protocol_pyroscope = {
	.component = "pyroscope.write",
	.path = "/push.v1.PusherService/Push",
	.headers = headers,
	.n_headers = sizeof(headers) / sizeof(headers[0]),
	.idempotent = true,
	.limits = {.max_samples = 16000, .max_raw = 1400u << 10, .hard_raw = MAX_REQUEST},
	.max_series = 200,
	.max_raw = MAX_REQUEST,
	.rate = INT64_C(3900) << 10,
	.burst = INT64_C(2) << 20,
	.max_age_ns = 59 * 60 * NS_PER_SEC,
	.max_ahead_ns = 9 * 60 * NS_PER_SEC,
	.put_series = put_series,
	.put_body = put_body,
	.classify = classify_push,
};
