/* SPDX-License-Identifier: Apache-2.0 */
/* Looking over a pprof profile that a stranger sent, without taking it apart: whether it is one,
 * how large it is, and under which name Pyroscope keeps it. Source of the names: pyroscope,
 * pkg/og/convert/pprof. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdint.h>

/* Uncompressed; Pyroscope's own limit is 4 MiB unless it was raised. */
#define PROFILE_MAX_RAW ((size_t)32 << 20)

#define PROFILE_MAX_TYPES 32u

struct profile_outline {
	uint64_t raw_bytes, n_stacks;
	size_t n_types;
	struct str types[PROFILE_MAX_TYPES]; /* "cpu", "alloc_space"; in the buffer, or in `data` */
};

/* `raw` is cleared, and holds the profile if it came with gzip. It may have `max` bytes
 * uncompressed. 0, -ENOMEM, or -EBADMSG or -E2BIG and a text. O(uncompressed bytes). */
int profile_outline(struct str data, struct buf *raw, size_t max, struct profile_outline *ret,
		    struct error *err);

/* "process_cpu", "memory", …; a type that the table does not know is its own name. `config` is the
 * sample_type_config of a form, JSON, which may say what a type is shown as; empty: none. The text
 * is borrowed from `outline`, is constant, or is in `display`, which is cleared. */
struct str profile_name(const struct profile_outline *outline, struct str config,
			struct buf *display);
