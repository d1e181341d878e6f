/* SPDX-License-Identifier: Apache-2.0 */
/* parca.write's protocol: ProfileStoreService/WriteRaw over gRPC. Sources: parca,
 * proto/parca/profilestore/v1alpha1; grpc, PROTOCOL-HTTP2.md. A server counts every write, so a
 * re-send counts twice. It takes profiles of any age, and nothing of a request with one bad series.
 * It crashes on a series without labels and on a profile that is empty or has no period type: hence
 * `whole`. */
#include "http/grpc.h"
#include "push-protocols/protocol.h"

#include "base/check.h"
#include "protobuf/message.h"
#include "protobuf/parca.pb-c.h"

#define MAX_SERIES 200u

void parca_put_write(struct buf *b, const struct str *series, size_t n, bool normalized)
{
	ProtobufCBinaryData list[MAX_SERIES];
	Parca__WriteRawRequest request = PARCA__WRITE_RAW_REQUEST__INIT;
	size_t start = grpc_begin(b);

	check(n <= MAX_SERIES);
	for (size_t i = 0; i < n; i++)
		list[i] = message_bytes(series[i]);
	request.n_series = n;
	request.series = list;
	request.normalized = normalized;
	message_pack(&request, b);
	grpc_end(b, start);
}

static void put_body(struct buf *b, const struct str *series, size_t n)
{
	parca_put_write(b, series, n, true);
}

static struct answer classify(const struct http_response *r)
{
	return answer_grpc(r, ANSWERS_GRPC);
}

const struct protocol protocol_parca = {
	.component = "parca.write",
	.path = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw",
	.headers = grpc_headers,
	.n_headers = GRPC_N_HEADERS,
	.wanted = {GRPC_WANTED},
	.http2 = true,
	.addresses = true,
	.debuginfo = true,
	.whole = true,
	.node_label = true,
	.limits = {.max_samples = 50000, .max_raw = 6u << 20, .hard_raw = 8u << 20},
	.max_series = MAX_SERIES,
	.max_raw = 8u << 20, /* the server takes messages of 64 MiB */
	.put_series = raw_series_put_parca,
	.put_body = put_body,
	.classify = classify,
};
