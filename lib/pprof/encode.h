/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a pprof profile (google/pprof, proto/profile.proto) that `go tool pprof`, Pyroscope and
 * Parca all take as it is meant:
 *
 *  - ids of functions, locations and mappings are their positions from 1;
 *  - string 0 is "", every string is UTF-8 (bytes that are not become U+FFFD);
 *  - a mapping whose locations have names and one whose locations have only
 *    addresses are two mappings, since Pyroscope wipes every address under
 *    has_functions; the flags are computed over a mapping's own locations;
 *  - period type and duration are always there, lists are packed;
 *  - samples of equal stack and labels are one; none has only zero values.
 *
 * Call order: types first, then anything; what an entry refers to is added before it. Adding an
 * equal entry again gives the first one's id. Ids are the encoder's own (strings from 0, all else
 * from 1, 0 meaning "none").
 *
 * When memory is short, or an entry would pass 1 GiB, an add returns 0 and the encoder stays
 * `failed`: only pprof_finish need be checked. Nothing here depends on the order in which adds of
 * equal content arrive, apart from ids.
 *
 * Memory: the entries in wire form, each once, plus an index (at most 26 bytes an entry and, while
 * it doubles, again as much as the kind that grows). An encoder is used by one thread at a time. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#define PPROF_MAX_TYPES 8

struct pprof_encoder;

/* NULL when memory is short. */
struct pprof_encoder *pprof_encoder_new(void);
void pprof_encoder_free(struct pprof_encoder *e);

/* A sample type, as string ids; at most PPROF_MAX_TYPES. Samples carry one value for each, in this
 * order. Not after the first sample. */
void pprof_add_type(struct pprof_encoder *e, uint32_t type, uint32_t unit);

/* Copied. Expected O(s.n). */
uint32_t pprof_add_string(struct pprof_encoder *e, struct str s);

/* Strings by id: name as shown, system_name as linked, source file. */
struct pprof_function {
	uint32_t name;
	uint32_t system_name;
	uint32_t file;
	uint32_t start_line;
};

uint32_t pprof_add_function(struct pprof_encoder *e, const struct pprof_function *f);

/* Strings by id: path and build id. All of start, limit and offset 0 says that addresses are the
 * file's own. */
struct pprof_mapping {
	uint64_t start;
	uint64_t limit;
	uint64_t offset;
	uint32_t file;
	uint32_t build_id;
};

uint32_t pprof_add_mapping(struct pprof_encoder *e, const struct pprof_mapping *m);

struct pprof_line {
	uint32_t function; /* not 0 */
	uint32_t line;
	uint32_t column;
};

/* Inlined callees first. A location without address and lines is dropped by servers together with
 * its samples: name it "[unknown]". */
struct pprof_location {
	uint64_t address;
	uint32_t mapping;
	uint32_t n_lines;
	const struct pprof_line *lines;
};

uint32_t pprof_add_location(struct pprof_encoder *e, const struct pprof_location *l);

/* A text label if `text` is not 0, else a number. Strings by id. */
struct pprof_label {
	uint32_t key;
	uint32_t text;
	int64_t number;
	uint32_t unit;
};

/* Locations leaf first; as many values as there are types. */
struct pprof_sample {
	const uint32_t *locations;
	const struct pprof_label *labels;
	const int64_t *values;
	uint32_t n_locations;
	uint32_t n_labels;
};

/* The sum of two values, at the limit of the type where it would pass that. */
static inline int64_t pprof_sum(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

/* Adds to the values of an equal sample (sums saturate). A sample of zeros only is left out.
 * Expected O(size). */
void pprof_add_sample(struct pprof_encoder *e, const struct pprof_sample *s);

void pprof_add_comment(struct pprof_encoder *e, uint32_t text);
void pprof_clear_comments(struct pprof_encoder *e);

/* Whether an add has failed: everything from then on does nothing. */
bool pprof_failed(const struct pprof_encoder *e);

/* How many samples there are, and how long the profile is before compression: an upper bound that
 * lies at most n_types * 10 bytes a sample above. By these a sender keeps below a server's limits.
 * O(1). */
uint32_t pprof_n_samples(const struct pprof_encoder *e);
size_t pprof_size_bound(const struct pprof_encoder *e);

/* Strings by id. period_type 0 means: as the first sample type. */
struct pprof_head {
	int64_t time_ns;     /* CLOCK_REALTIME, start of the window */
	int64_t duration_ns; /* below 1 counts as 1: a delta needs one */
	int64_t period;
	uint32_t period_type;
	uint32_t period_unit;
};

/* Appends the profile to `out`, as gzip of that level (1 to 9), or plain with level 0, and says how
 * long it is uncompressed (ret_raw may be NULL). The encoder stays as it is and can go on. 0,
 * -ENOMEM, or -E2BIG where out's limit is passed; `out` is then as before. Streams through 64 KiB.
 */
int pprof_finish(const struct pprof_encoder *e, const struct pprof_head *head, int level,
		 struct buf *out, size_t *ret_raw);
