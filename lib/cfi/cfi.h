/* SPDX-License-Identifier: Apache-2.0 */
/* Call-frame information: what .eh_frame and .debug_frame say of each function, record by record,
 * and the table that its instructions build up: at every boundary a full row, which is a rule for
 * each register and for the canonical frame address (CFA).
 *
 * A section is read through a window, records are found where the caller says, and nothing is taken
 * from the heap per record. Expressions are not evaluated here: a row points to their bytes.
 *
 * Formats: Linux Standard Base Core 5.0 §10.5 and §10.6 (.eh_frame, pointer encodings), DWARF 5
 * §6.4 and §7.24, and the vendors' instructions that GNU and Arm have added (DWARF for the Arm
 * 64-bit architecture §4.6). All of it is untrusted: -EBADMSG stands for a record that does not
 * parse, and the next one may. */
#pragma once

#include "cfi/cfi-bytes.h"
#include "elf/file.h"

#include <errno.h>

#define CFI_REGISTERS 128u /* rules of registers with higher numbers are passed over */
#define CFI_REMEMBER  8u   /* rows remembered at a time */
#define CFI_CIES      8u   /* kept parsed */

/* How a register of the caller is found. */
#define CFI_UNSPECIFIED    0
#define CFI_UNDEFINED      1
#define CFI_SAME           2
#define CFI_OFFSET         3 /* at CFA + value */
#define CFI_VAL_OFFSET     4 /* is CFA + value */
#define CFI_REGISTER       5 /* in register number value */
#define CFI_EXPRESSION     6 /* at what the expression gives; the CFA is pushed first */
#define CFI_VAL_EXPRESSION 7 /* is what it gives */

struct cfi_rule {
	uint8_t how;
	uint32_t n; /* bytes of the expression */
	union {
		int64_t value;
		const uint8_t *expression; /* valid as long as the FDE */
	};
};

struct cfi_row {
	struct cfi_rule cfa; /* CFI_REGISTER with offset, CFI_EXPRESSION, or CFI_UNSPECIFIED */
	int64_t cfa_offset;
	uint32_t n; /* rules from here on are unspecified, whatever they hold */
	struct cfi_rule rules[CFI_REGISTERS];
};

static inline struct cfi_rule cfi_row_rule(const struct cfi_row *row, uint32_t n)
{
	return n < row->n ? row->rules[n] : (struct cfi_rule){0};
}

struct cfi_section;

/* What the functions of one kind share. */
struct cfi_cie {
	uint64_t offset; /* of the record in the section */
	uint64_t code_align;
	int64_t data_align;
	uint32_t ra; /* column of the return address */
	uint8_t encoding;
	bool has_size; /* FDEs carry augmentation data */
	bool signal; /* frames that a signal interrupts: their addresses are not return addresses */
	bool valid;
	uint8_t *bytes; /* copy of the record's content, which `initial` points into */
	size_t capacity;
	struct cfi_row initial;
};

struct cfi_fde {
	struct cfi_section *section;
	const struct cfi_cie *cie;
	uint64_t offset, next; /* of the record in the section; of the one behind it */
	uint64_t start, end;   /* addresses; equal where it covers nothing */
	struct cfi_bytes
		program; /* its instructions, in the window: until the section is read again */
};

struct cfi_section {
	uint64_t address; /* virtual */
	uint64_t size;
	bool debug;    /* .debug_frame's layout */
	bool open_end; /* its size is not known: a terminator ends it */
	/* The window, or the whole where the section was compressed. */
	int fd;
	uint64_t offset; /* in the file */
	uint8_t *window;
	uint64_t low, high;
	size_t capacity;
	struct cfi_cie cies[CFI_CIES];
};

#define CFI_SECTION_NULL ((struct cfi_section){.fd = -1})

#define CFI_INFLATED_MAX ((size_t)256 << 20)

/* Opens a section; at most CFI_INFLATED_MAX bytes of one that is compressed are taken. 0, -ENOEXEC,
 * -E2BIG (also: of 4 GiB and more), -ENOTSUP, -ENOMEM or an errno. The descriptor must outlive it.
 * Memory: the window, at most 64 KiB and an eighth of the section, more only for larger records. */
int cfi_section_open(struct cfi_section *s, const struct elf_file *f, const Elf64_Shdr *header);
/* The same for a range of the file that has no section header; it ends at the first terminator, at
 * the latest after `size` bytes. */
int cfi_section_open_range(struct cfi_section *s, const struct elf_file *f, uint64_t offset,
			   uint64_t size, uint64_t address);
void cfi_section_close(struct cfi_section *s);
/* Whether a section that could not be opened counts as absent: memory and disk are not at fault. */
static inline bool cfi_is_absent(int r)
{
	return r == -ENOEXEC || r == -ENOTSUP || r == -ENODATA || r == -E2BIG;
}

/* Reads the record at fde->next. 1: an FDE; 0: a CIE or a terminator, passed over; -EBADMSG: an FDE
 * that does not parse, passed over; -ENODATA: the section ends here; -ENOMEM or pread's errno.
 * fde->offset and fde->next are right in the first three cases. Amortised O(record), where records
 * are near to each other. */
int cfi_section_next(struct cfi_section *s, struct cfi_fde *fde);

/* The CIE at `offset`, until others take its place. 0, -EBADMSG, -ENOMEM or an errno. */
int cfi_section_cie(struct cfi_section *s, uint64_t offset, const struct cfi_cie **ret);

/* Bytes of the section, until the next read. -ENODATA, -ENOMEM or an errno. */
int cfi_section_bytes(struct cfi_section *s, uint64_t offset, uint64_t n, const uint8_t **ret);

/* The rows of one function. */
struct cfi_run {
	const struct cfi_cie *cie;
	struct cfi_bytes program;
	uint64_t start, end; /* of the row */
	uint64_t limit;      /* the function's end */
	bool changed;        /* the CFA or a watched register's rule; the caller resets it */
	bool more;
	uint64_t watch[CFI_REGISTERS / 64];
	uint32_t depth;
	struct cfi_row row;
	struct cfi_row remembered[CFI_REMEMBER];
};

/* Whether a function's own instructions may define the CFA by an expression, or from one of
 * `registers` (a bit for each below 32), as their bytes tell: operands may look like it. Saves most
 * runs of who asks no more than that. */
bool cfi_may_define_cfa_by(const struct cfi_fde *fde, uint32_t registers);

/* `watch` is the caller's, set beforehand; cfi_run_begin sets `changed`. */
void cfi_run_begin(struct cfi_run *run, const struct cfi_fde *fde);

/* The next row, [run->start, run->end) as the instructions say, which need not rise or end within
 * the function. 1, 0 when there is none, -EBADMSG: the instructions make no sense from run->end on.
 * O(instructions up to the next boundary). */
int cfi_run_next(struct cfi_run *run);
