/* SPDX-License-Identifier: Apache-2.0 */
/* Series as two servers take them. Contract in raw-series.h. */
#include "pprof/raw-series.h"

#include "base/check.h"
#include "protobuf/wire.h"

static size_t label_size(const struct label *l)
{
	return wire_size(l->name.n) + wire_size(l->value.n);
}

static void put_label(struct buf *b, const struct label *l)
{
	wire_put_head(b, 1, label_size(l));
	wire_put_bytes(b, 1, l->name);
	wire_put_bytes(b, 2, l->value);
}

/* samples=2{raw_profile=1}. */
static void put_profile(struct buf *b, struct str pprof)
{
	wire_put_head(b, 2, wire_size(pprof.n));
	wire_put_bytes(b, 1, pprof);
}

/* labels=1{name=1, value=2}. */
void raw_series_put_pyroscope(struct buf *b, const struct label *labels, size_t n, struct str pprof)
{
	for (size_t i = 0; i < n; i++)
		put_label(b, &labels[i]);
	put_profile(b, pprof);
}

/* LabelSet labels=1{Label labels=1{name=1, value=2}}. */
void raw_series_put_parca(struct buf *b, const struct label *labels, size_t n, struct str pprof)
{
	size_t set = 0;

	check(n > 0 && pprof.n > 0);
	for (size_t i = 0; i < n; i++)
		set += wire_size(label_size(&labels[i]));
	wire_put_head(b, 1, set);
	for (size_t i = 0; i < n; i++)
		put_label(b, &labels[i]);
	put_profile(b, pprof);
}
