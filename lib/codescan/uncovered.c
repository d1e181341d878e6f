/* SPDX-License-Identifier: Apache-2.0 */
/* Where code without a description lies. Contract in uncovered.h. */
#include "codescan/uncovered.h"

#include "base/check.h"
#include "base/file.h"
#include "elf/file.h"

#include <errno.h>

#define CHUNK 64u /* symbols read at a time */

/* Whether a file that can be loaded anywhere says that it is a program: a library may have an entry
 * too, if an older linker took the beginning of its text for one. */
static int is_pie(const struct elf_file *f, bool *ret)
{
	Elf64_Dyn entries[ELF_DYNAMIC_MAX];
	int n = elf_file_dynamic(f, entries);

	*ret = false;
	for (int i = 0; i < n; i++)
		*ret |= entries[i].d_tag == DT_FLAGS_1 && entries[i].d_un.d_val & DF_1_PIE;
	return n < 0 ? n : 0;
}

int uncovered_open(struct uncovered *u, const struct rows_machine *m, const struct elf_file *f,
		   const struct elf_file *debug)
{
	const Elf64_Shdr *text = elf_file_section(f, ".text");
	int r = 0;

	u->file = f;
	u->symbols = debug && !elf_file_section_of_type(f, SHT_SYMTAB) ? debug : f;
	u->x86 = m->machine == EM_X86_64;
	u->whole = u->x86 && f->entry != 0 && !elf_file_segment(f, PT_INTERP);
	u->code.absolute = f->type == ET_EXEC;
	u->code.entry = f->entry;
	if (u->whole && f->type == ET_DYN && text && text->sh_addr == f->entry)
		r = is_pie(f, &u->whole);
	u->code.strict = !u->whole;
	u->bytes_left = u->whole ? f->size : UNCOVERED_MAX_BYTES;
	u->entries_left = UNCOVERED_MAX_ENTRIES;
	return r;
}

void uncovered_close(struct uncovered *u)
{
	code_rows_free(&u->code);
}

/* Whether so many entries of tables may still be read. */
static bool afford(struct uncovered *u, uint64_t entries)
{
	if (entries > u->entries_left)
		return false;
	u->entries_left -= entries;
	return true;
}

static int mark_chunk(struct uncovered *u, uint64_t offset, size_t n)
{
	Elf64_Sym symbols[CHUNK];
	int r = file_pread(u->symbols->fd, symbols, n * sizeof(symbols[0]), offset);

	for (size_t i = 0; r == 0 && i < n; i++)
		if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC &&
		    symbols[i].st_shndx != SHN_UNDEF)
			code_rows_mark(&u->code, symbols[i].st_value);
	return r;
}

/* Functions that nothing calls directly are known by their symbols, where there are any. */
static int mark_symbols(struct uncovered *u, uint32_t type)
{
	const Elf64_Shdr *table = elf_file_section_of_type(u->symbols, type);
	uint64_t n, offset;
	int r = 0;

	if (!table || !elf_file_holds(u->symbols, table->sh_offset, table->sh_size))
		return 0;
	offset = table->sh_offset;
	n = table->sh_size / sizeof(Elf64_Sym);
	if (!afford(u, n))
		return 0;
	while (r == 0 && n) {
		size_t part = n < CHUNK ? (size_t)n : CHUNK;

		r = mark_chunk(u, offset, part);
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
	if (start < end && end - start >= UNCOVERED_MIN_BYTES && start < best->start)
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

int uncovered_keeps_frames(struct uncovered *u, uint64_t from, uint64_t to)
{
	uint64_t step = (to - from) / SAMPLE_PIECES / 4 * 4, looked_at = 0, found = 0;
	unsigned char bytes[SAMPLE_BYTES];

	if (from >= u->framed_start && from < u->framed_end)
		return 1;
	if (u->samples++ >= UNCOVERED_SAMPLES)
		return 0;
	step = step > SAMPLE_BYTES ? step : SAMPLE_BYTES;
	for (uint64_t i = 0; i < SAMPLE_PIECES && i * step < to - from; i++) {
		uint64_t at = from + i * step;
		size_t n = to - at < sizeof(bytes) ? (size_t)(to - at) : sizeof(bytes);
		int got = elf_file_read_code(u->file, at, bytes, n);

		if (got < 0)
			return got;
		found += count_frames(u->x86, bytes, (size_t)got);
		looked_at += (uint64_t)got;
	}
	if (found == 0 || found < looked_at / FRAMES_EVERY)
		return 0;
	u->framed_start = from;
	u->framed_end = to;
	return 1;
}

/* 1, 0 or an errno. */
static int is_followed(struct uncovered *u, struct range code)
{
	uint64_t n = code.end - code.start;
	int frames;

	if (n > u->bytes_left)
		return 0;
	if (u->whole)
		return 1;
	if (n < UNCOVERED_PART_BYTES || u->samples >= UNCOVERED_SAMPLES)
		return 0;
	frames = n < UNCOVERED_FOREIGN_BYTES ? 0 : uncovered_keeps_frames(u, code.start, code.end);
	return frames < 0 ? frames : !frames;
}

int uncovered_begin(struct uncovered *u, uint64_t from, uint64_t to, uint64_t *ret_start,
		    uint64_t *ret_end)
{
	struct range code = {0, 0};
	struct elf_range bytes;
	int r;

	check(from <= to);
	if (!u->x86 || (!u->whole && to - from < UNCOVERED_PART_BYTES) ||
	    !afford(u, u->file->n_sections + u->file->n_segments))
		return 0;
	code = first_code(u->file, (struct range){from, to});
	if (code.start == UINT64_MAX || elf_segment_range(u->file, code.start, &bytes) < 0)
		return 0;
	if (bytes.size < code.end - code.start)
		code.end = code.start + bytes.size;
	r = is_followed(u, code);
	if (r <= 0)
		return r;
	check(code.end - code.start <= u->bytes_left);
	u->bytes_left -= code.end - code.start;
	r = code_rows_begin(&u->code, u->file->fd, bytes.offset, code.start, code.end);
	/* In a gap, symbols say little that its padding does not, and there may be many. */
	if (r == 0 && u->whole && code.end - code.start >= UNCOVERED_NAMED_BYTES) {
		r = mark_symbols(u, SHT_SYMTAB);
		if (r == 0)
			r = mark_symbols(u, SHT_DYNSYM);
	}
	if (r < 0)
		return r == -E2BIG ? 0 : r;
	*ret_start = code.start;
	*ret_end = code.end;
	return 1;
}
