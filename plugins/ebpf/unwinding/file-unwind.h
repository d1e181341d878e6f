/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks over copied stacks by the files themselves, before their tables are there: the rule of each address is found
 * by the file's own search table (unwind/row-finder.h) and remembered. A compiler's libraries take half a second to be read,
 * and copies that waited for them would be a hundred megabytes by then. A walk takes some 10 µs for each frame that is new, and next
 * to nothing for one that was met.
 *
 * A walk that meets anything else than what exception handlers could go over comes to nothing, and its copy has
 * to wait: code of Go or of no file, frames that a signal interrupted.
 *
 * Zero-initialised is empty. Memory: some 100 KiB a file, of EARLY_FILES at most, and 128 KiB of rules, until nobody needs them.
 */
#ifndef EBPF_UNWINDING_FILE_UNWIND_H
#define EBPF_UNWINDING_FILE_UNWIND_H

#include "ebpf/processes/maps.h"
#include "ebpf/unwinding/native-unwind.h"

#include "unwind/row-finder.h"

#include <andiron/host.h>

#define EARLY_FILES 32u
#define EARLY_ROWS  4096u /* a power of two */

struct early_file {
	uint32_t id;         /* never given twice; 0: a place that is free */
	struct image *image; /* with a reference; NULL: the vDSO */
	struct elf_row_finder *finder; /* NULL: it cannot be asked */
};

struct early_row {
	uint32_t id; /* the file's; 0: empty */
	struct elf_row row; /* of exactly this address; rule 0: there is none */
};

struct early {
	struct early_file files[EARLY_FILES];
	struct early_row *rows; /* EARLY_ROWS, or NULL */
	uint32_t n_opened;      /* files, ever: who was opened first makes room */
	uint32_t n_walks;       /* since early_rest */
};

/*
 * Walks a snapshot's copies in a process that had these mappings when it was taken; those behind them do not count. True where
 * that went to the thread's entry, or as far as the copies go: then no table would help either, and *w is the walk as of
 * walk_snapshot. Else *w means nothing.
 */
bool early_walk(struct early *e, const struct andiron_extension *objects, const struct mapset *maps,
		const struct sampler_snapshot *snapshot, const struct walk_stack stacks[SAMPLER_COPIES],
		struct andiron_walk *w);

/* Gives files and memory back, if none was needed since the last time. */
void early_rest(struct early *e);
void early_free(struct early *e);

#endif
