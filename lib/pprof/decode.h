/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a pprof profile (google/pprof, proto/profile.proto) of any origin into arrays. The file
 * is untrusted input: every index in the result is in range, and memory is bounded by 24 times the
 * uncompressed size while it is read (eight times for an ordinary profile), of which there may be
 * PROFILE_MAX_BYTES. Names are bytes as they came: not always UTF-8, and with control characters if
 * somebody put them there.
 *
 * References are positions in the arrays, not the file's ids. Functions, mappings and locations
 * have a null entry at position 0. */
#pragma once

#include "base/error.h"
#include "base/str.h"

#define PROFILE_MAX_BYTES ((size_t)256 << 20)

struct profile_type {
	struct str type;
	struct str unit;
};

struct profile_function {
	struct str name;
	struct str system_name;
	struct str file;
	uint32_t start_line;
};

struct profile_mapping {
	uint64_t start;
	uint64_t limit;
	uint64_t offset;
	struct str file;
	struct str build_id;
	uint32_t has_functions;
};

struct profile_line {
	uint32_t function;
	uint32_t line;
};

/* Lines [line_start, +n_lines), inlined callees first. */
struct profile_location {
	uint64_t address;
	uint32_t mapping;
	uint32_t line_start;
	uint32_t n_lines;
};

/* `text` is empty in a number's label. */
struct profile_label {
	struct str key;
	struct str text;
	int64_t number;
	struct str unit;
};

/* Frames [frame_start, +n_frames), leaf first; labels likewise. Sample i has values [i * n_types,
 * +n_types). */
struct profile_sample {
	uint32_t frame_start;
	uint32_t n_frames;
	uint32_t label_start;
	uint32_t n_labels;
};

struct profile {
	struct profile_type *types;
	struct profile_function *functions;
	struct profile_mapping *mappings;
	struct profile_line *lines;
	struct profile_location *locations;
	uint32_t *frames; /* locations */
	struct profile_label *labels;
	struct profile_sample *samples;
	int64_t *values;
	struct str *comments;
	size_t n_types, n_functions, n_mappings, n_lines, n_locations;
	size_t n_frames, n_labels, n_samples, n_values, n_comments;
	size_t default_type; /* the type to show; the last unless the file says */
	struct profile_type period_type;
	int64_t period;
	int64_t time_ns;
	int64_t duration_ns;
};

/* Decodes gzip or plain bytes, which are not needed afterwards. 0, -ENOMEM,
 * -E2BIG (more than PROFILE_MAX_BYTES), or -EBADMSG; err says what is wrong
 * with it. O(size). */
int profile_decode(struct str data, struct profile **ret, struct error *err);

/* The same for a file. Also -errno of open and read. */
int profile_read(const char *path, struct profile **ret, struct error *err);

void profile_free(struct profile *p);

/* The label of that key, or NULL. */
const struct profile_label *profile_label(const struct profile *p, const struct profile_sample *s,
					  struct str key);
