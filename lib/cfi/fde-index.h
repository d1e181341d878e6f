/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a section with call-frame information, in the order of their addresses. By the
 * table in .eh_frame_hdr, read as it is needed, where that is sorted and names exactly the
 * functions that the section has; else by an index of 16 bytes a function.
 *
 * Of functions that begin at one address the one that stands last in the section counts;
 * one that covers nothing is none.
 *
 * Source of .eh_frame_hdr: Linux Standard Base Core 5.0 §10.6.2. */
#pragma once

#include "cfi/reduce.h"

#define ROWS_HDR_CHUNK 512u /* entries read at a time */

struct rows_hdr {
	int fd;
	uint64_t offset, address; /* of the table in the file; of the section */
	uint64_t n;               /* entries; 0: there is none that could be used */
	int32_t chunk[ROWS_HDR_CHUNK][2];
	uint64_t first, n_chunk; /* of the entries in `chunk` */
};

struct rows_index {
	uint64_t start;
	uint32_t offset;
};

struct rows_order {
	struct cfi_section section;
	struct rows_hdr hdr;
	struct rows_index *index; /* NULL: by the header */
	uint64_t n, at;
	uint64_t broken; /* functions passed over */
	bool aux;        /* some rule needs the auxiliary words */
};

/* Surveys an open section, which the order then owns, also after failure. `hdr` stands for
 * .eh_frame_hdr; its n may be 0. `run` is scratch. 0, -E2BIG (more than max_functions), -ENOMEM or
 * an errno. O(section), and n log n where there is no sorted header. */
int rows_order_survey(struct rows_order *o, const struct rows_machine *m, size_t max_functions,
		      struct cfi_run *run);
void rows_order_free(struct rows_order *o);

/* Opens .eh_frame by its section, else by what .eh_frame_hdr says of it, and finds that header:
 * ret_hdr->n is 0 where it is not usable. As cfi_section_open, -ENOEXEC where there is none. */
int rows_frames_open(struct cfi_section *s, const struct elf_file *f, struct rows_hdr *ret_hdr);

/* The last function of a header that begins at or below `address`: 1, where it begins and the
 * address of its record; 0: there is none; or an errno. O(log n), a pread for each step but the
 * last ones. */
int rows_hdr_find(struct rows_hdr *h, uint64_t address, uint64_t *ret_start, uint64_t *ret_record);

/* Where the next function begins: 1, 0 at the end, or an errno. */
int rows_order_peek(struct rows_order *o, uint64_t *ret);
/* That function itself; 1, -EBADMSG: it does not parse; or an errno. */
int rows_order_take(struct rows_order *o, struct cfi_fde *ret);
