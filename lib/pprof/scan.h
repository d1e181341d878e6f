/* SPDX-License-Identifier: Apache-2.0 */
/* Looking a pprof profile over without taking it apart: whether it is whole at the top, and what
 * servers limit. For those who pass profiles on that others have encoded; it costs the inflating,
 * where pprof/decode.h costs ten times that. The bytes are untrusted. */
#pragma once

#include "base/error.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pprof_scan {
	size_t raw_bytes; /* uncompressed */
	uint64_t n_types, n_samples;
	bool has_period_type;
	int64_t time_ns, duration_ns; /* as it says */
};

/* 0, or -EBADMSG (neither a profile nor gzip of one: no sample types, or cut off), -E2BIG (more
 * than `max` bytes uncompressed), -ENOMEM, and a text. O(uncompressed bytes), in time and memory.
 */
int pprof_scan(struct str data, size_t max, struct pprof_scan *ret, struct error *err);
