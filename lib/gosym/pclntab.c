/* SPDX-License-Identifier: Apache-2.0 */
/* Go's table of functions. Contract and sources in pclntab.h.
 *
 * Invariant: every offset of the header lies inside the table, and the index of functions too;
 * every other offset goes through a window, which ends where the section or segment does. */
#include "gosym/pclntab.h"

#include "base/check.h"
#include "base/search.h"
#include "gosym/go-module.h"
#include "elf/file.h"
#include "elf/symbols.h"

#include <errno.h>

#define MAX_HEADERS  64 /* in a file without sections, that are looked at more closely */
#define HEADER_BYTES 8

#define PCDATA_INLINE   2
#define FUNCDATA_INLINE 3
#define NO_FILE         UINT32_MAX

static int version_of(const unsigned char *p)
{
	uint32_t magic;

	memcpy(&magic, p, sizeof(magic));
	if (p[4] || p[5] || (p[6] != 1 && p[6] != 2 && p[6] != 4) || p[7] != 8)
		return 0;
	switch (magic) {
	case 0xfffffffb:
		return PCLNTAB_GO12;
	case 0xfffffffa:
		return PCLNTAB_GO116;
	case 0xfffffff0:
		return PCLNTAB_GO118;
	case 0xfffffff1:
		return PCLNTAB_GO120;
	default:
		return 0;
	}
}

static size_t index_word(const struct pclntab *t)
{
	return t->version >= PCLNTAB_GO118 ? 4 : 8;
}

/* Word i behind the header's first eight bytes, which must lie in the table. */
static int header_word(struct pclntab *t, unsigned int i, uint64_t *ret)
{
	return window_u64(&t->index, HEADER_BYTES + (uint64_t)i * 8, ret);
}

static int parse_go12(struct pclntab *t, uint64_t n)
{
	uint32_t files;
	uint64_t end;
	int r;

	t->functions = HEADER_BYTES + 8;
	end = t->functions + (n * 2 + 1) * 8;
	r = window_u32(&t->index, end, &files);
	if (r == 0)
		r = window_u32(&t->index, files, &t->n_files);
	t->files = files;
	return r;
}

static int parse_go116(struct pclntab *t)
{
	unsigned int first = t->version >= PCLNTAB_GO118 ? 3 : 2;
	uint64_t *const fields[] = {&t->names, &t->units, &t->files, &t->values, &t->functions};
	uint64_t n_files;
	int r = header_word(t, 1, &n_files);

	check(t->version >= PCLNTAB_GO116);
	for (unsigned int i = 0; r == 0 && i < 5; i++) {
		r = header_word(t, first + i, fields[i]);
		if (r == 0 && *fields[i] >= t->index.size)
			r = -ENOEXEC;
	}
	if (r == 0 && t->version >= PCLNTAB_GO118)
		r = header_word(t, 2, &t->text);
	t->n_files = n_files < UINT32_MAX ? (uint32_t)n_files : UINT32_MAX;
	return r;
}

/* Reads the header at the start of t->index. */
static int parse_header(struct pclntab *t)
{
	const unsigned char *p;
	uint64_t n = 0;
	int r = window_read(&t->index, 0, HEADER_BYTES, &p);

	if (r < 0)
		return r;
	t->version = version_of(p);
	t->quantum = p[6];
	if (!t->version)
		return -ENOEXEC;
	r = header_word(t, 0, &n);
	if (r == 0 && (n == 0 || n > t->index.size / 8))
		r = -ENOEXEC;
	if (r == 0)
		r = t->version == PCLNTAB_GO12 ? parse_go12(t, n) : parse_go116(t);
	if (r == 0 && (t->index.size - t->functions) / index_word(t) < n * 2 + 1)
		r = -ENOEXEC;
	t->n_functions = (size_t)n;
	return r;
}

/* Tries [range] of the file, which is at `address`, as the table. */
static int try_range(struct pclntab *t, struct elf_range range, uint64_t address)
{
	struct pclntab table = {
		.file = t->file,
		.address = address,
		.index = window_of(t->file->fd, range.offset, range.size),
	};
	int r = parse_header(&table);

	if (r < 0) {
		window_free(&table.index);
		return r;
	}
	*t = table;
	return 0;
}

static int try_section(struct pclntab *t, const Elf64_Shdr *s)
{
	const struct elf_file *f = t->file;

	if (s->sh_type == SHT_NOBITS || (s->sh_flags & SHF_COMPRESSED) ||
	    !elf_file_holds(f, s->sh_offset, s->sh_size))
		return -ENOEXEC;
	return try_range(t, (struct elf_range){s->sh_offset, s->sh_size}, s->sh_addr);
}

/* Looks through a segment for a header, at addresses that are multiples of 8. */
static int scan_segment(struct pclntab *t, const Elf64_Phdr *segment, struct elf_range bytes,
			unsigned int *n_headers)
{
	uint64_t skip = -segment->p_vaddr % 8;
	struct window w = window_of(t->file->fd, bytes.offset + skip,
				    bytes.size > skip ? bytes.size - skip : 0);
	int r = -ENOENT;

	for (uint64_t at = 0; r == -ENOENT && at < w.size; at += WINDOW_PIECE) {
		const unsigned char *p;
		int got = window_some(&w, at, WINDOW_PIECE, &p);

		if (got < 0)
			r = got;
		for (int i = 0; r == -ENOENT && i + HEADER_BYTES <= got; i += 8) {
			uint64_t into = skip + at + (uint64_t)i;

			if (p[i + 1] != 0xff || !version_of(p + i) || ++*n_headers > MAX_HEADERS)
				continue;
			r = try_range(t, (struct elf_range){bytes.offset + into, bytes.size - into},
				      segment->p_vaddr + into);
			r = r == -ENOEXEC ? -ENOENT : r;
		}
	}
	window_free(&w);
	return r;
}

static int scan_segments(struct pclntab *t)
{
	uint64_t left = GOMODULE_SCAN_MAX;
	unsigned int n_headers = 0;

	for (size_t i = 0; i < t->file->n_segments; i++) {
		const Elf64_Phdr *p = &t->file->segments[i];
		struct elf_range bytes = elf_segment_bytes(t->file, i);
		int r;

		if (p->p_type != PT_LOAD)
			continue;
		bytes.size = bytes.size < left ? bytes.size : left;
		left -= bytes.size;
		r = scan_segment(t, p, bytes, &n_headers);
		if (r != -ENOENT)
			return r;
	}
	return -ENOENT;
}

/* Sections can be stripped, or the table merged into another one; then only a file without
 * sections, or with Go's build id, is worth looking through. */
static int find_table(struct pclntab *t)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};
	const struct elf_file *f = t->file;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const Elf64_Shdr *s = elf_file_section(f, names[i]);

		if (s)
			return try_section(t, s);
	}
	if (f->n_sections && !elf_file_section(f, ".go.buildinfo") &&
	    !elf_file_section(f, ".note.go.buildid"))
		return -ENOENT;
	return scan_segments(t);
}

/* What the header does not say, or only once it has been relocated. */
static int find_bases(struct pclntab *t)
{
	struct gomodule_sought sought = {
		.header = t->address,
		.names = t->address + t->names,
		.functions_data_word = t->version >= PCLNTAB_GO120 ? 40 : 38,
	};
	struct gomodule module;
	struct elf_range trees;
	int r = gomodule_find(t->file, &sought, &module);

	if (r == -ENOENT)
		return t->text ? 0 : -ENOTSUP;
	if (r < 0)
		return r;
	t->text = module.text;
	if (elf_segment_range(t->file, module.functions_data, &trees) == 0)
		t->trees = window_of(t->file->fd, trees.offset, trees.size);
	return 0;
}

static void open_windows(struct pclntab *t)
{
	t->records = t->rows = t->texts = window_of(t->index.fd, t->index.base, t->index.size);
}

int pclntab_open(struct pclntab *ret, struct elf_file *f, struct error *err)
{
	struct pclntab t = {.file = f};
	struct pclntab_function first;
	int r = elf_file_load_sections(f, err);

	if (r == -ENOMEM)
		return r;
	r = find_table(&t);
	if (r == -ENOENT)
		return r;
	if (r < 0)
		return error_errno(err, r, "cannot read Go's table of functions");
	open_windows(&t);
	if (t.version >= PCLNTAB_GO118)
		r = find_bases(&t);
	if (r == 0)
		r = pclntab_function(&t, 0, &first);
	/* A linker that moves pointers into relocations leaves zeros. */
	if (r == -ENOEXEC && t.version < PCLNTAB_GO118 && f->type == ET_DYN)
		r = -ENOTSUP;
	if (r < 0) {
		pclntab_close(&t);
		return error_errno(err, r, "Go's table of functions does not tell addresses");
	}
	*ret = t;
	return 0;
}

void pclntab_close(struct pclntab *t)
{
	window_free(&t->index);
	window_free(&t->records);
	window_free(&t->rows);
	window_free(&t->texts);
	window_free(&t->trees);
	*t = PCLNTAB_NULL;
}

/* Word `word` of the index: entries and records take turns. */
static int read_index(struct pclntab *t, uint64_t word, uint64_t *ret)
{
	uint64_t at = t->functions + word * index_word(t);
	uint32_t narrow;
	int r;

	if (t->version < PCLNTAB_GO118)
		return window_u64(&t->index, at, ret);
	r = window_u32(&t->index, at, &narrow);
	*ret = narrow;
	return r;
}

static int read_entry(struct pclntab *t, size_t i, uint64_t *ret)
{
	int r = read_index(t, (uint64_t)i * 2, ret);

	if (r == 0 && __builtin_add_overflow(*ret, t->text, ret))
		r = -ENOEXEC;
	return r;
}

/* Which rows and which tree of inlined calls: by the function's own lists, which begin at `at`. */
static int read_lists(struct pclntab *t, uint64_t at, uint32_t n_tables, unsigned int n_data,
		      struct pclntab_function *f)
{
	int r = 0;

	if (n_tables > PCDATA_INLINE)
		r = window_u32(&t->records, at + PCDATA_INLINE * 4, &f->inlined);
	if (r == 0 && n_data > FUNCDATA_INLINE)
		r = window_u32(&t->records, at + ((uint64_t)n_tables + FUNCDATA_INLINE) * 4,
			       &f->tree);
	return r;
}

/* The record of a function, from its name on: name, two that are of no use here, pcsp, pcfile,
 * pcln, number of tables; unit since 1.16, start line since 1.20; id, flags, padding and number of
 * data as bytes. */
static int read_record(struct pclntab *t, uint64_t at, struct pclntab_function *f)
{
	const size_t n_words = t->version == PCLNTAB_GO12    ? 8
			       : t->version >= PCLNTAB_GO120 ? 10
							     : 9;
	unsigned char tail[4];
	const unsigned char *p;
	uint32_t words[10];
	int r = window_read(&t->records, at, n_words * 4, &p);

	if (r < 0)
		return r;
	check(n_words * 4 <= sizeof(words));
	memcpy(words, p, n_words * 4);
	memcpy(tail, &words[n_words - 1], sizeof(tail));
	f->name = words[0];
	f->pcsp = words[3];
	f->pcfile = words[4];
	f->pcln = words[5];
	f->unit = n_words > 8 ? words[7] : 0;
	f->start_line = n_words > 9 ? words[8] : 0;
	f->id = tail[0];
	f->flags = n_words > 8 ? tail[1] : 0;
	f->tree = PCLNTAB_NO_TREE;
	return t->version >= PCLNTAB_GO118 ? read_lists(t, at + n_words * 4, words[6], tail[3], f)
					   : 0;
}

int pclntab_function(struct pclntab *t, size_t i, struct pclntab_function *ret)
{
	struct pclntab_function f = {0};
	uint64_t record;
	int r;

	check(i < t->n_functions);
	r = read_entry(t, i, &f.entry);
	if (r == 0)
		r = read_index(t, (uint64_t)i * 2 + 1, &record);
	if (r == 0)
		r = read_entry(t, i + 1, &f.end);
	if (r < 0)
		return r;
	if (f.entry >= f.end || record >= t->index.size)
		return -ENOEXEC;
	/* Since 1.16 records count from the index, whose first field is the entry. */
	record += index_word(t) + (t->version >= PCLNTAB_GO116 ? t->functions : 0);
	r = read_record(t, record, &f);
	if (r == 0)
		*ret = f;
	return r;
}

int pclntab_find(struct pclntab *t, uint64_t address, struct pclntab_function *ret)
{
	uint64_t entry;
	int r = 0;
	/* Where an entry cannot be read, the search ends. */
	size_t low =
		search_partition(t->n_functions, i,
				 r == 0 && (r = read_entry(t, i, &entry)) == 0 && entry <= address);

	if (r < 0 || !low)
		return r < 0 ? r : -ENOENT;
	r = pclntab_function(t, low - 1, ret);
	if (r == 0 && address >= ret->end)
		r = -ENOENT;
	return r;
}

int pclntab_name(struct pclntab *t, uint32_t name, struct buf *out)
{
	return window_text(&t->texts, t->names + name, ELF_NAME_MAX, out);
}

int pclntab_file(struct pclntab *t, const struct pclntab_function *f, int32_t file, struct buf *out)
{
	uint32_t at;
	int r;

	if (file < 0)
		return -ENOENT;
	if (t->version == PCLNTAB_GO12) {
		if ((uint32_t)file >= t->n_files)
			return -ENOENT;
		r = window_u32(&t->texts, t->files + (uint64_t)file * 4, &at);
		return r < 0 ? r : window_text(&t->texts, at, ELF_NAME_MAX, out);
	}
	r = window_u32(&t->texts, t->units + ((uint64_t)f->unit + (uint32_t)file) * 4, &at);
	if (r < 0)
		return r;
	return at == NO_FILE ? -ENOENT : window_text(&t->texts, t->files + at, ELF_NAME_MAX, out);
}
