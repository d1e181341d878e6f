/* SPDX-License-Identifier: Apache-2.0 */
/* Profile batches (andiron/batch.h) into pprof. An export gathers rows of one or more batches and
 * writes them as one profile; it is what `profile.file` keeps over a run and what a sender makes
 * for one series.
 *
 *     x = pprof_export_new(STR("process_cpu"), EXPORT_LABELS);
 *     pprof_export_begin(x, &view);
 *     for each row of a group: pprof_export_row(x, row);
 *     pprof_export_finish(x, time_ns, 1, &out, &raw_bytes);
 *
 * How frames are told:
 *  - with names: a location with lines, in its mapping;
 *  - looked up in vain: by what stands in for a name (abi/unsymbolized.h); with EXPORT_ADDRESSES,
 *    where the file has a build id, as an address alone, left for a server to name. The names and
 *    the addresses of one file are then two mappings (pprof/encode.h);
 *  - not looked up, but in a file: an address in its mapping;
 *  - with neither: the name "[unknown]" in the mapping "[anon]", since servers
 *    drop what has neither lines nor mapping;
 *  - of the kernel: in a mapping whose file begins with "[kernel";
 *  - markers ("[stack truncated]"): in the mapping "[andiron]"; runtime frames
 *    without a file: in one named after the runtime, "[cpython]".
 *
 * A mapping's build id is the GNU one, else Go's. An export is used by one thread at a time; it
 * copies all it needs from a batch. */
#pragma once

#include "abi/batch-view.h"
#include "base/buf.h"

#define EXPORT_SAMPLES 1u /* a first sample type "samples" in "count" */
/* Every attribute of a row ("process", "pid", "comm"), then its target's labels, apart from those
 * that begin with "__". Of equal keys the first counts. */
#define EXPORT_LABELS  2u
#define EXPORT_LOSSES  8u  /* a comment "andiron: lost N samples: REASON" for each reason */
#define EXPORT_WHOLE   16u /* all rows will be added: the program's mapping may be put first */
#define EXPORT_NAME    32u /* label "process" (text) alone: what servers keep of a sample */
#define EXPORT_SPELLED 64u /* types are spelled by export_spell */
/* Frames without a name stay addresses where a server may name them. */
#define EXPORT_ADDRESSES 128u
/* For otlp.h: a mapping's build id is all of its file's ids, apart by spaces, OpenTelemetry's hash
 * behind EXPORT_HTLHASH; and labels "comm" and "tid", if the row has them. */
#define EXPORT_IDS     256u
#define EXPORT_HTLHASH "htlhash:"

#define EXPORT_SPELLED_MAX 128 /* bytes, the terminating NUL among them */

/* A type's name, kind or unit as every server takes it: letters, digits and underscores, not
 * beginning with a digit, "unknown" for none, cut off at EXPORT_SPELLED_MAX. Pyroscope refuses "-"
 * there, and Parca whatever its query language cannot spell. Returns whether anything was changed.
 */
bool export_spell(struct str s, char out[EXPORT_SPELLED_MAX]);

struct pprof_export;

/* `name` chooses the profile types: those of that name ("process_cpu"), of
 * the first batch that has any. Empty chooses the name of the first type met.
 * Copied. NULL when memory is short. */
struct pprof_export *pprof_export_new(struct str name, uint32_t flags);
void pprof_export_free(struct pprof_export *x);

/* Makes `view` the batch that rows are taken from, widens the window to hold its own, and gathers
 * its losses. The view is borrowed until the next begin, or until the last row. 0 or -ENOMEM.
 * O(locations of the batch) memory. */
int pprof_export_begin(struct pprof_export *x, const struct batch_view *view);

/* Adds a row of the current batch: 0; 1 if its type is not among those chosen (nothing added);
 * -ENOMEM (the export is of no further use). Equal stacks with equal labels are summed. Expected
 * O(frames), O(1) for each location met before. */
int pprof_export_row(struct pprof_export *x, uint32_t row);

/* Begins with `view` and adds all its rows: 0 or -ENOMEM, as the two above. */
int pprof_export_batch(struct pprof_export *x, const struct batch_view *view);

/* Distinct samples, samples behind them by the batches' own count, and an upper bound of the
 * uncompressed size. O(1). A sender that must stay below a limit finishes an export when these come
 * near, and goes on with a new one. */
uint32_t pprof_export_n_samples(const struct pprof_export *x);
uint64_t pprof_export_weight(const struct pprof_export *x);
size_t pprof_export_size(const struct pprof_export *x);

/* Appends the profile to `out`: see pprof_finish (pprof/encode.h) for level, ret_raw and failure.
 * time_ns is the profile's time, 0: the start of the window. The export stays and can go on. */
int pprof_export_finish(struct pprof_export *x, int64_t time_ns, int level, struct buf *out,
			size_t *ret_raw);
