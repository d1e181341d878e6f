/* SPDX-License-Identifier: Apache-2.0 */
/* Series as two servers take them. Contract in raw-series.h. */
#include "push-protocols/raw-series.h"

#include "base/check.h"
#include "protobuf/message.h"
#include "protobuf/parca.pb-c.h"
#include "protobuf/pyroscope.pb-c.h"

void raw_series_put_pyroscope(struct buf *b, const struct label *labels, size_t n, struct str pprof)
{
	Pyroscope__LabelPair pairs[RAW_SERIES_LABELS], *list[RAW_SERIES_LABELS];
	Pyroscope__RawSample sample = PYROSCOPE__RAW_SAMPLE__INIT, *samples = &sample;
	Pyroscope__RawProfileSeries series = PYROSCOPE__RAW_PROFILE_SERIES__INIT;

	check(n <= RAW_SERIES_LABELS);
	for (size_t i = 0; i < n; i++) {
		pyroscope__label_pair__init(&pairs[i]);
		pairs[i].name = message_bytes(labels[i].name);
		pairs[i].value = message_bytes(labels[i].value);
		list[i] = &pairs[i];
	}
	sample.raw_profile = message_bytes(pprof);
	series.n_labels = n;
	series.labels = list;
	series.n_samples = 1;
	series.samples = &samples;
	message_pack(&series, b);
}

void raw_series_put_parca(struct buf *b, const struct label *labels, size_t n, struct str pprof)
{
	Parca__Label pairs[RAW_SERIES_LABELS], *list[RAW_SERIES_LABELS];
	Parca__LabelSet set = PARCA__LABEL_SET__INIT;
	Parca__RawSample sample = PARCA__RAW_SAMPLE__INIT, *samples = &sample;
	Parca__RawProfileSeries series = PARCA__RAW_PROFILE_SERIES__INIT;

	check(n > 0 && n <= RAW_SERIES_LABELS && pprof.n > 0);
	for (size_t i = 0; i < n; i++) {
		parca__label__init(&pairs[i]);
		pairs[i].name = message_bytes(labels[i].name);
		pairs[i].value = message_bytes(labels[i].value);
		list[i] = &pairs[i];
	}
	set.n_labels = n;
	set.labels = list;
	sample.raw_profile = message_bytes(pprof);
	series.labels = &set;
	series.n_samples = 1;
	series.samples = &samples;
	message_pack(&series, b);
}
