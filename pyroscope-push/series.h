/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a batch to records: one per group and profile name, split where a
 * server would refuse it as too large.
 *
 * Source of the messages: pyroscope, api/push/v1/push.proto.
 */
#ifndef PUSH_SERIES_H
#define PUSH_SERIES_H

#include "abi/batch-view.h"
#include "record.h"
#include "times.h"

/* A server refuses a profile of more than 16,000 samples, and one of more
 * than 2 MiB uncompressed for ever (its burst). Requests share the latter
 * limit, so that a profile takes at most most of one. */
#define SERIES_MAX_SAMPLES 16000u
#define SERIES_MAX_RAW (1400u << 10)

struct series_label {
	struct str name, value;
};

struct series_limits {
	uint32_t max_samples;
	size_t max_raw;
};

struct series_encoder {
	const struct series_label *external; /* win over the group's own */
	size_t n_external;
	struct series_limits limits;
	struct times *times;
	/* Takes the record over. */
	void (*emit)(void *context, struct record *record);
	void *context;
};

/*
 * Encodes all rows. Returns the samples that did not become part of a
 * record: types without a name, or memory that ran short. 0: all of them did.
 */
uint64_t series_encode(const struct series_encoder *e, const struct andiron_batch *batch);

/* The labels of a group's series, sorted by name, names unique. `out` has room
 * for the group's labels, the external ones and two more; returns how many.
 * Names that begin with "__" stay behind, but for __name__. */
size_t series_labels(const struct series_encoder *e, const struct batch_view *view,
		     const struct andiron_group *group, struct str name, struct series_label *out);

#endif
