/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parca.write's wire: ProfileStoreService/WriteRaw over gRPC. Sources of the
 * messages: parca, proto/parca/profilestore/v1alpha1; of the framing: grpc,
 * PROTOCOL-HTTP2.md. A server counts every write, so a re-send counts twice; it
 * takes profiles of any age, and nothing of a request of which one series is
 * bad. It dies of a series without labels, of an empty profile and of one
 * without a period type: none of them can be put together here.
 */
#include "grpc.h"
#include "protocol.h"

#include "base/check.h"
#include "pprof/wire.h"

static size_t label_size(const struct label *l)
{
	return wire_size(l->name.n) + wire_size(l->value.n);
}

/* RawProfileSeries{ LabelSet labels=1{Label labels=1{name=1, value=2}},
 * samples=2{raw_profile=1} }. */
static void put_series(struct buf *b, const struct label *labels, size_t n, struct str pprof)
{
	size_t set = 0;

	check(n > 0 && pprof.n > 0);
	for (size_t i = 0; i < n; i++)
		set += wire_size(label_size(&labels[i]));
	wire_put_head(b, 1, set);
	for (size_t i = 0; i < n; i++) {
		wire_put_head(b, 1, label_size(&labels[i]));
		wire_put_bytes(b, 1, labels[i].name);
		wire_put_bytes(b, 2, labels[i].value);
	}
	wire_put_head(b, 2, wire_size(pprof.n));
	wire_put_bytes(b, 1, pprof);
}

/* WriteRawRequest{ series=2, normalized=3 }: addresses are their file's own. */
static void put_body(struct buf *b, const struct fifo *records)
{
	size_t start = grpc_begin(b);

	for (const struct entry *i = records->head; i; i = i->next)
		wire_put_bytes(b, 2, buf_str(&i->record->message));
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
	.put_series = put_series,
	.put_body = put_body,
	.classify = classify_grpc,
};
