/* SPDX-License-Identifier: Apache-2.0 */
/* Sections and units of one file. Contract in file.h. */
#include "dwarf/file.h"

#include "base/check.h"
#include "base/search.h"
#include "dwarf/dw.h"
#include "dwarf/package.h"
#include "elf/inflate.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PIECE       ((size_t)4096)  /* what is read here and there */
#define PIECE_LONG  ((size_t)65536) /* what is read through */
#define MAX_VERSION 5

static const char *const section_names[DWARF_SECTIONS] = {
	[DWARF_INFO] = ".debug_info",         [DWARF_ABBREV] = ".debug_abbrev",
	[DWARF_LINE] = ".debug_line",         [DWARF_LINE_STR] = ".debug_line_str",
	[DWARF_STR] = ".debug_str",           [DWARF_STR_OFFSETS] = ".debug_str_offsets",
	[DWARF_ADDR] = ".debug_addr",         [DWARF_RANGES] = ".debug_ranges",
	[DWARF_RNGLISTS] = ".debug_rnglists", [DWARF_CU_INDEX] = ".debug_cu_index",
};

static const Elf64_Shdr *find_section(const struct elf_file *elf, const char *stem, bool split)
{
	char name[40];
	int n = snprintf(name, sizeof(name), "%s%s", stem, split ? ".dwo" : "");

	check(n > 0 && (size_t)n < sizeof(name));
	return elf_file_section(elf, name);
}

/* Decompresses into a memfd, which is written once and read in pieces. */
static int open_compressed(const struct elf_file *elf, const Elf64_Shdr *s, uint64_t *left,
			   struct dwarf_section *ret)
{
	struct elf_compressed c;
	uint64_t n;
	int fd, r = elf_compressed_read(elf, s, *left, &c);

	if (r == 0)
		r = elf_inflate_memfd(elf, &c, &fd, &n);
	if (r < 0)
		return r;
	check(n <= *left);
	*left -= n;
	*ret = (struct dwarf_section){.fd = fd, .owned = true, .size = n};
	return 0;
}

static int open_section(const struct elf_file *elf, const Elf64_Shdr *s, uint64_t *left,
			struct dwarf_section *ret)
{
	if (!s || s->sh_type == SHT_NOBITS)
		return 0;
	if (!elf_file_holds(elf, s->sh_offset, s->sh_size))
		return -ENOEXEC;
	if (elf_section_is_compressed(elf, s))
		return open_compressed(elf, s, left, ret);
	*ret = (struct dwarf_section){.fd = elf->fd, .base = s->sh_offset, .size = s->sh_size};
	return 0;
}

static int open_sections(struct dwarf_file *f, const struct elf_file *elf, bool split)
{
	uint64_t left = DWARF_MAX_INFLATED;

	for (unsigned int i = 0; i < DWARF_SECTIONS; i++) {
		/* A package's index and a skeleton's addresses have plain names. */
		bool suffixed = split && i != DWARF_CU_INDEX && i != DWARF_ADDR;
		struct dwarf_section s = {.fd = -1};
		int r = open_section(elf, find_section(elf, section_names[i], suffixed), &left, &s);

		if (r < 0)
			return r;
		cursor_init(&f->c[i], &s, i == DWARF_INFO || i == DWARF_LINE ? PIECE_LONG : PIECE);
	}
	cursor_init(&f->entry, &f->c[DWARF_INFO].s, PIECE);
	return 0;
}

/* The head of a unit behind its length. 0; -EAGAIN: a unit of another version or width, to be
 * passed over. */
static int read_head(struct cursor *c, struct unit_head *u)
{
	u->format.version = (uint8_t)cursor_number(c, 2);
	u->type = DW_UT_compile;
	if (u->format.version >= 5) {
		u->type = cursor_u8(c);
		u->format.address_size = cursor_u8(c);
		u->abbrevs = cursor_number(c, u->format.offset_size);
		if (u->type == DW_UT_skeleton || u->type == DW_UT_split_compile)
			u->dwo_id = cursor_number(c, 8);
	} else {
		u->abbrevs = cursor_number(c, u->format.offset_size);
		u->format.address_size = cursor_u8(c);
	}
	u->root = cursor_at(c);
	if (c->error)
		return -ENOEXEC;
	return u->format.version < 2 || u->format.version > MAX_VERSION ||
			       u->format.address_size != 8 || u->root >= u->end ||
			       u->type == DW_UT_type || u->type == DW_UT_split_type
		       ? -EAGAIN
		       : 0;
}

/* The heads of all units, or of all tables of lines, up to one that makes no sense: what stands
 * before it is good. What is wrong within a table shows when it is read. */
static int load_heads(struct dwarf_file *f, enum dwarf_section_id id)
{
	struct cursor *c = &f->c[id];

	for (uint64_t at = 0; at < c->s.size;) {
		struct unit_head u = {.offset = at, .type = DW_UT_lines};
		int r;

		cursor_seek(c, at);
		u.end = cursor_unit_end(c, &u.format.offset_size);
		r = c->error || u.end == cursor_at(c) ? -ENOEXEC : 0;
		if (r == 0 && id == DWARF_INFO)
			r = read_head(c, &u);
		if (r == -ENOEXEC)
			return c->error == -ENOMEM ? -ENOMEM : f->units.n ? 0 : -ENOEXEC;
		if (r == 0 && f->units.n >= DWARF_MAX_UNITS)
			return -E2BIG;
		if (r == 0 && !vec_push(&f->units, u))
			return -ENOMEM;
		check(u.end > at);
		at = u.end;
	}
	return 0;
}

static int open_elf(struct dwarf_file *f, struct elf_file *elf, bool split, struct error *err)
{
	int r = elf_file_load_sections(elf, err);

	if (r == 0)
		r = open_sections(f, elf, split);
	if (r == 0 && !dwarf_file_has(f, DWARF_INFO))
		r = dwarf_file_has(f, DWARF_LINE) && !split ? load_heads(f, DWARF_LINE) : -ENOENT;
	else if (r == 0)
		r = load_heads(f, DWARF_INFO);
	if (r == 0 && !f->units.n)
		r = -ENOENT;
	if (r == 0 && split)
		r = package_apply(f);
	return r < 0 && r != -ENOENT ? error_errno(err, r, "cannot read the debug information") : r;
}

int dwarf_file_open(struct dwarf_file *f, int fd, bool split, struct error *err)
{
	struct elf_file elf = ELF_FILE_NULL;
	int r = elf_file_open(&elf, fd, err);

	if (r < 0)
		return r;
	*f = (struct dwarf_file){0};
	for (unsigned int i = 0; i < DWARF_SECTIONS; i++)
		f->c[i].s.fd = -1;
	r = open_elf(f, &elf, split, err);
	elf_file_close(&elf);
	if (r < 0)
		dwarf_file_close(f);
	return r;
}

void dwarf_file_close(struct dwarf_file *f)
{
	for (unsigned int i = 0; i < DWARF_SECTIONS; i++) {
		cursor_fini(&f->c[i]);
		if (f->c[i].s.owned)
			close(f->c[i].s.fd);
	}
	cursor_fini(&f->entry);
	vec_free(&f->units);
	for (unsigned int i = 0; i < DWARF_ABBREVS_KEPT; i++)
		abbrev_free(&f->abbrevs[i].table);
	*f = (struct dwarf_file){0};
}

size_t dwarf_file_bytes(const struct dwarf_file *f)
{
	size_t n = f->units.capacity * sizeof(*f->units.p) + (f->entry.bytes ? PIECE : 0);

	for (unsigned int i = 0; i < DWARF_SECTIONS; i++)
		n += (f->c[i].bytes ? f->c[i].piece : 0) +
		     (f->c[i].s.owned ? (size_t)f->c[i].s.size : 0);
	for (unsigned int i = 0; i < DWARF_ABBREVS_KEPT; i++)
		n += abbrev_bytes(&f->abbrevs[i].table);
	return n;
}

size_t dwarf_file_n_fds(const struct dwarf_file *f)
{
	size_t n = 0;

	for (unsigned int i = 0; i < DWARF_SECTIONS; i++)
		n += f->c[i].s.owned;
	return n;
}

const struct unit_head *dwarf_file_unit(const struct dwarf_file *f, uint64_t offset)
{
	size_t low = search_partition(f->units.n, i, f->units.p[i].offset <= offset);

	return low && offset < f->units.p[low - 1].end ? &f->units.p[low - 1] : NULL;
}

int dwarf_file_abbrevs(struct dwarf_file *f, const struct unit_head *u,
		       const struct abbrev_table **ret)
{
	struct abbrev_kept *oldest = &f->abbrevs[0];
	struct abbrev_table table;
	int r;

	for (struct abbrev_kept *k = f->abbrevs; k < f->abbrevs + DWARF_ABBREVS_KEPT; k++) {
		if (k->used && k->at == u->abbrevs &&
		    memcmp(&k->format, &u->format, sizeof(k->format)) == 0) {
			k->used = ++f->uses;
			*ret = &k->table;
			return 0;
		}
		oldest = k->used < oldest->used ? k : oldest;
	}
	r = abbrev_load(&table, &f->c[DWARF_ABBREV], u->abbrevs, &u->format, 0);
	if (r < 0)
		return r;
	abbrev_free(&oldest->table);
	*oldest = (struct abbrev_kept){u->abbrevs, ++f->uses, u->format, table};
	*ret = &oldest->table;
	return 0;
}
