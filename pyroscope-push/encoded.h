/* SPDX-License-Identifier: Apache-2.0 */
/* Encoded profiles (andiron_encoded of andiron/batch.h) to records: a pprof as the bytes that it
 * came in, with its group's labels. It is written again only where the server would refuse it for
 * its size, or would not survive it. What is not pprof goes by /ingest, or is lost where a server
 * has none. */
#pragma once

#include "pyroscope-push/series.h"

/* Each is emitted or counted in `lost`, to which is added. Returns how many there are. Reads a
 * pprof through where its maker has not. */
uint64_t encoded_encode(const struct series_encoder *e, const struct batch_view *view,
			uint64_t lost[SERIES_N_LOSSES]);
