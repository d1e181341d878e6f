/* SPDX-License-Identifier: Apache-2.0 */
/* Go's functions. Contract and conventions in rows-go.h. */
#include "unwind/rows-go.h"

#include "base/check.h"
#include "unwind/rows-known-code.h"
#include "elf/file.h"
#include "bpfwire/unwind-tables.h"

#include <errno.h>

/* How a function is unwound from its split on. */
#define BEHIND_SAME   0 /* as before */
#define BEHIND_FP     1 /* by the frame pointer, where it has a frame */
#define BEHIND_END    2 /* not: the stack ends */
#define BEHIND_SIGNAL 3 /* the kernel has saved all registers */

/* What is known of functions by their names, which have not changed since Go 1.4; from 1.17 on
 * flags say the same of most. */
static const struct {
	const char *name;
	uint8_t flags;
	uint8_t behind;
} special[] = {
	{"runtime.goexit", PCLNTAB_TOP_FRAME, BEHIND_END},
	{"runtime.mstart", PCLNTAB_TOP_FRAME, BEHIND_END},
	{"runtime.rt0_go", PCLNTAB_TOP_FRAME, BEHIND_END},
	/* Go's own walk ends here; the frame that the signal interrupted is behind it. */
	{"runtime.sigtramp", 0, BEHIND_SAME},
	{"runtime.mcall", PCLNTAB_SP_WRITE, BEHIND_END},
	{"runtime.morestack", PCLNTAB_SP_WRITE, BEHIND_END},
	{"runtime.systemstack", PCLNTAB_SP_WRITE, BEHIND_FP},
	{"runtime.asmcgocall", PCLNTAB_SP_WRITE, BEHIND_FP},
	{"runtime.cgocallback", PCLNTAB_SP_WRITE, BEHIND_FP},
	{"runtime.cgocallback_gofunc", PCLNTAB_SP_WRITE, BEHIND_FP},
};

/* The largest frames that the word can say: by its offset, and by its frame pointer's place. */
#define OFFSET_MAX ((1 << 23) - 8)
#define LINK_MAX   ((1 << 18) - 16)

/* The first bytes of a function. */
struct code {
	uint8_t bytes[ROWS_GO_CODE];
	size_t n;
};

/* The entry only jumps: to what a C library would enter too. */
static int find_entry(struct rows_go *g)
{
	uint8_t code[5];
	int32_t by;
	int n = elf_file_read_code(g->file, g->file->entry, code, sizeof(code));

	g->entry[0] = g->file->entry;
	if (n < (int)sizeof(code) || code[0] != 0xe9)
		return n < 0 ? n : 0;
	memcpy(&by, code + 1, sizeof(by));
	g->entry[1] = g->file->entry + sizeof(code) + (uint64_t)(int64_t)by;
	return 0;
}

int rows_go_open(struct rows_go *g, const struct rows_machine *m, struct elf_file *f)
{
	int r;

	*g = (struct rows_go){.machine = m, .file = f};
	r = pclntab_open(&g->table, f, NULL);
	for (size_t i = 0; r == 0 && i < ROWS_GO_WINDOWS; i++)
		g->windows[i] = window_of(g->table.rows.fd, g->table.rows.base, g->table.rows.size);
	return r < 0 ? r : find_entry(g);
}

void rows_go_close(struct rows_go *g)
{
	pclntab_close(&g->table);
	for (size_t i = 0; i < ROWS_GO_WINDOWS; i++)
		window_free(&g->windows[i]);
	buf_free(&g->name);
}

bool rows_go_is_all(struct rows_go *g)
{
	const Elf64_Shdr *text = elf_file_section(g->file, ".text");
	struct pclntab_function last;

	if (!text || !g->table.n_functions ||
	    pclntab_function(&g->table, g->table.n_functions - 1, &last) < 0)
		return true;
	return last.end >= text->sh_addr + text->sh_size;
}

static void swap_window(struct rows_go *g)
{
	struct window *w = &g->windows[g->function.pcsp / WINDOW_PIECE % ROWS_GO_WINDOWS];
	struct window other = *w;

	*w = g->table.rows;
	g->table.rows = other;
}

int rows_go_peek(struct rows_go *g, uint64_t *ret)
{
	int r = 0;

	if (g->at >= g->table.n_functions)
		return 0;
	if (!g->any_next)
		r = pclntab_function(&g->table, g->at, &g->next);
	if (r < 0)
		return r;
	g->any_next = true;
	*ret = g->next.entry;
	return 1;
}

static int read_code(const struct rows_go *g, struct code *code)
{
	const struct pclntab_function *f = &g->function;
	uint64_t size = f->end - f->entry;
	int n = elf_file_read_code(g->file, f->entry, code->bytes,
				   size < ROWS_GO_CODE ? (size_t)size : ROWS_GO_CODE);

	code->n = n < 0 ? 0 : (size_t)n;
	return n < 0 ? n : 0;
}

static bool has(const struct code *code, uint64_t at, const void *bytes, size_t n)
{
	return at <= code->n && code->n - at >= n && memcmp(code->bytes + at, bytes, n) == 0;
}

#define HAS(code, at, bytes) has(code, at, bytes, sizeof(bytes) - 1)

static uint32_t instruction(const struct code *code, uint64_t at)
{
	uint32_t word = 0;

	if (at <= code->n && code->n - at >= sizeof(word))
		memcpy(&word, code->bytes + at, sizeof(word));
	return word;
}

/* Where a function first has a frame, from its entry on, and how large it is; false: nowhere. */
static bool first_frame(struct rows_go *g, uint64_t *at, int32_t *size)
{
	struct pclntab_rows rows = pclntab_rows(&g->function, g->function.pcsp);

	while (pclntab_next(&g->table, &rows) == 1) {
		if (rows.row.value <= 0)
			continue;
		*at = rows.row.start - g->function.entry;
		*size = rows.row.value;
		return true;
	}
	return false;
}

/* Whether the code that makes a frame is that of Go's assembler, which saves the frame pointer;
 * hand-written code without it only moves the stack pointer. */
static bool frame_saves_fp(const struct rows_go *g, const struct code *code, uint64_t at,
			   int32_t size)
{
	uint8_t store[8] = {0x48, 0x89, 0xac, 0x24}; /* mov %rbp, size - 8(%rsp) */
	int32_t to = size - 8;

	if (g->machine->machine != EM_X86_64)
		return at >= 4 && ((instruction(code, at - 4) & 0xffe00fff) == 0xf8000ffe ||
				   instruction(code, at - 4) == 0x9100029f);
	memcpy(store + 4, &to, 4);
	if (at && size == 8 && HAS(code, at - 1, "\x55"))
		return true;
	if (has(code, at, store, sizeof(store)))
		return true;
	return HAS(code, at, "\x48\x89\x6c\x24") && to < 128 && at + 4 < code->n &&
	       code->bytes[at + 4] == to;
}

/* Where the frame pointer has been set to the frame made at `at`; 0: nowhere. */
static uint64_t fp_is_set(const struct rows_go *g, const struct code *code, uint64_t at)
{
	for (uint64_t i = at; i < at + 32; i++) {
		if (g->machine->machine != EM_X86_64) {
			if (i % 4 == 0 && instruction(code, i) == 0xd10023fd) /* sub x29, sp, #8 */
				return i + 4;
			continue;
		}
		if (HAS(code, i, "\x48\x89\xe5")) /* mov %rsp, %rbp */
			return i + 3;
		if (HAS(code, i, "\x48\x8d\x6c\x24")) /* lea n(%rsp), %rbp */
			return i + 5;
		if (HAS(code, i, "\x48\x8d\xac\x24"))
			return i + 8;
	}
	return 0;
}

/* Where the stack pointer is loaded with another stack's; 0: nowhere. */
static uint64_t sp_is_loaded(const struct rows_go *g, const struct code *code)
{
	for (uint64_t i = 0; i + 4 <= code->n; i++) {
		if (g->machine->machine != EM_X86_64) {
			uint32_t word = instruction(code, i);

			/* mov sp, x… */
			if (i % 4 == 0 && (word & 0xfffffc1f) == 0x9100001f)
				return i + 4;
			continue;
		}
		/* mov n(%r…), %rsp */
		if ((code->bytes[i] & 0xfe) == 0x48 && code->bytes[i + 1] == 0x8b &&
		    (code->bytes[i + 2] & 0xf8) == 0x60)
			return i + 4;
	}
	return 0;
}

/* The register into which a function takes its return address off the stack, as that of vfork does,
 * whose child would overwrite it; 0: none. Where it has done so the stack pointer is above where it
 * was at entry. */
static uint8_t find_popped(struct rows_go *g, const struct code *code)
{
	struct pclntab_rows rows = pclntab_rows(&g->function, g->function.pcsp);

	while (!g->machine->link && pclntab_next(&g->table, &rows) == 1) {
		uint64_t at = rows.row.start - g->function.entry;

		/* pop %r8 … %r15, whose DWARF numbers are these */
		if (rows.row.value == -8 && at >= 2 && at <= code->n &&
		    code->bytes[at - 2] == 0x41 && (code->bytes[at - 1] & 0xf8) == 0x58)
			return 8 + (code->bytes[at - 1] & 7);
	}
	return 0;
}

/* What the function's flags say, or in older programs its name. */
static int read_flags(struct rows_go *g, uint8_t *behind)
{
	uint8_t *flags = &g->function.flags;
	bool old = g->table.version < PCLNTAB_GO118;
	int r;

	*behind = *flags & PCLNTAB_TOP_FRAME  ? BEHIND_END
		  : *flags & PCLNTAB_SP_WRITE ? BEHIND_FP
					      : BEHIND_SAME;
	if (!old && !*behind)
		return 0;
	buf_clear(&g->name);
	r = pclntab_name(&g->table, g->function.name, &g->name);
	if (r < 0)
		return r == -ENOEXEC ? 0 : r;
	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
		if (str_is(buf_str(&g->name), special[i].name)) {
			*flags = (uint8_t)((*flags & PCLNTAB_ASM) | special[i].flags);
			*behind = special[i].behind;
		}
	if (old)
		*flags |= PCLNTAB_ASM;
	return 0;
}

/* Assembly: what its code says. */
static int look_at_code(struct rows_go *g, uint8_t behind)
{
	struct pclntab_function *f = &g->function;
	struct code code;
	uint64_t frame = 0, split = 0;
	int32_t size = 0;
	int r = read_code(g, &code);

	if (r < 0)
		return r;
	g->signal_rule = rows_made_trampoline(g->machine, code.bytes, code.n);
	if (g->signal_rule) {
		g->behind = BEHIND_SIGNAL;
		return 0;
	}
	g->popped = find_popped(g, &code);
	g->saves_fp = first_frame(g, &frame, &size) && frame_saves_fp(g, &code, frame, size);
	if (behind == BEHIND_FP && g->saves_fp)
		split = fp_is_set(g, &code, frame);
	else if (behind == BEHIND_END && f->flags & PCLNTAB_SP_WRITE &&
		 !(f->flags & PCLNTAB_TOP_FRAME))
		split = sp_is_loaded(g, &code);
	if (split) {
		g->split = f->entry + split;
		g->behind = behind;
	}
	return 0;
}

int rows_go_take(struct rows_go *g, uint64_t *ret_end)
{
	uint8_t behind = BEHIND_SAME;
	int r;

	check(g->any_next);
	/* What the function before used goes back to its place. */
	swap_window(g);
	g->function = g->next;
	swap_window(g);
	g->any_next = false;
	g->at++;
	g->rest.start = g->rest.end = 0;
	r = read_flags(g, &behind);
	if (r < 0)
		return r;
	if (g->function.entry == g->entry[0] || g->function.entry == g->entry[1]) {
		g->function.flags |= PCLNTAB_TOP_FRAME;
		behind = BEHIND_END;
	}
	g->saves_fp = true;
	g->popped = 0;
	g->split = g->function.entry;
	g->behind = BEHIND_SAME;
	if (behind == BEHIND_END && g->function.flags & PCLNTAB_TOP_FRAME)
		g->behind = BEHIND_END;
	else if (g->function.flags & PCLNTAB_ASM)
		r = look_at_code(g, behind);
	g->rows = pclntab_rows(&g->function, g->function.pcsp);
	*ret_end = g->function.end;
	return r;
}

/* A frame of `size` bytes, the return address included where the machine pushes it. */
static uint64_t frame_rule(const struct rows_go *g, int64_t size, bool by_fp)
{
	const struct rows_machine *m = g->machine;

	if (!m->link && by_fp)
		return unwind_rule(m->fp, UNWIND_CFA_REG, UNWIND_RA_CFA, -2, 16);
	if (!m->link)
		return unwind_rule(m->sp, UNWIND_CFA_REG, UNWIND_RA_CFA,
				   size > 8 && g->saves_fp ? -2 : UNWIND_FP_SAME, (__s32)size);
	if (size == 0)
		return unwind_rule_more(unwind_rule(m->sp, UNWIND_CFA_REG, UNWIND_RA_REGISTER,
						    UNWIND_FP_SAME, 0),
					0, m->ra, 0);
	/* The return address at the frame's lower end, the frame pointer right below it. */
	if (!g->saves_fp)
		return 0;
	return unwind_rule(by_fp ? m->fp : m->sp, UNWIND_CFA_REG, UNWIND_RA_FP,
			   (__s32)(-size / 8 - 1), (__s32)(by_fp ? size + 8 : size));
}

static struct rows_words words_of(const struct rows_go *g, int32_t value, uint8_t how)
{
	int64_t size = (int64_t)value + (g->machine->link ? 0 : 8);
	struct rows_words words = {0};

	if (how == BEHIND_END)
		words.rule = unwind_rule(0, UNWIND_CFA_END, 0, 0, 0);
	else if (value >= 0 && value % 8 == 0 && size < (g->machine->link ? LINK_MAX : OFFSET_MAX))
		words.rule = frame_rule(g, size, how == BEHIND_FP && value > 0);
	else if (size == 0 && g->popped)
		words.rule = unwind_rule_more(unwind_rule(g->machine->sp, UNWIND_CFA_REG,
							  UNWIND_RA_REGISTER, UNWIND_FP_SAME, 0),
					      0, g->popped, 0);
	else if (value >= OFFSET_MAX && !g->machine->link && g->saves_fp)
		words.rule = frame_rule(g, size, true);
	words.inexpressible = !words.rule;
	return words;
}

/* The trampoline, one byte early as in rows-known-code.h. */
static struct rows_piece signal_piece(struct rows_go *g)
{
	struct rows_piece piece = {.start = g->function.entry - 1, .end = g->function.end};

	check(g->signal_rule);
	piece.words.rule = g->signal_rule;
	g->behind = BEHIND_SAME;
	g->rows.at = 0;
	return piece;
}

int rows_go_next(struct rows_go *g, struct rows_piece *ret)
{
	struct pclntab_row *row = &g->rows.row;
	int r;

	if (g->rest.start < g->rest.end) {
		*ret = g->rest;
		g->rest.start = g->rest.end;
		return 1;
	}
	if (g->behind == BEHIND_SIGNAL) {
		*ret = signal_piece(g);
		return 1;
	}
	r = pclntab_next(&g->table, &g->rows);
	if (r <= 0)
		return r;
	*ret = (struct rows_piece){row->start, row->end, words_of(g, row->value, BEHIND_SAME)};
	if (g->behind == BEHIND_SAME || row->end <= g->split)
		return 1;
	g->rest = *ret;
	g->rest.words = words_of(g, row->value, g->behind);
	if (row->start < g->split) {
		ret->end = g->rest.start = g->split;
		return 1;
	}
	*ret = g->rest;
	g->rest.start = g->rest.end;
	return 1;
}
