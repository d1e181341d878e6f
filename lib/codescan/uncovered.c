/* SPDX-License-Identifier: Apache-2.0 */
/* Where code without a description lies. Contract in uncovered.h. */
#include "codescan/uncovered.h"

#include "base/file.h"
#include "elf/file.h"

#include <errno.h>

#define CHUNK 64u /* symbols read at a time */

/* Whether a file that can be loaded anywhere says that it is a program: a library may have an entry
 * too, if an older linker took the beginning of its text for one. */
static int says_program(const struct elf_file *f, bool *ret)
{
	Elf64_Dyn entries[CHUNK];

	for (size_t i = 0; i < f->n_segments; i++) {
		struct elf_range range = elf_segment_bytes(f, i);
		size_t n = range.size < sizeof(entries) ? (size_t)range.size : sizeof(entries);
		int r;

		if (f->segments[i].p_type != PT_DYNAMIC)
			continue;
		r = file_pread(f->fd, entries, n, range.offset);
		if (r < 0)
			return r;
		for (size_t k = 0; k < n / sizeof(entries[0]); k++)
			if (entries[k].d_tag == DT_FLAGS_1 && entries[k].d_un.d_val & DF_1_PIE)
				*ret = true;
	}
	return 0;
}

int rows_gaps_open(struct rows_gaps *g, const struct rows_machine *m, const struct elf_file *f,
		   const struct elf_file *debug)
{
	const Elf64_Shdr *text;
	Elf64_Ehdr header;
	int r = file_pread(f->fd, &header, sizeof(header), 0);

	if (r < 0)
		return r;
	g->file = f;
	g->named = debug && !elf_file_section_of_type(f, SHT_SYMTAB) ? debug : f;
	g->x86 = m->machine == EM_X86_64;
	g->on = g->x86 && header.e_entry != 0;
	for (size_t i = 0; i < f->n_segments; i++)
		if (f->segments[i].p_type == PT_INTERP)
			g->on = false;
	g->code.absolute = f->type == ET_EXEC;
	g->code.entry = header.e_entry;
	text = elf_file_section(f, ".text");
	if (g->on && f->type == ET_DYN && text && text->sh_addr == header.e_entry) {
		g->on = false;
		r = says_program(f, &g->on);
	}
	g->code.strict = !g->on;
	g->left = g->on ? f->size : ROWS_GAPS_MOST;
	g->entries = ROWS_GAPS_ENTRIES;
	return r;
}

void rows_gaps_close(struct rows_gaps *g)
{
	rows_code_free(&g->code);
}

/* Whether so many entries of tables may still be looked at. */
static bool afford(struct rows_gaps *g, uint64_t entries)
{
	if (entries > g->entries)
		return false;
	g->entries -= entries;
	return true;
}

static int mark_chunk(struct rows_gaps *g, uint64_t offset, size_t n)
{
	Elf64_Sym symbols[CHUNK];
	int r = file_pread(g->named->fd, symbols, n * sizeof(symbols[0]), offset);

	for (size_t i = 0; r == 0 && i < n; i++)
		if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC &&
		    symbols[i].st_shndx != SHN_UNDEF)
			rows_code_mark(&g->code, symbols[i].st_value);
	return r;
}

/* Functions that nothing calls directly are known by their symbols, where there are any. */
static int mark_symbols(struct rows_gaps *g, uint32_t type)
{
	const Elf64_Shdr *table = elf_file_section_of_type(g->named, type);
	uint64_t n, offset;
	int r = 0;

	if (!table || table->sh_offset > g->named->size ||
	    table->sh_size > g->named->size - table->sh_offset)
		return 0;
	offset = table->sh_offset;
	n = table->sh_size / sizeof(Elf64_Sym);
	if (!afford(g, n))
		return 0;
	while (r == 0 && n) {
		size_t part = n < CHUNK ? (size_t)n : CHUNK;

		r = mark_chunk(g, offset, part);
		offset += part * sizeof(Elf64_Sym);
		n -= part;
	}
	return r;
}

struct range {
	uint64_t start, end;
};

/* Keeps the lowest part of [from, to) that lies in [start, start + n). */
static void lowest(struct range *best, struct range of, uint64_t start, uint64_t n)
{
	uint64_t end = n < UINT64_MAX - start ? start + n : UINT64_MAX;

	start = start > of.start ? start : of.start;
	end = end < of.end ? end : of.end;
	if (start < end && end - start >= ROWS_GAPS_LEAST && start < best->start)
		*best = (struct range){start, end};
}

/* By sections, or by segments where there are none. */
static struct range first_code(const struct elf_file *f, struct range of)
{
	struct range best = {UINT64_MAX, UINT64_MAX};

	for (size_t i = 1; i < f->n_sections; i++)
		if (f->sections[i].sh_type == SHT_PROGBITS &&
		    f->sections[i].sh_flags & SHF_EXECINSTR)
			lowest(&best, of, f->sections[i].sh_addr, f->sections[i].sh_size);
	for (size_t i = 0; f->n_sections == 0 && i < f->n_segments; i++)
		if (f->segments[i].p_type == PT_LOAD && (f->segments[i].p_flags & PF_X))
			lowest(&best, of, f->segments[i].p_vaddr, f->segments[i].p_filesz);
	return best;
}

#define SAMPLE_PIECES 64u
#define SAMPLE_BYTES  4096u
/* bytes: code with frame pointers sets one at least so often; V8's does every 900 */
#define FRAMES_EVERY 2048u

/* How often code sets its frame pointer: push %rbp; mov %rsp,%rbp, or mov x29,sp. */
static unsigned int count_frames(bool x86, const unsigned char *p, size_t n)
{
	static const unsigned char on_x86[] = {0x55, 0x48, 0x89, 0xe5},
				   on_arm[] = {0xfd, 0x03, 0x00, 0x91};
	const unsigned char *sought = x86 ? on_x86 : on_arm;
	unsigned int found = 0;

	for (size_t i = 0; i + sizeof(on_x86) <= n; i += x86 ? 1 : 4)
		found += memcmp(p + i, sought, sizeof(on_x86)) == 0;
	return found;
}

int rows_gaps_keep_frames(struct rows_gaps *g, uint64_t from, uint64_t to)
{
	uint64_t step = (to - from) / SAMPLE_PIECES / 4 * 4, looked_at = 0, found = 0;
	unsigned char bytes[SAMPLE_BYTES];

	if (from >= g->framed && from < g->framed_end)
		return 1;
	if (g->samples++ >= ROWS_GAPS_SAMPLES)
		return 0;
	step = step > SAMPLE_BYTES ? step : SAMPLE_BYTES;
	for (uint64_t i = 0; i < SAMPLE_PIECES && i * step < to - from; i++) {
		uint64_t at = from + i * step;
		size_t n = to - at < sizeof(bytes) ? (size_t)(to - at) : sizeof(bytes);
		struct elf_range range;
		int r;

		if (elf_segment_range(g->file, at, &range) < 0)
			continue;
		n = range.size < n ? (size_t)range.size : n;
		r = file_pread(g->file->fd, bytes, n, range.offset);
		if (r < 0)
			return r;
		found += count_frames(g->x86, bytes, n);
		looked_at += n;
	}
	if (found == 0 || found < looked_at / FRAMES_EVERY)
		return 0;
	g->framed = from;
	g->framed_end = to;
	return 1;
}

/* Whether a gap is looked at: 1, 0 or an errno. */
static int is_worth_it(struct rows_gaps *g, struct range code)
{
	uint64_t n = code.end - code.start;
	int frames;

	if (n > g->left)
		return 0;
	if (g->on)
		return 1;
	if (n < ROWS_GAPS_CODE || g->samples >= ROWS_GAPS_SAMPLES)
		return 0;
	frames = n < ROWS_GAPS_FOREIGN ? 0 : rows_gaps_keep_frames(g, code.start, code.end);
	return frames < 0 ? frames : !frames;
}

int rows_gaps_begin(struct rows_gaps *g, uint64_t from, uint64_t to, uint64_t *ret_start,
		    uint64_t *ret_end)
{
	struct range code = {0, 0};
	struct elf_range bytes;
	int r;

	if (!g->x86 || (!g->on && to - from < ROWS_GAPS_CODE) ||
	    !afford(g, g->file->n_sections + g->file->n_segments))
		return 0;
	code = first_code(g->file, (struct range){from, to});
	if (code.start == UINT64_MAX || elf_segment_range(g->file, code.start, &bytes) < 0)
		return 0;
	if (bytes.size < code.end - code.start)
		code.end = code.start + bytes.size;
	r = is_worth_it(g, code);
	if (r <= 0)
		return r;
	g->left -= code.end - code.start;
	r = rows_code_begin(&g->code, g->file->fd, bytes.offset, code.start, code.end);
	/* Of a gap symbols tell little that its padding does not, and there may be many. */
	if (r == 0 && g->on && code.end - code.start >= ROWS_GAPS_NAMED) {
		r = mark_symbols(g, SHT_SYMTAB);
		if (r == 0)
			r = mark_symbols(g, SHT_DYNSYM);
	}
	if (r < 0)
		return r == -E2BIG ? 0 : r;
	*ret_start = code.start;
	*ret_end = code.end;
	return 1;
}
