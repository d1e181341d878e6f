/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of rows for code that is known by its bytes. */
#include "base/cleanup.h"
#include "testing/test.h"
#include "codescan/uncovered.h"
#include "unwind/tests/test-frames.h"

#include <stddef.h>

#define TEXT_AT UINT64_C(0x1000)

struct program {
	struct frames x;
	uint64_t entry;
	const char *interpreter; /* NULL: none */
};

static void begin(struct program *p)
{
	*p = (struct program){0};
	frames_begin(&p->x);
}

/* Puts code into a section and a segment of its own. */
static void put_code(struct program *p, const char *name, uint64_t at, const void *code, size_t n)
{
	uint16_t section = elf_write_section(&p->x.w, name, SHT_PROGBITS, at, code, n);

	p->x.w.sections.p[section].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	elf_write_segment(&p->x.w, PT_LOAD, PF_R | PF_X, p->x.w.sections.p[section].sh_offset, at,
			  n);
}

static void read_program(struct program *p)
{
	_cleanup_(buf_free) struct buf out = BUF_NULL;
	_cleanup_(closep) int fd = -1;

	if (p->interpreter)
		elf_write_segment(&p->x.w, PT_INTERP, PF_R, 0, 0, 8);
	frames_write_sections(&p->x);
	elf_write_file(&p->x.w, &out);
	memcpy(out.p + offsetof(Elf64_Ehdr, e_entry), &p->entry, sizeof(p->entry));
	fd = elf_memfd(out.p, out.n);
	expect_eq(frames_read_fd(&p->x, fd), 0);
}

/* nop; mov $15, %rax; syscall; in a row of nops */
static void put_trampoline(struct program *p, size_t at, size_t n)
{
	char *code = malloc(n);

	memset(code, 0x90, n);
	memcpy(code + at, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9);
	put_code(p, ".text", TEXT_AT, code, n);
	free(code);
}

static int count_signals(const struct frames *x, uint64_t address)
{
	int n = 0;

	for (size_t i = 0; i < x->n; i++)
		if (unwind_rule_cfa(x->rows[i].rule) == UNWIND_CFA_SIGNAL) {
			n++;
			frames_row_is(x, i, address,
				      unwind_rule(UNWIND_X86_RSP, UNWIND_CFA_SIGNAL, 0, 0, 40));
			expect_eq(x->rows[i + 1].address, address + 10);
		}
	return n;
}

/* What signal handlers return to is found wherever it stands, also across the pieces in which the
 * text is read, and begins one byte early; a program with an interpreter has it elsewhere. */
TEST(trampolines_are_found)
{
	static const size_t places[] = {0, 100, 65536 - 9, 65536 - 8, 65536 - 1, 65536, 131000};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		for (int with = 0; with < 2; with++) {
			struct program p;

			begin(&p);
			p.entry = TEXT_AT + 131060;
			p.interpreter = with ? "ld.so" : NULL;
			put_trampoline(&p, places[i], 131064);
			read_program(&p);
			expect(p.x.n >= 2);
			expect_eq(count_signals(&p.x, TEXT_AT + places[i] - 1), !with);
			frames_end(&p.x);
		}
	}
}

/* A trampoline counts before what the file says of it; the rest of that function is its own. */
TEST(trampolines_count_first)
{
	struct program p;

	begin(&p);
	frames_fde(&p.x, frames_usual_cie(&p.x), TEXT_AT, 64, OPS(""));
	put_trampoline(&p, 32, 64);
	read_program(&p);
	frames_row_is(&p.x, 0, TEXT_AT, ENTRY_RULE);
	frames_row_is(&p.x, 1, TEXT_AT + 31,
		      unwind_rule(UNWIND_X86_RSP, UNWIND_CFA_SIGNAL, 0, 0, 40));
	expect_eq(p.x.stats.rows[ELF_ROWS_MADE], 2);
	frames_end(&p.x);
}

/* arm64's stands in the vDSO, a small file without an entry. */
TEST(trampoline_of_arm64)
{
	static const uint32_t code[] = {0xd503201f, 0xd503201f, 0xd2801168, 0xd4000001};
	struct program p;

	begin(&p);
	p.x.w.machine = EM_AARCH64;
	put_code(&p, ".text", TEXT_AT, code, sizeof(code));
	read_program(&p);
	frames_row_is(&p.x, 0, TEXT_AT + 7,
		      unwind_rule(UNWIND_ARM_SP, UNWIND_CFA_SIGNAL, 0, 0, 312));
	frames_row_is(&p.x, 1, TEXT_AT + 17,
		      0); /* the system call returns to its end, were it to return */
	frames_end(&p.x);
}

/* musl's clone: behind the system call both threads stand, behind the jump the new one alone, which
 * nobody has called. */
TEST(threads_of_musl_begin_in_its_clone)
{
	static const uint8_t clone[] = {0x0f, 0x05, 0x85, 0xc0, 0x75, 0x0f, 0x31, 0xed,
					0x5f, 0x41, 0xff, 0xd1, 0x89, 0xc7, 0x31, 0xc0,
					0xb0, 0x3c, 0x0f, 0x05, 0xf4, 0xc3};
	struct program p;

	begin(&p);
	p.entry = TEXT_AT + 64;
	put_code(&p, ".text", TEXT_AT, clone, sizeof(clone));
	frames_fde(&p.x, frames_usual_cie(&p.x), TEXT_AT, sizeof(clone), OPS(""));
	read_program(&p);
	frames_row_is(&p.x, 0, TEXT_AT, ENTRY_RULE);
	frames_row_is(&p.x, 1, TEXT_AT + 2,
		      unwind_rule(UNWIND_X86_RSP, UNWIND_CFA_CHILD, UNWIND_RA_CFA, UNWIND_FP_SAME,
				  8));
	frames_row_is(&p.x, 2, TEXT_AT + 6, unwind_rule(0, UNWIND_CFA_END, 0, 0, 0));
	frames_row_is(&p.x, 3, TEXT_AT + 21, frames_rule(UNWIND_X86_RSP, 8, UNWIND_FP_SAME));
	frames_row_is(&p.x, 4, TEXT_AT + 22, 0);
	frames_end(&p.x);
}

/* What runs first and last of a file, found by its dynamic section; nothing where it is not what
 * linkers make. */
TEST(beginnings_and_ends_are_known)
{
	static const uint8_t init[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x08, 0x48,
				       0x8b, 0x05, 0x01, 0x02, 0x03, 0x00, 0x48, 0x85, 0xc0,
				       0x74, 0x02, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08, 0xc3};
	const uint64_t rules[] = {frames_rule(UNWIND_X86_RSP, 8, UNWIND_FP_SAME),
				  frames_rule(UNWIND_X86_RSP, 16, UNWIND_FP_SAME)};

	for (int known = 0; known < 2; known++) {
		const Elf64_Dyn dynamic[] = {
			{DT_INIT, {TEXT_AT}}, {DT_FINI, {TEXT_AT + 128}}, {DT_NULL, {0}}};
		uint8_t code[256] = {0};
		struct program p;
		uint16_t s;

		begin(&p);
		p.entry = TEXT_AT + 200;
		p.interpreter = "ld.so";
		memcpy(code, init, sizeof(init) - (known ? 0 : 1));
		put_code(&p, ".text", TEXT_AT, code, sizeof(code));
		s = elf_write_section(&p.x.w, ".dynamic", SHT_DYNAMIC, 0, dynamic, sizeof(dynamic));
		elf_write_segment(&p.x.w, PT_DYNAMIC, PF_R, p.x.w.sections.p[s].sh_offset, 0,
				  sizeof(dynamic));
		read_program(&p);
		for (int i = 0; known && i < 4; i++)
			frames_row_is(&p.x, (size_t)i, TEXT_AT + (uint64_t[]){0, 8, 26, 27}[i],
				      i == 3 ? 0 : rules[i == 1]);
		if (!known)
			frames_row_is(&p.x, 0, TEXT_AT + 200,
				      unwind_rule(0, UNWIND_CFA_END, 0, 0, 0));
		frames_end(&p.x);
	}
}

/* An entry that nothing describes is the end of every stack; one that is described is what it says
 * it is. */
TEST(entries_end_stacks)
{
	for (int described = 0; described < 2; described++) {
		struct program p;
		char code[256] = {0};

		begin(&p);
		p.entry = TEXT_AT + 16;
		p.interpreter = "ld.so";
		put_code(&p, ".text", TEXT_AT, code, sizeof(code));
		if (described)
			frames_fde(&p.x, frames_usual_cie(&p.x), TEXT_AT + 16, 8, OPS(""));
		frames_fde(&p.x, frames_usual_cie(&p.x), TEXT_AT + 48, 8, OPS("\x0e\x10"));
		read_program(&p);
		frames_row_is(&p.x, 0, TEXT_AT + 16,
			      described ? ENTRY_RULE : unwind_rule(0, UNWIND_CFA_END, 0, 0, 0));
		frames_row_is(&p.x, 1, TEXT_AT + (described ? 24 : 48),
			      described ? 0 : frames_rule(UNWIND_X86_RSP, 16, UNWIND_FP_SAME));
		frames_end(&p.x);
	}
}

/* Stacks that greenlet makes end where they begin, whatever the file describes: who called that has
 * left its frame since. A file that only imports the function, or gives it no size, is as it was.
 */
TEST(stacks_of_greenlet_end)
{
	static const char name[] = "_ZN8greenlet12UserGreenlet13g_initialstubEPv";
	static const char code[256] = {0};

	for (int form = 0; form < 3; form++) {
		struct program p;

		begin(&p);
		put_code(&p, ".text", TEXT_AT, code, sizeof(code));
		elf_write_symbol(&p.x.w, "PyInit__greenlet", ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 1,
				 TEXT_AT, 16);
		elf_write_symbol(&p.x.w, name, ELF64_ST_INFO(STB_WEAK, STT_FUNC),
				 form == 1 ? SHN_UNDEF : 1, TEXT_AT + 64, form == 2 ? 0 : 32);
		elf_write_symbols(&p.x.w, SHT_DYNSYM);
		frames_fde(&p.x, frames_usual_cie(&p.x), TEXT_AT, 128, OPS(""));
		read_program(&p);
		frames_row_is(&p.x, 0, TEXT_AT, ENTRY_RULE);
		frames_row_is(&p.x, 1, TEXT_AT + (form == 0 ? 64 : 128),
			      form == 0 ? unwind_rule(0, UNWIND_CFA_END, 0, 0, 0) : 0);
		frames_end(&p.x);
	}
}

/* Linkage tables of linkers that describe none: both forms of x86-64, and nothing for bytes that
 * are neither. */
TEST(linkage_tables_are_known)
{
	static const struct {
		const char *slot;
		size_t n;
		int pushed;
	} forms[] = {
		{OPS("\xff\x25\x02\0\0\0\x68\0\0\0\0\xe9\xe0\xff\xff\xff"), 11},
		{OPS("\xf3\x0f\x1e\xfa\x68\0\0\0\0\xe9\xe2\xff\xff\xff\x66\x90"), 9},
		{OPS("\xcc\x25\x02\0\0\0\x68\0\0\0\0\xe9\xe0\xff\xff\xff"), 0},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct program p;
		char code[48] = "\xff\x35\x02\0\0\0\xff\x25\x04";

		begin(&p);
		memcpy(code + 16, forms[i].slot, 16);
		memcpy(code + 32, forms[i].slot, 16);
		put_code(&p, ".plt", TEXT_AT, code, sizeof(code));
		put_code(&p, ".plt.got", TEXT_AT + 0x100, code, 16);
		read_program(&p);
		if (forms[i].pushed) {
			frames_row_is(&p.x, 0, TEXT_AT, frames_rule(7, 16, UNWIND_FP_SAME));
			frames_row_is(&p.x, 1, TEXT_AT + 6, frames_rule(7, 24, UNWIND_FP_SAME));
			frames_row_is(&p.x, 2, TEXT_AT + 16,
				      unwind_rule_more(unwind_rule(7, UNWIND_CFA_PLT, 0,
								   UNWIND_FP_SAME, 8),
						       0, 0, forms[i].pushed));
			frames_row_is(&p.x, 3, TEXT_AT + 48, 0);
		}
		expect_eq(p.x.n, forms[i].pushed ? 6 : 2);
		frames_row_is(&p.x, p.x.n - 2, TEXT_AT + 0x100, ENTRY_RULE);
		frames_end(&p.x);
	}
}

/* arm64's linkage table: its head saves the return address, its slots are leaves. */
TEST(linkage_table_of_arm64)
{
	for (int bti = 0; bti < 2; bti++) {
		uint32_t code[16] = {0xd503245f};
		uint64_t head = TEXT_AT + (bti ? 8 : 4);
		struct program p;

		begin(&p);
		p.x.w.machine = EM_AARCH64;
		code[bti] = 0xa9bf7bf0;
		put_code(&p, ".plt", TEXT_AT, code, sizeof(code));
		read_program(&p);
		frames_row_is(&p.x, 1, head,
			      unwind_rule(UNWIND_ARM_SP, UNWIND_CFA_REG, UNWIND_RA_ALONE, -1, 16));
		frames_row_is(&p.x, 2, TEXT_AT + 32, p.x.rows[0].rule);
		frames_row_is(&p.x, 3, TEXT_AT + 64, 0);
		expect_eq(unwind_rule_other(p.x.rows[0].rule), UNWIND_ARM_LR);
		frames_end(&p.x);
	}
}

/* However many gaps a file has, and however often they lie in the same bytes of it. */
TEST(what_gaps_cost_is_bounded)
{
	_cleanup_(buf_free) struct buf out = BUF_NULL;
	_cleanup_(closep) int fd = -1;
	struct uncovered gaps = {0};
	struct error err = ERROR_NULL;
	struct elf_file file;
	struct program p;
	uint64_t start, end;

	begin(&p);
	put_trampoline(&p, 0, 0x1000);
	frames_write_sections(&p.x);
	elf_write_file(&p.x.w, &out);
	memcpy(out.p + offsetof(Elf64_Ehdr, e_entry), &(uint64_t){TEXT_AT}, sizeof(uint64_t));
	fd = elf_memfd(out.p, out.n);
	expect_eq(elf_file_open(&file, fd, &err), 0);
	expect_eq(uncovered_open(&gaps, rows_machine_of(EM_X86_64), &file, NULL), 0);
	expect_eq(gaps.bytes_left, file.size);
	gaps.bytes_left = 0x100;
	gaps.entries_left = 2 * (file.n_sections + file.n_segments);
	expect_eq(uncovered_begin(&gaps, TEXT_AT, TEXT_AT + 0x101, &start, &end), 0);
	expect_eq(uncovered_begin(&gaps, TEXT_AT, TEXT_AT + 0x80, &start, &end), 1);
	expect_eq(gaps.bytes_left, 0x80);
	expect_eq(uncovered_begin(&gaps, TEXT_AT, TEXT_AT + 0x80, &start, &end), 0);
	expect_eq(gaps.entries_left, 0);
	uncovered_close(&gaps);
	elf_file_close(&file);
	frames_end(&p.x);
}
