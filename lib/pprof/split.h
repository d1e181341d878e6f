/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a decoded profile again: in parts, where a server would refuse the whole for its size.
 * The parts' sums are those of the whole. Each has a time of its own, since servers keep one
 * profile of a series and a time. */
#pragma once

#include "base/str.h"
#include "pprof/decode.h"

struct pprof_split {
	uint32_t max_samples;
	size_t max_raw; /* uncompressed bytes at which a part is ended; one stack may go beyond */
	int64_t time_ns; /* of the first part; the next ones follow by the nanosecond */
	int level;       /* of gzip, as in pprof_finish */
	/* A finished part, borrowed, `raw` bytes long uncompressed. 0, or what pprof_write_parts
	 * is to give back at once. */
	int (*part)(void *context, struct str pprof, size_t raw);
	void *context;
};

/* Writes the samples whose values are not all zero; without any, no part. 0, -ENOMEM, -E2BIG (more
 * sample types than pprof/encode.h takes), or what `part` said. O(size) for each part. */
int pprof_write_parts(const struct profile *p, const struct pprof_split *split);
