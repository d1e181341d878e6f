/* SPDX-License-Identifier: Apache-2.0 */
/* pyroscope.write's protocol: Connect's unary Push with application/proto. Source: pyroscope,
 * api/push/v1/push.proto. The limits are a server's defaults (pkg/validation/limits.go). It never
 * takes more than 2 MiB uncompressed; a request beyond its rate is refused with a part stored. */
#include "push-protocols/protocol.h"

#include "base/check.h"
#include "base/clock.h"
#include "protobuf/message.h"
#include "protobuf/pyroscope.pb-c.h"

#define MAX_REQUEST (1536u << 10)
#define MAX_SERIES  200u

static const struct http_header headers[] = {
	{{"Content-Type", 12}, {"application/proto", 17}},
	{{"Connect-Protocol-Version", 24}, {"1", 1}},
};

/* Whether a scraped profile is a delta already: hidden, and for the server all the same. */
static const struct label_rename renames[] = {{"__delta__", "__delta__"}, {NULL, NULL}};

static void put_body(struct buf *b, const struct str *series, size_t n)
{
	ProtobufCBinaryData list[MAX_SERIES];
	Pyroscope__PushRequest request = PYROSCOPE__PUSH_REQUEST__INIT;

	check(n <= MAX_SERIES);
	for (size_t i = 0; i < n; i++)
		list[i] = message_bytes(series[i]);
	request.n_series = n;
	request.series = list;
	message_pack(&request, b);
}

const struct protocol protocol_pyroscope = {
	.component = "pyroscope.write",
	.path = "/push.v1.PusherService/Push",
	.headers = headers,
	.n_headers = sizeof(headers) / sizeof(headers[0]),
	.idempotent = true,
	.ingest = true,
	.renames = renames,
	.limits = {.max_samples = 16000, .max_raw = 1400u << 10, .hard_raw = MAX_REQUEST},
	.max_series = MAX_SERIES,
	.max_raw = MAX_REQUEST,
	.rate = INT64_C(3900) << 10,
	.burst = INT64_C(2) << 20,
	.max_age_ns = 59 * 60 * NS_PER_SEC,
	.max_ahead_ns = 9 * 60 * NS_PER_SEC,
	.put_series = raw_series_put_pyroscope,
	.put_body = put_body,
	.classify = answer_push,
};
