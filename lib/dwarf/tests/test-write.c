/* SPDX-License-Identifier: Apache-2.0 */
/* The tests' writer of debug information. Contract in test-write.h. */
#include "dwarf/tests/test-write.h"

#include "base/check.h"
#include "dwarf/dw.h"
#include "elf/tests/test-write.h"

#include <stdlib.h>
#include <zlib.h>

#define ID      0x1122334455667788u
#define INLINED 0x40u

struct writer {
	const struct dwarf_shape *s;
	struct buf info, abbrev, line, str, str_offsets, addr, ranges, index;
	struct buf alt_info, alt_abbrev, alt_str;
	struct buf main_info, main_abbrev; /* the skeleton's, where split */
	size_t abstract;                   /* offset of the abstract function */
};

static void put(struct buf *b, uint64_t value, size_t n)
{
	check(buf_append(b, &value, n < 8 ? n : 8) == 0);
	for (; n > 8; n--)
		check(buf_putc(b, 0) == 0);
}

static void put_at(struct buf *b, size_t at, uint64_t value, size_t n)
{
	check(at + n <= b->n);
	memcpy(b->p + at, &value, n);
}

static void put_text(struct buf *b, const char *text)
{
	check(buf_append(b, text, strlen(text) + 1) == 0);
}

static size_t offset_size(const struct writer *w)
{
	return w->s->wide ? 8 : 4;
}

static size_t begin(const struct writer *w, struct buf *b)
{
	if (w->s->wide)
		put(b, UINT32_MAX, 4);
	put(b, 0, offset_size(w));
	return b->n;
}

static void end(const struct writer *w, struct buf *b, size_t start)
{
	put_at(b, start - offset_size(w), b->n - start, offset_size(w));
}

/* A shape: pairs of attribute and form; all below 0x80 or written whole. */
static void put_uleb(struct buf *b, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		put(b, (value & 0x7f) | 0x80, 1);
	put(b, value, 1);
}

static void put_shape(struct buf *b, unsigned int code, unsigned int tag, bool children,
		      const uint16_t (*pairs)[2])
{
	put_uleb(b, code);
	put_uleb(b, tag);
	put(b, children, 1);
	for (; (*pairs)[0]; pairs++) {
		put_uleb(b, (*pairs)[0]);
		put_uleb(b, (*pairs)[1]);
	}
	put(b, 0, 2);
}

/* --- Texts, addresses --- */

static uint16_t text_form(const struct writer *w)
{
	return w->s->indexed ? DW_FORM_strx1 : w->s->version > 2 ? DW_FORM_strp : DW_FORM_string;
}

static void add_text(struct writer *w, struct buf *b, const char *text)
{
	if (text_form(w) == DW_FORM_string) {
		put_text(b, text);
		return;
	}
	if (w->s->indexed) {
		put(b, w->str_offsets.n / offset_size(w), 1);
		put(&w->str_offsets, w->str.n, offset_size(w));
	} else {
		put(b, w->str.n, offset_size(w));
	}
	put_text(&w->str, text);
}

static uint16_t address_form(const struct writer *w)
{
	return w->s->indexed ? DW_FORM_addrx : DW_FORM_addr;
}

static void add_address(struct writer *w, struct buf *b, uint64_t address)
{
	if (w->s->indexed) {
		put_uleb(b, w->addr.n / 8 - 1);
		put(&w->addr, address, 8);
	} else {
		put(b, address, 8);
	}
}

/* A list of ranges; returns what an entry says of it. */
static size_t add_list(struct writer *w, const uint64_t (*list)[2], size_t n)
{
	size_t at = w->ranges.n;

	if (w->s->version < 5) {
		/* From here on addresses are not relative to the unit's first. */
		put(&w->ranges, UINT64_MAX, 8);
		put(&w->ranges, 0, 8);
	}
	for (size_t i = 0; i < n; i++) {
		if (w->s->version < 5) {
			put(&w->ranges, list[i][0], 8);
			put(&w->ranges, list[i][1], 8);
			continue;
		}
		/* One form after the other; the base goes through all. */
		put(&w->ranges, i ? DW_RLE_start_length : DW_RLE_start_end, 1);
		put(&w->ranges, list[i][0], 8);
		if (i)
			put_uleb(&w->ranges, list[i][1] - list[i][0]);
		else
			put(&w->ranges, list[i][1], 8);
	}
	put(&w->ranges, 0, w->s->version < 5 ? 16 : 1);
	return at;
}

/* low and high, or a list. */
static void add_code(struct writer *w, struct buf *b, uint64_t low, uint64_t high)
{
	const uint64_t list[][2] = {{low, low + 8}, {low + 8, high}};

	if (w->s->ranges) {
		put(b, add_list(w, list, 2), offset_size(w));
		return;
	}
	add_address(w, b, low);
	if (w->s->version < 4)
		add_address(w, b, high);
	else
		put(b, high - low, 4);
}

static void code_form(const struct writer *w, uint16_t (*pairs)[2])
{
	if (w->s->ranges) {
		pairs[0][0] = DW_AT_ranges;
		pairs[0][1] = w->s->version < 4 ? (w->s->wide ? DW_FORM_data8 : DW_FORM_data4)
						: DW_FORM_sec_offset;
		pairs[1][0] = DW_AT_sibling; /* some other attribute that takes no room */
		pairs[1][1] = DW_FORM_flag_present;
		return;
	}
	pairs[0][0] = DW_AT_low_pc;
	pairs[0][1] = address_form(w);
	pairs[1][0] = DW_AT_high_pc;
	pairs[1][1] = w->s->version < 4 ? address_form(w) : DW_FORM_data4;
}

/* --- Entries --- */

static void put_shapes(struct writer *w)
{
	uint16_t unit[][2] = {{DW_AT_name, text_form(w)},
			      {DW_AT_comp_dir, text_form(w)},
			      {DW_AT_stmt_list, w->s->wide ? DW_FORM_data8 : DW_FORM_data4},
			      {DW_AT_str_offsets_base, w->s->wide ? DW_FORM_data8 : DW_FORM_data4},
			      {DW_AT_addr_base, w->s->wide ? DW_FORM_data8 : DW_FORM_data4},
			      {DW_AT_GNU_dwo_id, DW_FORM_data8},
			      {DW_AT_ranges, w->s->wide ? DW_FORM_data8 : DW_FORM_data4},
			      {0, 0}};
	uint16_t abstract[][2] = {
		{DW_AT_name, text_form(w)},
		{DW_AT_decl_line, DW_FORM_data1},
		{w->s->version < 4 ? DW_AT_MIPS_linkage_name : DW_AT_linkage_name, text_form(w)},
		{0, 0}};
	uint16_t function[][2] = {{DW_AT_name, text_form(w)},
				  {DW_AT_decl_line, DW_FORM_sdata},
				  {0, 0},
				  {0, 0},
				  {0, 0}};
	uint16_t inlined[][2] = {
		{DW_AT_abstract_origin, w->s->alt ? DW_FORM_GNU_ref_alt : DW_FORM_ref4},
		{0, 0},
		{0, 0},
		{DW_AT_call_file, DW_FORM_data1},
		{DW_AT_call_line, DW_FORM_udata},
		{DW_AT_call_column, DW_FORM_data2},
		{0, 0}};
	static const uint16_t block[][2] = {{0x40, DW_FORM_block1}, {0, 0}};

	code_form(w, &function[2]);
	code_form(w, &inlined[1]);
	put_shape(&w->abbrev, 1, DW_TAG_compile_unit, true, (const uint16_t(*)[2])unit);
	put_shape(&w->abbrev, 2, DW_TAG_subprogram, false, (const uint16_t(*)[2])abstract);
	put_shape(&w->abbrev, 3, DW_TAG_subprogram, true, (const uint16_t(*)[2])function);
	put_shape(&w->abbrev, 0x123, DW_TAG_inlined_subroutine, false,
		  (const uint16_t(*)[2])inlined);
	put_shape(&w->abbrev, 5, 0x0b, true, block);
	put(&w->abbrev, 0, 1);
}

static size_t begin_unit(struct writer *w, struct buf *b, uint8_t type)
{
	size_t start = begin(w, b);

	put(b, w->s->version, 2);
	if (w->s->version >= 5) {
		put(b, type, 1);
		put(b, 8, 1);
	}
	put(b, 0, offset_size(w));
	if (w->s->version < 5)
		put(b, 8, 1);
	else if (type == DW_UT_skeleton || type == DW_UT_split_compile)
		put(b, ID, 8);
	return start;
}

static void put_unit_entry(struct writer *w, struct buf *b)
{
	const uint64_t list[][2] = {{OUTER, OUTER + 0x100}, {REMOTE, REMOTE + 0x10}};
	const size_t head = w->s->wide ? 16 : 8;

	put(b, 1, 1);
	add_text(w, b, "a.c");
	add_text(w, b, "/src");
	put(b, 0, offset_size(w));
	put(b, head, offset_size(w));
	put(b, 8, offset_size(w));
	put(b, ID, 8);
	put(b, add_list(w, list, 2), offset_size(w));
}

static void put_abstract(struct writer *w, struct buf *b)
{
	w->abstract = b->n;
	put(b, 2, 1);
	add_text(w, b, "inner");
	put(b, 10, 1);
	add_text(w, b, "_inner");
}

static void put_functions(struct writer *w, struct buf *b)
{
	put(b, 3, 1);
	add_text(w, b, "outer");
	put(b, 20, 1);
	add_code(w, b, OUTER, OUTER + 0x100);
	put(b, 5, 1); /* a block with two bytes to pass over, around the call */
	put(b, 0xffff02, 3);
	put_uleb(b, 0x123);
	put(b, w->abstract, w->s->alt ? offset_size(w) : 4);
	add_code(w, b, OUTER + INLINED, OUTER + INLINED + 0x40);
	put(b, 1, 1);
	put_uleb(b, 21);
	put(b, 7, 2);
	put(b, 0, 2);
	put(b, 3, 1);
	add_text(w, b, "far");
	put(b, 30, 1);
	add_code(w, b, REMOTE, REMOTE + 0x10);
	put(b, 0, 2);
}

static void put_alt(struct writer *w)
{
	static const uint16_t unit[][2] = {{0, 0}};
	const uint16_t abstract[][2] = {{DW_AT_name, DW_FORM_string},
					{DW_AT_decl_line, DW_FORM_data1},
					{DW_AT_linkage_name, DW_FORM_strp},
					{0, 0}};
	size_t start = begin_unit(w, &w->alt_info, DW_UT_partial);

	put_shape(&w->alt_abbrev, 1, DW_TAG_partial_unit, true, unit);
	put_shape(&w->alt_abbrev, 2, DW_TAG_subprogram, false, abstract);
	put(&w->alt_abbrev, 0, 1);
	put(&w->alt_info, 1, 1);
	w->abstract = w->alt_info.n;
	put(&w->alt_info, 2, 1);
	put_text(&w->alt_info, "inner");
	put(&w->alt_info, 10, 1);
	put(&w->alt_info, 0, offset_size(w));
	put_text(&w->alt_str, "_inner");
	put(&w->alt_info, 0, 1);
	end(w, &w->alt_info, start);
}

static void put_info(struct writer *w)
{
	size_t start;

	if (w->s->alt)
		put_alt(w);
	put(&w->addr, 0, 8);
	put_shapes(w);
	start = begin_unit(w, &w->info, w->s->split ? DW_UT_split_compile : DW_UT_compile);
	put_unit_entry(w, &w->info);
	if (!w->s->alt)
		put_abstract(w, &w->info);
	put_functions(w, &w->info);
	end(w, &w->info, start);
}

/* What the program itself keeps of a split unit. */
static void put_skeleton(struct writer *w)
{
	const uint16_t unit[][2] = {
		{DW_AT_comp_dir, DW_FORM_string},
		{DW_AT_stmt_list, DW_FORM_sec_offset},
		{DW_AT_low_pc, DW_FORM_addr},
		{DW_AT_high_pc, DW_FORM_data4},
		{DW_AT_GNU_dwo_name, DW_FORM_string},
		{DW_AT_GNU_dwo_id, DW_FORM_data8},
		{w->s->version < 5 ? DW_AT_GNU_addr_base : DW_AT_addr_base, DW_FORM_sec_offset},
		{0, 0}};
	size_t start = begin_unit(w, &w->main_info, DW_UT_skeleton);

	put_shape(&w->main_abbrev, 1, DW_TAG_compile_unit, false, unit);
	put(&w->main_abbrev, 0, 1);
	put(&w->main_info, 1, 1);
	put_text(&w->main_info, "/src");
	put(&w->main_info, 0, offset_size(w));
	put(&w->main_info, OUTER, 8);
	put(&w->main_info, REMOTE + 0x10 - OUTER, 4);
	put_text(&w->main_info, "a.dwo");
	put(&w->main_info, ID, 8);
	put(&w->main_info, 8, offset_size(w));
	end(w, &w->main_info, start);
}

/* --- Lines --- */

static void put_files(struct writer *w)
{
	struct buf *b = &w->line;

	if (w->s->version < 5) {
		put_text(b, "ignored");
		put(b, 0, 1);
		put_text(b, "a.c");
		put(b, 0, 3);
		put(b, 0, 1);
		return;
	}
	put(b, 1, 1);
	put_uleb(b, DW_LNCT_path);
	put_uleb(b, DW_FORM_string);
	put_uleb(b, 1);
	put_text(b, "/src");
	put(b, 2, 1);
	put_uleb(b, DW_LNCT_path);
	put_uleb(b, DW_FORM_string);
	put_uleb(b, DW_LNCT_directory_index);
	put_uleb(b, DW_FORM_udata);
	put_uleb(b, 2);
	put_text(b, "none.c");
	put_uleb(b, 0);
	put_text(b, "a.c");
	put_uleb(b, 0);
}

static void put_address(struct buf *b, uint64_t address)
{
	put(b, 0, 1);
	put(b, 9, 1);
	put(b, DW_LNE_set_address, 1);
	put(b, address, 8);
}

static void put_program(struct buf *b)
{
	put_address(b, OUTER);
	put(b, DW_LNS_advance_line, 1);
	put(b, 19, 1);
	put(b, DW_LNS_copy, 1);
	put(b, 0x10 * 12 + 3 + 1 + 13, 1); /* special: address +0x10, line +1 */
	put(b, DW_LNS_advance_pc, 1);
	put(b, 0x30, 1);
	put(b, DW_LNS_advance_line, 1);
	put(b, 0x76, 1); /* -10 */
	put(b, DW_LNS_set_column, 1);
	put(b, 3, 1);
	put(b, DW_LNS_copy, 1);
	put(b, DW_LNS_fixed_advance_pc, 1);
	put(b, 0x40, 2);
	put(b, DW_LNS_advance_line, 1);
	put(b, 11, 1);
	put(b, DW_LNS_copy, 1);
	put(b, DW_LNS_advance_pc, 1);
	put_uleb(b, 0x80);
	put(b, 0x010100, 3); /* the end of a sequence */
	put_address(b, REMOTE);
	put(b, DW_LNS_advance_line, 1);
	put(b, 29, 1);
	put(b, DW_LNS_copy, 1);
	put(b, DW_LNS_advance_pc, 1);
	put(b, 0x10, 1);
	put(b, 0x010100, 3);
}

static void put_lines(struct writer *w)
{
	static const unsigned char lengths[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
	struct buf *b = &w->line;
	size_t start = begin(w, b), header;

	put(b, w->s->version, 2);
	if (w->s->version >= 5)
		put(b, 0x0008, 2);
	put(b, 0, offset_size(w));
	header = b->n;
	put(b, 1, 1);
	if (w->s->version >= 4)
		put(b, 1, 1);
	put(b, 1, 1);
	put(b, (uint8_t)-3, 1);
	put(b, 12, 1);
	put(b, 13, 1);
	check(buf_append(b, lengths, sizeof(lengths)) == 0);
	put_files(w);
	put_at(b, header - offset_size(w), b->n - header, offset_size(w));
	put_program(b);
	end(w, b, start);
}

/* --- Files --- */

static void add_section(struct elf_writer *w, const char *name, const struct buf *b)
{
	if (b->n)
		elf_write_section(w, name, SHT_PROGBITS, 0, b->p, b->n);
}

static void add_compressed(struct elf_writer *w, const char *name, const struct buf *b)
{
	const Elf64_Chdr head = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = b->n, .ch_addralign = 1};
	unsigned char packed[4096];
	uLongf n = sizeof(packed) - sizeof(head);
	uint16_t at;

	memcpy(packed, &head, sizeof(head));
	check(compress(packed + sizeof(head), &n, (const unsigned char *)b->p, b->n) == Z_OK);
	at = elf_write_section(w, name, SHT_PROGBITS, 0, packed, sizeof(head) + n);
	w->sections.p[at].sh_flags = SHF_COMPRESSED;
}

/* A table of offsets or addresses with its head in front. */
static void with_head(const struct writer *w, struct buf *b, uint16_t tail)
{
	struct buf whole = BUF_NULL;
	size_t start;

	if (!b->n)
		return;
	start = begin(w, &whole);
	put(&whole, 5, 2);
	put(&whole, tail, 2);
	check(buf_append(&whole, b->p, b->n) == 0);
	end(w, &whole, start);
	buf_free(b);
	*b = whole;
}

static void put_index(struct writer *w)
{
	static const uint32_t sections[] = {DW_SECT_INFO, DW_SECT_ABBREV, DW_SECT_STR_OFFSETS};
	struct buf *b = &w->index;
	const size_t sizes[] = {w->info.n, w->abbrev.n, w->str_offsets.n};

	put(b, w->s->version < 5 ? 2 : 5, 4);
	put(b, 3, 4);
	put(b, 1, 4);
	put(b, 2, 4);
	put(b, ID, 8);
	put(b, 0, 8);
	put(b, 1, 4);
	put(b, 0, 4);
	for (int i = 0; i < 3; i++)
		put(b, sections[i], 4);
	for (int i = 0; i < 3; i++)
		put(b, 0, 4);
	for (int i = 0; i < 3; i++)
		put(b, sizes[i], 4);
}

static void write_main(struct writer *w, struct buf *out)
{
	struct elf_writer e;

	elf_writer_init(&e);
	if (w->s->lines_only) {
		add_section(&e, ".debug_line", &w->line);
		elf_write_file(&e, out);
		elf_writer_fini(&e);
		return;
	}
	if (w->s->compressed)
		add_compressed(&e, ".debug_info", &w->info);
	else
		add_section(&e, ".debug_info", w->s->split ? &w->main_info : &w->info);
	add_section(&e, ".debug_abbrev", w->s->split ? &w->main_abbrev : &w->abbrev);
	add_section(&e, ".debug_line", &w->line);
	add_section(&e, ".debug_addr", &w->addr);
	if (!w->s->split) {
		add_section(&e, ".debug_str", &w->str);
		add_section(&e, ".debug_str_offsets", &w->str_offsets);
	}
	if (!w->s->split || w->s->version < 5)
		add_section(&e, w->s->version < 5 ? ".debug_ranges" : ".debug_rnglists",
			    &w->ranges);
	elf_write_file(&e, out);
	elf_writer_fini(&e);
}

static void write_split(struct writer *w, struct buf *out)
{
	struct elf_writer e;

	elf_writer_init(&e);
	add_section(&e, ".debug_info.dwo", &w->info);
	add_section(&e, ".debug_abbrev.dwo", &w->abbrev);
	add_section(&e, ".debug_str.dwo", &w->str);
	add_section(&e, ".debug_str_offsets.dwo", &w->str_offsets);
	if (w->s->version >= 5)
		add_section(&e, ".debug_rnglists.dwo", &w->ranges);
	if (w->s->package) {
		put_index(w);
		add_section(&e, ".debug_cu_index", &w->index);
	}
	elf_write_file(&e, out);
	elf_writer_fini(&e);
}

static void write_alt(struct writer *w, struct buf *out)
{
	struct elf_writer e;

	elf_writer_init(&e);
	add_section(&e, ".debug_info", &w->alt_info);
	add_section(&e, ".debug_abbrev", &w->alt_abbrev);
	add_section(&e, ".debug_str", &w->alt_str);
	elf_write_file(&e, out);
	elf_writer_fini(&e);
}

void dwarf_write(const struct dwarf_shape *s, struct dwarf_written *ret)
{
	struct writer w = {.s = s};
	struct buf *const all[] = {&w.info,        &w.abbrev,     &w.line,    &w.str,
				   &w.str_offsets, &w.addr,       &w.ranges,  &w.index,
				   &w.alt_info,    &w.alt_abbrev, &w.alt_str, &w.main_info,
				   &w.main_abbrev};

	*ret = (struct dwarf_written){0};
	put_info(&w);
	put_lines(&w);
	if (s->split)
		put_skeleton(&w);
	if (s->version >= 5)
		with_head(&w, &w.str_offsets, 0);
	write_main(&w, &ret->main);
	if (s->split)
		write_split(&w, &ret->split);
	if (s->alt)
		write_alt(&w, &ret->alt);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		buf_free(all[i]);
}

void dwarf_written_free(struct dwarf_written *w)
{
	buf_free(&w->main);
	buf_free(&w->alt);
	buf_free(&w->split);
}
