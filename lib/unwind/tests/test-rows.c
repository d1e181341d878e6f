/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of rows: which function counts where, what is merged, and the fuzz loop. */
#include "base/cleanup.h"
#include "testing/test.h"
#include "unwind/row-finder.h"
#include "codescan/uncovered.h"
#include "unwind/tests/test-frames.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

/* push %rbp; mov %rsp,%rbp; …; leave */
#define FRAME_OPS "\x41\x0e\x10\x86\x02\x43\x0d\x06\x48\x0c\x07\x08"

/* A function with a frame: a row for each change, and one that says where it ends. */
TEST(rows_of_a_function)
{
	struct frames x;

	frames_begin(&x);
	frames_fde(&x, frames_usual_cie(&x), 0x1000, 0x20, OPS(FRAME_OPS));
	frames_read(&x);
	frames_row_is(&x, 0, 0x1000, ENTRY_RULE);
	frames_row_is(&x, 1, 0x1001, frames_rule(UNWIND_X86_RSP, 16, -2));
	frames_row_is(&x, 2, 0x1004, frames_rule(UNWIND_X86_RBP, 16, -2));
	frames_row_is(&x, 3, 0x100c, frames_rule(UNWIND_X86_RSP, 8, -2));
	frames_row_is(&x, 4, 0x1020, 0);
	expect_eq(x.n, 5);
	expect_eq(x.stats.rows[ELF_ROWS_EH_FRAME], 5);
	expect_eq(x.stats.functions, 1);
	expect_eq(x.stats.inexpressible + x.stats.broken, 0);
	frames_end(&x);
}

/* Registers that no rule needs make no rows; functions that join have no gap between them, and
 * equal ones are one row. */
TEST(equal_neighbours_are_merged)
{
	struct frames x;
	size_t of;

	frames_begin(&x);
	of = frames_usual_cie(&x);
	frames_fde(&x, of, 0x1000, 0x10, OPS("\x42\x83\x03\x42\x8c\x04"));
	frames_fde(&x, of, 0x1010, 0x10, OPS(""));
	frames_fde(&x, of, 0x1030, 0x10, OPS(""));
	frames_read(&x);
	frames_row_is(&x, 0, 0x1000, ENTRY_RULE);
	frames_row_is(&x, 1, 0x1020, 0);
	frames_row_is(&x, 2, 0x1030, ENTRY_RULE);
	frames_row_is(&x, 3, 0x1040, 0);
	expect_eq(x.n, 4);
	frames_end(&x);
}

#define TEXT 0x1000u

/* The text of the file, from TEXT on: `code` from 0x1010 on, and zeros. */
static void write_text(struct frames *x, const void *code, size_t n_code, size_t n)
{
	_cleanup_(freep) char *text = calloc(1, n);
	uint16_t section;

	expect(text != NULL);
	memcpy(text + 0x10, code, n_code);
	section = elf_write_section(&x->w, ".text", SHT_PROGBITS, TEXT, text, n);
	x->w.sections.p[section].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	elf_write_segment(&x->w, PT_LOAD, PF_R | PF_X, x->w.sections.p[section].sh_offset, TEXT, n);
}

/* What is larger than functions are and not described goes by frame pointers if it keeps them, as
 * the code does that node brings; what does not, or is the last of all, is not known. */
TEST(large_gaps_go_by_frame_pointers)
{
	_cleanup_(freep) char *code = calloc(1, 0x20000);
	struct frames x;
	size_t of;

	expect(code != NULL);
	for (size_t at = 0; at < 0x20000; at += 1024)
		memcpy(code + at, "\x55\x48\x89\xe5", 4);
	frames_begin(&x);
	of = frames_usual_cie(&x);
	frames_fde(&x, of, 0x1000, 0x10, OPS(""));
	frames_fde(&x, of, 0x21010, 0x10, OPS(""));
	frames_fde(&x, of, 0x4101f, 0x10, OPS(""));
	write_text(&x, code, 0x20000, 0x60000);
	frames_read(&x);
	frames_row_is(&x, 0, 0x1000, ENTRY_RULE);
	frames_row_is(&x, 1, 0x1010,
		      unwind_rule(UNWIND_X86_RBP, UNWIND_CFA_REG, UNWIND_RA_CFA, -2, 16));
	frames_row_is(&x, 2, 0x21010, ENTRY_RULE);
	frames_row_is(&x, 3, 0x21020, 0);
	frames_row_is(&x, 4, 0x4101f, ENTRY_RULE);
	frames_row_is(&x, 5, 0x4102f, 0);
	expect_eq(x.n, 6);
	expect_eq(x.stats.rows[ELF_ROWS_MADE], 3);
	frames_end(&x);
}

/* Of many large gaps the first are looked at. */
TEST(large_gaps_are_sampled_so_often)
{
	enum { GAPS = UNCOVERED_SAMPLES + 1, EACH = UNCOVERED_FOREIGN_BYTES + 0x10 };
	_cleanup_(freep) char *code = calloc(GAPS, EACH);
	struct frames x;
	size_t of;

	expect(code != NULL);
	for (size_t at = 0; at < (size_t)GAPS * EACH; at += 1024)
		memcpy(code + at, "\x55\x48\x89\xe5", 4);
	frames_begin(&x);
	of = frames_usual_cie(&x);
	for (uint32_t i = 0; i <= GAPS; i++)
		frames_fde(&x, of, TEXT + (uint64_t)i * EACH, 0x10, OPS(""));
	write_text(&x, code, (size_t)GAPS * EACH, (size_t)(GAPS + 1) * EACH);
	frames_read(&x);
	frames_row_is(&x, 1, TEXT + 0x10,
		      unwind_rule(UNWIND_X86_RBP, UNWIND_CFA_REG, UNWIND_RA_CFA, -2, 16));
	frames_row_is(&x, 2 * GAPS - 3, TEXT + (uint64_t)(GAPS - 2) * EACH + 0x10,
		      unwind_rule(UNWIND_X86_RBP, UNWIND_CFA_REG, UNWIND_RA_CFA, -2, 16));
	frames_row_is(&x, 2 * GAPS - 1, TEXT + (uint64_t)(GAPS - 1) * EACH + 0x10, 0);
	expect_eq(x.n, 2 * GAPS + 2);
	frames_end(&x);
}

/* An assembler's functions are understood as far as they return where they were called from; amid
 * less of them nothing is looked at. */
TEST(functions_without_a_description)
{
	static const char code[] = "\x53\x90\x5b\xc3" /* 1010: push, nop, pop, ret */
				   "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
				   "\x48\x83\xec\x18\x48\x83\xc4\x18\xc3" /* 1020: sub, add, ret */
				   "\0\0\0\0\0\0\0"
				   "\x53\xff\xe0" /* 1030: push, jmp *%rax */
				   "\0\0\0\0\0\0\0\0\0\0\0\0\0"
				   "\xc3"; /* 1040: ret, and zeros */

	for (uint64_t next = 0x1100; next <= 0x1200; next += 0x100) {
		struct frames x;
		size_t of, at = 1;

		frames_begin(&x);
		of = frames_usual_cie(&x);
		frames_fde(&x, of, 0x1000, 0x10, OPS(""));
		frames_fde(&x, of, next, 0x10, OPS(""));
		write_text(&x, OPS(code), 0x4000);
		frames_read(&x);
		frames_row_is(&x, 0, 0x1000, ENTRY_RULE);
		if (next == 0x1200) {
			frames_row_is(&x, at++, 0x1011,
				      frames_rule(UNWIND_X86_RSP, 16, UNWIND_FP_SAME));
			frames_row_is(&x, at++, 0x1013, ENTRY_RULE);
			frames_row_is(&x, at++, 0x1024,
				      frames_rule(UNWIND_X86_RSP, 32, UNWIND_FP_SAME));
			frames_row_is(&x, at++, 0x1028, ENTRY_RULE);
			frames_row_is(&x, at++, 0x1030, 0);
			frames_row_is(&x, at++, 0x1040, ENTRY_RULE);
			frames_row_is(&x, at++, 0x1050, 0);
		} else {
			frames_row_is(&x, at++, 0x1010, 0);
		}
		frames_row_is(&x, at++, next, ENTRY_RULE);
		frames_row_is(&x, at++, next + 0x10, 0);
		expect_eq(x.n, at);
		frames_end(&x);
	}
}

static void write_four(struct frames *x)
{
	size_t of = frames_usual_cie(x);

	frames_fde(x, of, 0x1000, 0x20, OPS(FRAME_OPS));
	frames_fde(x, of, 0x2000, 0x20, OPS("\x41\x0e\x20"));
	of = frames_usual_cie(x);
	frames_fde(x, of, 0x3000, 0x20, OPS("\x41\x0e\x28"));
	frames_fde(x, of, 0x4000, 0x20, OPS(FRAME_OPS));
}

/* By the header, by an index, and out of .debug_frame a file gives the same rows. */
TEST(ways_to_the_functions_agree)
{
	struct frames a, b, c;

	frames_begin(&a);
	frames_begin(&b);
	frames_begin(&c);
	b.hdr = true;
	c.debug = true;
	write_four(&a);
	write_four(&b);
	write_four(&c);
	frames_read(&a);
	frames_read(&b);
	frames_read(&c);
	expect_eq(a.n, 16);
	expect_eq(b.n, a.n);
	expect_eq(c.n, a.n);
	expect(memcmp(a.rows, b.rows, a.n * sizeof(a.rows[0])) == 0);
	expect(memcmp(a.rows, c.rows, a.n * sizeof(a.rows[0])) == 0);
	expect_eq(c.stats.rows[ELF_ROWS_DEBUG_FRAME], 16);
	frames_end(&a);
	frames_end(&b);
	frames_end(&c);
}

/* A header that leaves out a function, or names one that is not there, is not believed. */
TEST(header_that_lies_is_not_used)
{
	for (int lie = 0; lie < 3; lie++) {
		struct frames x;
		uint32_t wrong = 7;

		frames_begin(&x);
		x.hdr = true;
		write_four(&x);
		if (lie == 0)
			x.table.n -= 8;
		else
			memcpy(x.table.p + (lie == 1 ? 8 : 12), &wrong, 4);
		frames_read(&x);
		expect_eq(x.n, 16);
		expect_eq(x.stats.functions, 4);
		frames_end(&x);
	}
}

/* Where functions overlap the one that begins later counts from there on, as it does for whoever
 * searches the header; of two that begin together the last of the section. */
TEST(overlaps_have_one_answer)
{
	struct frames x;
	size_t of;

	frames_begin(&x);
	of = frames_usual_cie(&x);
	frames_fde(&x, of, 0x1000, 0x100, OPS("\x0e\x10"));
	frames_fde(&x, of, 0x1020, 0x10, OPS("\x0e\x18"));
	frames_fde(&x, of, 0x1020, 0x20, OPS("\x0e\x20"));
	frames_fde(&x, of, 0x1030, 0, OPS("\x0e\x28"));
	frames_read(&x);
	frames_row_is(&x, 0, 0x1000, frames_rule(UNWIND_X86_RSP, 16, UNWIND_FP_SAME));
	frames_row_is(&x, 1, 0x1020, frames_rule(UNWIND_X86_RSP, 32, UNWIND_FP_SAME));
	frames_row_is(&x, 2, 0x1040, 0);
	expect_eq(x.n, 3);
	frames_end(&x);
}

/* .eh_frame counts where both sections speak; .debug_frame fills in what it leaves out. */
TEST(better_source_counts)
{
	struct frames x, y;

	frames_begin(&x);
	frames_fde(&x, frames_usual_cie(&x), 0x1010, 0x10, OPS("\x0e\x10"));
	frames_begin(&y);
	y.debug = true;
	frames_fde(&y, frames_usual_cie(&y), 0x1000, 0x40, OPS("\x0e\x20"));
	frames_fde(&y, 0, 0x1018, 0x10, OPS("\x0e\x28"));
	frames_terminator(&y);
	elf_write_section(&x.w, ".debug_frame", SHT_PROGBITS, 0, y.bytes.p, y.bytes.n);
	frames_read(&x);
	frames_row_is(&x, 0, 0x1000, frames_rule(UNWIND_X86_RSP, 32, UNWIND_FP_SAME));
	frames_row_is(&x, 1, 0x1010, frames_rule(UNWIND_X86_RSP, 16, UNWIND_FP_SAME));
	frames_row_is(&x, 2, 0x1020, frames_rule(UNWIND_X86_RSP, 40, UNWIND_FP_SAME));
	frames_row_is(&x, 3, 0x1028, 0);
	expect_eq(x.n, 4);
	frames_end(&x);
	frames_end(&y);
}

/* Instructions that make no sense end what is known of their function, and only of that one. */
TEST(broken_functions_cost_only_themselves)
{
	struct frames x;
	size_t of;

	frames_begin(&x);
	of = frames_usual_cie(&x);
	frames_fde(&x, of, 0x1000, 0x10, OPS("\x44\x0e\x10\x44\x3f"));
	frames_fde(&x, of, 0x1010, 0x10, OPS("\x0b"));
	frames_fde(&x, 4, 0x1020, 0x10, OPS(""));
	frames_fde(&x, of, 0x1030, 0x10, OPS(""));
	frames_read(&x);
	frames_row_is(&x, 0, 0x1000, ENTRY_RULE);
	frames_row_is(&x, 1, 0x1004, frames_rule(UNWIND_X86_RSP, 16, UNWIND_FP_SAME));
	frames_row_is(&x, 2, 0x1008, 0);
	frames_row_is(&x, 3, 0x1030, ENTRY_RULE);
	frames_row_is(&x, 4, 0x1040, 0);
	expect_eq(x.n, 5);
	expect_eq(x.stats.broken, 3);
	frames_end(&x);
}

/* Remembered rows come back whole, with their CFA. */
TEST(remembered_rows_come_back)
{
	struct frames x;

	frames_begin(&x);
	frames_fde(&x, frames_usual_cie(&x), 0x1000, 0x20,
		   OPS("\x0e\x10\x86\x02\x0a\x44\x0c\x06\x20\xc6\x44\x0b\x44\x0e\x08\xc6"));
	frames_read(&x);
	frames_row_is(&x, 0, 0x1000, frames_rule(UNWIND_X86_RSP, 16, -2));
	frames_row_is(&x, 1, 0x1004, frames_rule(UNWIND_X86_RBP, 32, UNWIND_FP_SAME));
	frames_row_is(&x, 2, 0x1008, frames_rule(UNWIND_X86_RSP, 16, -2));
	frames_row_is(&x, 3, 0x100c, ENTRY_RULE);
	frames_end(&x);
}

/* Files of other machines, and those whose addresses are not settled, have no rows. */
TEST(other_machines_have_no_rows)
{
	for (int i = 0; i < 2; i++) {
		struct frames x;

		frames_begin(&x);
		if (i)
			x.w.type = ET_REL;
		else
			x.w.machine = EM_RISCV;
		frames_fde(&x, frames_usual_cie(&x), 0x1000, 0x10, OPS(""));
		frames_read(&x);
		expect_eq(x.n, 0);
		frames_end(&x);
	}
}

static int stop(void *context, const struct elf_row *row)
{
	return *(int *)context;
}

/* What the receiver returns ends the reading; more functions than are allowed are refused where
 * they would need an index. */
TEST(reading_can_be_ended)
{
	const struct elf_rows_options few = {.max_functions = 3};
	struct elf_file f = ELF_FILE_NULL;
	struct frames x;
	int fd, code = -ECANCELED;

	frames_begin(&x);
	write_four(&x);
	frames_write_sections(&x);
	fd = elf_write_memfd(&x.w);
	expect_eq(elf_file_open(&f, fd, NULL), 0);
	expect_eq(elf_rows_read(&f, NULL, stop, &code, &x.stats, NULL), -ECANCELED);
	expect_eq(x.stats.rows[ELF_ROWS_EH_FRAME], 1);
	expect_eq(elf_rows_read(&f, &few, stop, &code, &x.stats, NULL), -E2BIG);
	elf_file_close(&f);
	close(fd);
	frames_end(&x);
}

/* A file for the fuzz loop: all forms, both sections, a header. */
static void write_rich(struct frames *x, struct buf *out)
{
	struct frames debug;
	size_t of;

	frames_begin(x);
	x->hdr = true;
	write_four(x);
	of = frames_cie(x, "zRS", 16, OPS("\x0f\x04\x77\xa0\x01\x06\x10\x10\x03\x77\xa8\x01"));
	frames_fde(x, of, 0x5000, 0x20, OPS("\x10\x06\x03\x77\xf8\x00\x0a\x41\x0b"));
	of = frames_usual_cie(x);
	frames_fde(x, of, 0x6000, 0x40,
		   OPS("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22\x41\x0c\x03\x08"
		       "\x02\x10\x83"
		       "\x02\x05\x11\x03\x14\x06\x02\x2e\x10\x03\x08\x00\x16\x06\x02\x77\x08"));
	frames_begin(&debug);
	debug.debug = true;
	write_four(&debug);
	frames_terminator(&debug);
	elf_write_section(&x->w, ".debug_frame", SHT_PROGBITS, 0, debug.bytes.p, debug.bytes.n);
	frames_end(&debug);
	frames_write_sections(x);
	elf_write_file(&x->w, out);
}

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static int ascending(void *context, const struct elf_row *row)
{
	struct elf_row *before = context;

	expect(row->address > before->address || before->address == UINT64_MAX);
	*before = *row;
	return 0;
}

/* Whatever a file says, what is found lies where it was sought. */
static int find_rows(int fd)
{
	struct elf_row_finder *finder;
	struct elf_row row;
	int r = elf_row_finder_open(&finder, fcntl(fd, F_DUPFD_CLOEXEC, 0));

	if (r < 0)
		return r;
	for (uint64_t at = 0xff8; at < 0x1100; at += 8)
		if (elf_row_finder_find(finder, at, &row) == 1)
			expect(row.address == at && row.rule != 0);
	elf_row_finder_close(finder);
	return 0;
}

static int use_file(int fd)
{
	struct elf_row before = {.address = UINT64_MAX};
	struct elf_file f = ELF_FILE_NULL;
	struct elf_rows_stats stats;
	int r = elf_file_open(&f, fd, NULL);

	if (r == 0)
		r = elf_rows_read(&f, NULL, ascending, &before, &stats, NULL);
	elf_file_close(&f);
	return r == 0 ? find_rows(fd) : r;
}

static size_t fuzz_runs(size_t few)
{
	const char *text = getenv("ANDIRON_FUZZ_RUNS");
	uint64_t n;

	return text && str_u64(str_of(text), &n) ? (size_t)n : few;
}

/* No file, however wrong, does harm, and rows ascend always. */
TEST(mutated_files_do_no_harm)
{
	static const unsigned char sharp[] = {0, 1, 0x7f, 0x80, 0xff, 0x0a, 0x0b, 0x0f, 0x10, 0x16};
	uint64_t state = 0x9e3779b97f4a7c15;
	struct buf good = BUF_NULL;
	struct frames x;
	char *bad;

	write_rich(&x, &good);
	frames_end(&x);
	bad = malloc(good.n);
	for (size_t i = 0; i < fuzz_runs(20000); i++) {
		_cleanup_(closep) int fd = -1;
		size_t n = i % 8 ? good.n : random_next(&state) % good.n;

		memcpy(bad, good.p, good.n);
		for (uint64_t k = random_next(&state) % 8 + 1; k; k--) {
			uint64_t at = random_next(&state), byte = random_next(&state);

			bad[at % good.n] =
				(char)(byte & 1 ? sharp[byte / 2 % sizeof(sharp)] : byte >> 8);
		}
		fd = elf_memfd(bad, n);
		use_file(fd);
	}
	free(bad);
	buf_free(&good);
}

static int use_file_of(void *context)
{
	return use_file(*(int *)context);
}

TEST(survives_out_of_memory)
{
	struct buf good = BUF_NULL;
	struct frames x;
	int fd;

	write_rich(&x, &good);
	frames_end(&x);
	fd = elf_memfd(good.p, good.n);
	buf_free(&good);
	test_each_failing_allocation(use_file_of, &fd);
	close(fd);
}
