/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parca.write's wire: ProfileStoreService/WriteRaw over gRPC. Sources of the
 * messages: parca, proto/parca/profilestore/v1alpha1; of the framing: grpc,
 * PROTOCOL-HTTP2.md. A server counts every write, so a re-send counts twice; it
 * takes profiles of any age, and nothing of a request of which one series is
 * bad. It dies of a series without labels, of an empty profile and of one
 * without a period type: none of them can be put together here.
 */
#include "pyroscope-push/protocols/grpc.h"
#include "pyroscope-push/protocols/protocol.h"

#include "protobuf/wire.h"

/* WriteRawRequest{ series=2, normalized=3 }: addresses are their file's own. */
static void put_body(struct buf *b, const struct fifo *records)
{
	size_t start = grpc_begin(b);

	for (const struct entry *i = records->head; i; i = i->next)
		wire_put_bytes(b, RAW_SERIES_PARCA, buf_str(&i->record->message));
	wire_put_field(b, 3, 1);
	grpc_end(b, start);
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
	.node_label = true,
	.limits = {.max_samples = 50000, .max_raw = 6u << 20, .hard_raw = 8u << 20},
	.max_series = 200,
	.max_raw = 8u << 20, /* the server takes messages of 64 MiB */
	.put_series = raw_series_put_parca,
	.put_body = put_body,
	.classify = classify_grpc,
};
