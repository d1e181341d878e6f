/* SPDX-License-Identifier: Apache-2.0 */
/* A profile batch: stacks with values over one window of time, immutable, shared by all who read
 * it. Its tables mirror the dictionary of OTLP's profiles signal (opentelemetry-proto,
 * profiles/v1development): entry 0 of STRING, FUNCTION, LOCATION, MAPPING, STACK, ATTRIBUTE and
 * LINK is the null entry, and every index into them may be 0.
 *
 * The header is a table of columns; a column is an array of records of
 * `elem_size` bytes inside a segment. Offsets, not pointers, so the same
 * bytes work in a sealed memfd. A derived batch (symbolized, relabeled) adds a
 * segment, replaces the columns that differ and borrows the rest by retaining
 * its parent; it lists its parent's segments first and in the same order, so
 * that borrowed indices stay true. Readers ignore columns and record tails that they do not know;
 * a record shorter than they know reads as zero beyond its end.
 *
 * Rows are grouped: group g owns rows [row_start, +n_rows) and every row belongs to exactly one
 * group, which carries the labels of its target. Equal stacks are one (start, length) pair. Frames
 * are listed leaf first.
 *
 * All segments together are at most 64 MiB, each 8-aligned. */
#ifndef ANDIRON_BATCH_H
#define ANDIRON_BATCH_H

#include <andiron/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ANDIRON_BATCH_MAX_BYTES (64u << 20)

/* Of one batch: so that sums of many batches do not overflow. */
#define ANDIRON_BATCH_MAX_SAMPLES (1ull << 40)

/* Column ids and the record type of each. */
#define ANDIRON_COL_STRING     1u  /* andiron_string */
#define ANDIRON_COL_FUNCTION   2u  /* andiron_function */
#define ANDIRON_COL_LINE       3u  /* andiron_line; no null entry */
#define ANDIRON_COL_LOCATION   4u  /* andiron_location */
#define ANDIRON_COL_MAPPING    5u  /* andiron_mapping */
#define ANDIRON_COL_STACK      6u  /* andiron_stack */
#define ANDIRON_COL_FRAME      7u  /* uint32_t: location indices that stacks point into */
#define ANDIRON_COL_ATTRIBUTE  8u  /* andiron_attribute */
#define ANDIRON_COL_ATTR_INDEX 9u  /* uint32_t: attribute indices that groups and rows point into */
#define ANDIRON_COL_LINK       10u /* andiron_link */
#define ANDIRON_COL_TYPE       11u /* andiron_profile_type; no null entry */
#define ANDIRON_COL_GROUP      12u /* andiron_group; no null entry */
#define ANDIRON_COL_ROW        13u /* andiron_row; no null entry */
#define ANDIRON_COL_TIME       14u /* int64_t: CLOCK_REALTIME ns of single samples, if wanted */
#define ANDIRON_COL_LOSS       15u /* andiron_loss; no null entry */
#define ANDIRON_COL_ENCODED    16u /* andiron_encoded; no null entry */

/* `length` bytes at `offset` of segment `segment`, valid UTF-8. */
struct andiron_string {
	uint64_t offset;
	uint32_t length;
	uint32_t segment;
};

/* Strings: name as shown, system_name as linked (mangled), source file. */
struct andiron_function {
	uint32_t name;
	uint32_t system_name;
	uint32_t file;
	uint32_t start_line;
};

struct andiron_line {
	uint32_t function;
	uint32_t line;
	uint32_t column;
	uint32_t reserved;
};

#define ANDIRON_FRAME_NATIVE  1u
#define ANDIRON_FRAME_KERNEL  2u
#define ANDIRON_FRAME_RUNTIME 3u /* `runtime` names it: "cpython", "hotspot" */
/* not code: says why a stack ends; `runtime` and its line's function are its text */
#define ANDIRON_FRAME_MARKER 4u

/* `address` is the ELF virtual address within the mapping's file (for kernel
 * frames the kernel address), return addresses already moved back into the
 * call. Lines [line_start, +n_lines) list inlined callees first; n_lines is 0
 * until somebody has named the frame.
 *
 * Where a symbolizer found no name (ANDIRON_LOCATION_UNSYMBOLIZED) there may be one line all the
 * same. Its function stands in for the name: the file and where the function begins,
 * "[libcrypto.so.3 fn 0x1a2b30]". Consumers that show frames show it; consumers that send addresses
 * to a server that symbolizes by build id leave it out. */
struct andiron_location {
	uint64_t address;
	uint32_t mapping;
	uint16_t kind;
	uint16_t reserved;
	uint32_t runtime;
	uint32_t line_start;
	uint32_t n_lines;
	uint32_t flags;
};

/* a symbolizer looked and found no name; its line stands in */
#define ANDIRON_LOCATION_UNSYMBOLIZED 1u

/* One mapped file. start, limit and offset are 0: addresses are already the file's own. The ids are
 * strings: GNU build id as hex, Go build id as written, file_id the OpenTelemetry hash (32 hex
 * digits: the first 16 bytes of SHA-256 over the first 4 KiB, the last 4 KiB and the big-endian
 * 64-bit length). `object` is an id of andiron.objects/1, held by the batch. */
struct andiron_mapping {
	uint64_t start;
	uint64_t limit;
	uint64_t offset;
	uint64_t object;
	uint32_t file;
	uint32_t gnu_build_id;
	uint32_t go_build_id;
	uint32_t file_id;
};

/* Frames [start, +length) of FRAME, leaf first. */
struct andiron_stack {
	uint32_t start;
	uint32_t length;
};

#define ANDIRON_ATTRIBUTE_STRING 1u /* value: a string index */
#define ANDIRON_ATTRIBUTE_INT    2u /* value: an int64_t */

struct andiron_attribute {
	uint64_t value;
	uint32_t key;
	uint32_t kind;
	uint32_t unit;
	uint32_t reserved;
};

struct andiron_link {
	uint8_t trace_id[16];
	uint8_t span_id[8];
};

/* What is counted, all names as Pyroscope spells them: name "process_cpu",
 * type "cpu", unit "nanoseconds", period_type "cpu", period_unit
 * "nanoseconds", period in period_unit. */
struct andiron_profile_type {
	uint32_t name;
	uint32_t type;
	uint32_t unit;
	uint32_t period_type;
	uint32_t period_unit;
	uint32_t reserved;
	int64_t period;
};

/* The rows of one target. Its labels are ATTR_INDEX [label_start, +n_labels): string attributes,
 * sorted by key; names that begin with two underscores are for writers, not for display. */
struct andiron_group {
	uint32_t label_start;
	uint32_t n_labels;
	uint32_t row_start;
	uint32_t n_rows;
};

/* One stack and what was counted on it. `samples` is the number of samples
 * behind `value` (0 where another row of the same walk already carries them).
 * Attributes [attr_start, +n_attrs) of ATTR_INDEX: "pid" and "tid" (INT),
 * "process" and "comm" (STRING). Times are TIME [time_start, +n_times). */
struct andiron_row {
	int64_t value;
	uint64_t samples;
	uint32_t stack;
	uint32_t type;
	uint32_t attr_start;
	uint32_t n_attrs;
	uint32_t link;
	uint32_t n_times;
	uint32_t time_start;
	uint32_t reserved;
};

/* Samples of this window that were lost before they became rows, and why ("ring_full"). For people;
 * the ledger (host.h) counts them. */
struct andiron_loss {
	uint64_t samples;
	uint32_t reason;
	uint32_t reserved;
};

#define ANDIRON_ENCODED_PPROF  1u /* google/pprof, proto/profile.proto; gzip'd or not */
#define ANDIRON_ENCODED_JFR    2u /* Java Flight Recorder, gzip'd or not */
#define ANDIRON_ENCODED_INGEST 3u /* else: the body of a request to Pyroscope's /ingest */

/* A profile as somebody else has encoded it: `length` bytes, not 0, at `offset` of segment
 * `segment`. Its labels are those of group `group`, which has no rows; one of them is `__name__`
 * ("memory"), which JFR and INGEST need not have. It counts as one sample of the batch, whatever is
 * in it, so nobody opens it to count.
 *
 * `content_type` and `query` (strings) are what a request to /ingest says of such a body, the query
 * without `name`, `from` and `until`: "format=jfr&sampleRate=100". A JFR whose content type is
 * multipart/form-data is in the part `jfr`.
 *
 * `raw_bytes` and `n_stacks` are the size of a pprof uncompressed and how many samples it has, if
 * whoever made the batch has read it through and found it whole; else both are 0. start_ns and
 * end_ns are what the profile covers, CLOCK_REALTIME; 0: the batch's. */
struct andiron_encoded {
	uint64_t offset;
	uint32_t length;
	uint32_t segment;
	uint32_t group;
	uint32_t format;
	uint32_t content_type;
	uint32_t query;
	uint64_t raw_bytes;
	uint64_t n_stacks;
	int64_t start_ns;
	int64_t end_ns;
};

/* A column: `count` records of `elem_size` bytes at `offset` (8-aligned) of segment `segment`.
 * Frozen. */
struct andiron_column {
	uint32_t id;
	uint32_t elem_size;
	uint32_t segment;
	uint32_t reserved;
	uint64_t offset;
	uint64_t count;
};

/* A piece of memory, 8-aligned; `fd` is the sealed memfd behind it or -1. Lives as long as the
 * batch that lists it. Frozen. */
struct andiron_segment {
	const void *base;
	uint64_t size;
	int32_t fd;
	uint32_t reserved;
};

#define ANDIRON_DEMANGLE_NONE       0u
#define ANDIRON_DEMANGLE_SIMPLIFIED 1u
#define ANDIRON_DEMANGLE_TEMPLATES  2u
#define ANDIRON_DEMANGLE_FULL       3u

/* The batch. start_ns and end_ns: CLOCK_REALTIME. `samples` is the sum of samples over all rows,
 * and one for each encoded profile, at most ANDIRON_BATCH_MAX_SAMPLES, by which the ledger counts;
 * `bytes`, by which queues count, is what this batch adds in memory (without what it borrows).
 * producer is the instance that took the samples, sequence rises by one per batch of it.
 *
 * retain and release: [any], O(1), the last release frees; no batch is ever changed after it was
 * handed on. */
struct andiron_batch {
	uint32_t size;
	uint32_t demangle;
	uint32_t n_columns;
	uint32_t n_segments;
	const struct andiron_column *columns;
	const struct andiron_segment *segments;
	int64_t start_ns;
	int64_t end_ns;
	uint64_t samples;
	uint64_t bytes;
	uint64_t producer;
	uint64_t sequence;
	void *owner;
	void (*retain)(void *owner);
	void (*release)(void *owner);
};

#ifdef __cplusplus
}
#endif

#endif
