/* SPDX-License-Identifier: Apache-2.0 */
/* Code known by its bytes or its name. Contract in rows-known-code.h.
 *
 * A trampoline begins one byte early: a handler "returns" to its first instruction, and who looks
 * for the call that led there looks one byte before. */
#include "unwind/rows-known-code.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "elf/file.h"
#include "bpfwire/unwind-tables.h"

#include <errno.h>
#include <stdlib.h>

#define CHUNK       ((size_t)65536)
#define SMALL_FILE  UINT64_C(65536) /* a vDSO has neither entry nor interpreter */
#define TEXT_MAX    (UINT64_C(256) << 20)
#define ENTRY_BYTES 64u /* what is taken for the entry where no symbol says how long it is */

/* mov $15, %rax; syscall */
static const uint8_t sigreturn_x86[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
/* mov x8, #139; svc #0 */
static const uint8_t sigreturn_arm[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};

/* syscall; test %eax, %eax; jne .+15; xor %ebp, %ebp; pop %rdi; call *%r9; …: musl's clone, whose
 * new thread runs from behind the jump up to the old one's `ret`. */
static const uint8_t clone_musl[] = {0x0f, 0x05, 0x85, 0xc0, 0x75, 0x0f,
				     0x31, 0xed, 0x5f, 0x41, 0xff, 0xd1};

#define OVERLAP (sizeof(clone_musl) - 1) /* of pieces that are searched for these */

/* From the stack pointer to what UNWIND_CFA_SIGNAL points to: struct ucontext up to r8 of its
 * sigcontext; struct siginfo, and struct ucontext up to its regs[0]. */
#define SIGNAL_OFFSET_X86 40
#define SIGNAL_OFFSET_ARM (128 + 176 + 8)

static void add(struct rows_made *made, uint64_t start, uint64_t end, uint64_t rule)
{
	size_t at = made->n;

	if (made->n == ROWS_MADE_MAX || start >= end)
		return;
	while (at && made->pieces[at - 1].start > start)
		at--;
	if ((at && made->pieces[at - 1].end > start) ||
	    (at < made->n && made->pieces[at].start < end))
		return;
	memmove(&made->pieces[at + 1], &made->pieces[at], (made->n - at) * sizeof(made->pieces[0]));
	check(at <= made->n && made->n < ROWS_MADE_MAX);
	made->pieces[at] = (struct rows_piece){start, end, {.rule = rule}};
	made->n++;
}

static uint64_t signal_rule(const struct rows_machine *m)
{
	return unwind_rule(m->sp, UNWIND_CFA_SIGNAL, 0, 0,
			   m->machine == EM_X86_64 ? SIGNAL_OFFSET_X86 : SIGNAL_OFFSET_ARM);
}

uint64_t rows_made_trampoline(const struct rows_machine *m, const uint8_t *code, size_t n)
{
	bool x86 = m->machine == EM_X86_64;
	size_t size = x86 ? sizeof(sigreturn_x86) : sizeof(sigreturn_arm);

	return n >= size && memcmp(code, x86 ? sigreturn_x86 : sigreturn_arm, size) == 0
		       ? signal_rule(m)
		       : 0;
}

static void find_trampolines(struct rows_made *made, const struct rows_machine *m, const uint8_t *p,
			     size_t n, uint64_t address)
{
	bool x86 = m->machine == EM_X86_64;
	const uint8_t *code = x86 ? sigreturn_x86 : sigreturn_arm;
	size_t size = x86 ? sizeof(sigreturn_x86) : sizeof(sigreturn_arm);
	for (const uint8_t *at = p; (at = memmem(at, n - (size_t)(at - p), code, size));
	     at += size) {
		uint64_t start = address + (uint64_t)(at - p);

		if (x86 || start % 4 == 0)
			add(made, start - 1, start + size, signal_rule(m));
	}
}

static uint64_t thread_rule(void)
{
	return unwind_rule(UNWIND_X86_RSP, UNWIND_CFA_CHILD, UNWIND_RA_CFA, UNWIND_FP_SAME, 8);
}

static void find_clones(struct rows_made *made, const struct rows_machine *m, const uint8_t *p,
			size_t n, uint64_t address)
{
	if (m->machine != EM_X86_64)
		return;
	for (const uint8_t *at = p;
	     (at = memmem(at, n - (size_t)(at - p), clone_musl, sizeof(clone_musl)));
	     at += sizeof(clone_musl)) {
		uint64_t behind = address + (uint64_t)(at - p) + 2; /* the system call */

		add(made, behind, behind + 4, thread_rule());
		add(made, behind + 4, behind + 4 + 15, unwind_rule(0, UNWIND_CFA_END, 0, 0, 0));
		add(made, behind + 4 + 15, behind + 4 + 16,
		    unwind_rule(UNWIND_X86_RSP, UNWIND_CFA_REG, 0, UNWIND_FP_SAME, 8));
	}
}

/* Looks through a segment in pieces that overlap. */
static int scan_segment(struct rows_made *made, const struct rows_machine *m,
			const struct elf_file *f, size_t segment)
{
	struct elf_range range = elf_segment_bytes(f, segment);
	uint64_t address = f->segments[segment].p_vaddr, at = 0;
	_cleanup_(freep) uint8_t *chunk = NULL;

	if (range.size > TEXT_MAX)
		range.size = TEXT_MAX;
	chunk = malloc(CHUNK);
	if (!chunk)
		return -ENOMEM;
	while (at < range.size) {
		uint64_t left = range.size - at;
		size_t n = left < CHUNK ? (size_t)left : CHUNK;
		int r = file_pread(f->fd, chunk, n, range.offset + at);

		if (r < 0)
			return r;
		find_trampolines(made, m, chunk, n, address + at);
		find_clones(made, m, chunk, n, address + at);
		if (n == left)
			break;
		at += n - OVERLAP;
	}
	return 0;
}

static int scan_text(struct rows_made *made, const struct rows_machine *m, const struct elf_file *f)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < f->n_segments; i++)
		if (f->segments[i].p_type == PT_LOAD && (f->segments[i].p_flags & PF_X))
			r = scan_segment(made, m, f, i);
	return r;
}

/* The linkage table of lazy binding: a head that pushes, and slots of 16 bytes that push before
 * they jump to it. */
static int make_plt_x86(struct rows_made *made, const struct elf_file *f, const Elf64_Shdr *s)
{
	uint64_t plain = unwind_rule(UNWIND_X86_RSP, UNWIND_CFA_REG, 0, UNWIND_FP_SAME, 16);
	uint64_t slot = unwind_rule(UNWIND_X86_RSP, UNWIND_CFA_PLT, 0, UNWIND_FP_SAME, 8);
	uint8_t code[32] = {0};
	int pushed = 0, n = elf_file_read_code(f, s->sh_addr, code, sizeof(code));

	if (n < 0)
		return n;
	/* push GOT + 8 */
	if (n < (int)sizeof(code) || s->sh_addr % 16 || memcmp(code, "\xff\x35", 2) != 0)
		return 0;
	if (memcmp(code + 16, "\xff\x25", 2) == 0) /* jmp *; push */
		pushed = 11;
	else if (memcmp(code + 16, "\xf3\x0f\x1e\xfa\x68", 5) == 0) /* endbr64; push */
		pushed = 9;
	if (!pushed)
		return 0;
	add(made, s->sh_addr, s->sh_addr + 6, plain);
	add(made, s->sh_addr + 6, s->sh_addr + 16,
	    unwind_rule(UNWIND_X86_RSP, UNWIND_CFA_REG, 0, UNWIND_FP_SAME, 24));
	add(made, s->sh_addr + 16, s->sh_addr + s->sh_size, unwind_rule_more(slot, 0, 0, pushed));
	return 0;
}

static int make_plt_arm(struct rows_made *made, const struct elf_file *f, const Elf64_Shdr *s)
{
	uint64_t leaf = unwind_rule_more(unwind_rule(UNWIND_ARM_SP, UNWIND_CFA_REG,
						     UNWIND_RA_REGISTER, UNWIND_FP_SAME, 0),
					 0, UNWIND_ARM_LR, 0);
	uint32_t code[2] = {0};
	uint64_t head = s->sh_addr;
	int n = elf_file_read_code(f, s->sh_addr, (uint8_t *)code, sizeof(code));

	if (n < (int)sizeof(code))
		return n < 0 ? n : 0;
	head += code[0] == 0xd503245f ? 4 : 0;              /* bti c */
	if (code[head != s->sh_addr ? 1 : 0] != 0xa9bf7bf0) /* stp x16, x30, [sp, #-16]! */
		return 0;
	add(made, s->sh_addr, head + 4, leaf);
	add(made, head + 4, s->sh_addr + 32,
	    unwind_rule(UNWIND_ARM_SP, UNWIND_CFA_REG, UNWIND_RA_ALONE, -1, 16));
	add(made, s->sh_addr + 32, s->sh_addr + s->sh_size, leaf);
	return 0;
}

/* A table of jumps alone. */
static void make_jumps(struct rows_made *made, const struct elf_file *f, const char *name)
{
	const Elf64_Shdr *s = elf_file_section(f, name);

	if (s && (s->sh_flags & SHF_EXECINSTR) && s->sh_size <= UINT64_MAX - s->sh_addr)
		add(made, s->sh_addr, s->sh_addr + s->sh_size,
		    unwind_rule(UNWIND_X86_RSP, UNWIND_CFA_REG, 0, UNWIND_FP_SAME, 8));
}

static int make_plt(struct rows_made *made, const struct rows_machine *m, const struct elf_file *f)
{
	const Elf64_Shdr *s = elf_file_section(f, ".plt");
	bool x86 = m->machine == EM_X86_64;

	if (x86) {
		make_jumps(made, f, ".plt.sec");
		make_jumps(made, f, ".plt.got");
	}
	if (!s || s->sh_size < 32 || s->sh_size > UINT64_MAX - s->sh_addr)
		return 0;
	return x86 ? make_plt_x86(made, f, s) : make_plt_arm(made, f, s);
}

/* .init and .fini, as linkers put them together out of pieces that have no description: sub $8,
 * %rsp; …; add $8, %rsp; ret. */
static int make_end(struct rows_made *made, const struct elf_file *f, uint64_t address)
{
	static const uint8_t landing[] = {0xf3, 0x0f, 0x1e, 0xfa},
			     first[] = {0x48, 0x83, 0xec, 0x08},
			     last[] = {0x48, 0x83, 0xc4, 0x08, 0xc3};
	const uint64_t outside = unwind_rule(UNWIND_X86_RSP, UNWIND_CFA_REG, 0, UNWIND_FP_SAME, 8);
	const uint64_t within = unwind_rule(UNWIND_X86_RSP, UNWIND_CFA_REG, 0, UNWIND_FP_SAME, 16);
	uint8_t code[ENTRY_BYTES] = {0};
	const uint8_t *end;
	size_t head, n;
	int r = elf_file_read_code(f, address, code, sizeof(code));

	head = memcmp(code, landing, sizeof(landing)) == 0 ? sizeof(landing) : 0;
	if (r <= 0 || memcmp(code + head, first, sizeof(first)) != 0)
		return r < 0 ? r : 0;
	head += sizeof(first);
	end = memmem(code + head, (size_t)r > head ? (size_t)r - head : 0, last, sizeof(last));
	if (!end)
		return 0;
	n = (size_t)(end - code) + sizeof(last);
	add(made, address, address + head, outside);
	add(made, address + head, address + n - 1, within);
	add(made, address + n - 1, address + n, outside);
	return 0;
}

static int make_ends(struct rows_made *made, const struct elf_file *f)
{
	Elf64_Dyn entries[ELF_DYNAMIC_MAX];
	int n = elf_file_dynamic(f, entries), r = n < 0 ? n : 0;

	for (int i = 0; r == 0 && i < n; i++)
		if (entries[i].d_tag == DT_INIT || entries[i].d_tag == DT_FINI)
			r = make_end(made, f, entries[i].d_un.d_ptr);
	return r;
}

/* syscall; test %rax, %rax; jl …; je +1; ret: as glibc's clone and clone3 have it, without a
 * description, since that of the one thread would be wrong of the other. */
uint64_t rows_made_thread(const struct rows_machine *m, const struct elf_file *f, uint64_t from,
			  uint64_t to, int *ret_error)
{
	static const uint8_t before[] = {0x0f, 0x05, 0x48, 0x85, 0xc0, 0x7c},
			     behind[] = {0x74, 0x01, 0xc3};
	uint8_t code[sizeof(before) + 1 + sizeof(behind)];
	int n;

	*ret_error = 0;
	if (m->machine != EM_X86_64 || to - from != sizeof(code))
		return 0;
	n = elf_file_read_code(f, from, code, sizeof(code));
	if (n < 0)
		*ret_error = n;
	if (n != (int)sizeof(code) || memcmp(code, before, sizeof(before)) != 0 ||
	    memcmp(code + sizeof(before) + 1, behind, sizeof(behind)) != 0)
		return 0;
	return thread_rule();
}

/* Where the program is entered nobody has called. */
static void make_entry(struct rows_made *made, const struct elf_file *f)
{
	struct elf_range range;
	uint64_t n = ENTRY_BYTES;

	if (f->entry == 0 || f->entry > UINT64_MAX - n ||
	    elf_segment_range(f, f->entry, &range) < 0)
		return;
	add(made, f->entry, f->entry + (n < range.size ? n : range.size),
	    unwind_rule(0, UNWIND_CFA_END, 0, 0, 0));
}

/* The whole of a section, where it is small; nothing where it is not there or not so. */
static int read_small(const struct elf_file *f, const char *name, struct buf *ret)
{
	const Elf64_Shdr *s = elf_file_section(f, name);
	int r = s ? elf_file_read_section(f, s, SMALL_FILE, ret) : 0;

	return r == -E2BIG || r == -ENOEXEC || r == -ENOTSUP || r == -ENODATA ? 0 : r;
}

/* Where one of greenlet's own stacks begins. It lies in the memory of the thread's stack, and what
 * is behind this function belongs to whoever ran there before: other frames, or their remains. */
static int find_greenlet(struct rows_made *made, const struct elf_file *f)
{
	static const char name[] = "_ZN8greenlet12UserGreenlet13g_initialstubEPv";
	_cleanup_(buf_free) struct buf texts = BUF_NULL, symbols = BUF_NULL;
	const char *found = NULL;
	Elf64_Sym symbol;
	int r = read_small(f, ".dynstr", &texts);

	if (texts.n)
		found = memmem(texts.p, texts.n, name, sizeof(name));
	if (found)
		r = read_small(f, ".dynsym", &symbols);
	for (size_t at = 0; symbols.n - at >= sizeof(symbol); at += sizeof(symbol)) {
		memcpy(&symbol, symbols.p + at, sizeof(symbol));
		if (symbol.st_name == (size_t)(found - texts.p) && symbol.st_shndx != SHN_UNDEF &&
		    symbol.st_size <= UINT64_MAX - symbol.st_value)
			add(made, symbol.st_value, symbol.st_value + symbol.st_size,
			    unwind_rule(0, UNWIND_CFA_END, 0, 0, 0));
	}
	return r;
}

int rows_made_find(struct rows_made *ret_signal, struct rows_made *ret_rest,
		   const struct rows_machine *m, const struct elf_file *f, bool go)
{
	bool interpreted = elf_file_segment(f, PT_INTERP) != NULL;
	int r = 0;

	ret_signal->n = ret_signal->at = ret_rest->n = ret_rest->at = 0;
	if (!go && !interpreted && (f->entry != 0 || f->size <= SMALL_FILE))
		r = scan_text(ret_signal, m, f);
	if (r == 0)
		r = find_greenlet(ret_signal, f);
	if (r == 0)
		r = make_plt(ret_rest, m, f);
	if (r == 0 && m->machine == EM_X86_64)
		r = make_ends(ret_rest, f);
	/* Of programs without an interpreter all code is looked at (uncovered.h), the entry with
	 * it. */
	if (r == 0 && (interpreted || m->machine != EM_X86_64))
		make_entry(ret_rest, f);
	return r;
}
