/* SPDX-License-Identifier: Apache-2.0 */
/* RawProfileSeries: a finished profile under the labels of its series, as servers take it.
 * Pyroscope and Parca have a message each of that name, alike but for where labels stand.
 * Sources: pyroscope, api/push/v1/push.proto; parca, proto/parca/profilestore/v1alpha1.
 * Failure is left to the buffer's `failed`. O(bytes). */
#pragma once

#include "base/buf.h"

struct label {
	struct str name, value;
};

#define RAW_SERIES_LABELS 32u /* more than servers take */

void raw_series_put_pyroscope(struct buf *out, const struct label *labels, size_t n,
			      struct str pprof);

/* There must be labels, and bytes of a profile: a server without them ends its process. */
void raw_series_put_parca(struct buf *out, const struct label *labels, size_t n, struct str pprof);
