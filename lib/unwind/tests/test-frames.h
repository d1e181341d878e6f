/* SPDX-License-Identifier: Apache-2.0 */
/* Call-frame information for tests, written byte by byte into a file of its own, and the rows that
 * come out. What fails here ends the test. */
#pragma once

#include "base/buf.h"
#include "unwind/rows.h"
#include "elf/tests/test-write.h"
#include "bpfwire/unwind-tables.h"

#define FRAMES_AT UINT64_C(0x100000)
#define HDR_AT    UINT64_C(0x200000)

/* Instructions; lengths come from the literal. */
#define OPS(bytes) bytes, sizeof(bytes) - 1

#define RA    "\x90\x01"        /* x86-64: return address at CFA - 8 */
#define USUAL "\x0c\x07\x08" RA /* and the CFA at rsp + 8 */

struct frames {
	struct elf_writer w;
	struct buf bytes;
	struct buf table; /* of .eh_frame_hdr */
	bool debug;       /* write .debug_frame, without header */
	bool hdr;         /* write the header; functions must be ascending */
	struct elf_rows_stats stats;
	struct elf_row rows[64];
	size_t n;
};

void frames_begin(struct frames *x);
void frames_end(struct frames *x);

/* A CIE with code alignment 1 and data alignment -8; returns where it lies. */
size_t frames_cie(struct frames *x, const char *augmentation, uint8_t ra, const char *ops,
		  size_t n);
/* One with the usual rules of x86-64. */
size_t frames_usual_cie(struct frames *x);
/* `of`: its CIE. */
void frames_fde(struct frames *x, size_t of, uint64_t start, uint32_t size, const char *ops,
		size_t n);
/* A zero-length record: the end. */
void frames_terminator(struct frames *x);

void frames_write_sections(struct frames *x);
/* Reads rows into x->rows, which must ascend and differ from each other. */
int frames_read_fd(struct frames *x, int fd);
void frames_read(struct frames *x);

void frames_row_is(const struct frames *x, size_t i, uint64_t address, uint64_t rule);

/* base + offset, the return address at CFA - 8. */
uint64_t frames_rule(uint32_t base, int32_t offset, int32_t fp);

#define ENTRY_RULE frames_rule(UNWIND_X86_RSP, 8, UNWIND_FP_SAME)
