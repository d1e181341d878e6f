/* SPDX-License-Identifier: Apache-2.0 */
/* One file's debug sections, and its units. A program with DWARF is up to three such files: its own
 * (or its debug file), the one that dwz has put common entries into, and a package of split units.
 */
#pragma once

#include "base/error.h"
#include "dwarf/abbrev.h"
#include "elf/file.h"

#define DWARF_MAX_UNITS    (1u << 18)
#define DWARF_MAX_INFLATED (UINT64_C(256) << 20) /* bytes of compressed sections, in a memfd */
#define DWARF_ABBREVS_KEPT 32

enum dwarf_section_id {
	DWARF_INFO,
	DWARF_ABBREV,
	DWARF_LINE,
	DWARF_LINE_STR,
	DWARF_STR,
	DWARF_STR_OFFSETS,
	DWARF_ADDR,
	DWARF_RANGES,
	DWARF_RNGLISTS,
	DWARF_CU_INDEX,
	DWARF_SECTIONS
};

struct unit_head {
	uint64_t offset, end; /* in .debug_info; of DW_UT_lines in .debug_line */
	uint64_t root;        /* offset of the first entry */
	uint64_t abbrevs;     /* in .debug_abbrev */
	uint64_t dwo_id;
	uint64_t str_offsets_base, rnglists_base; /* where the unit itself does not say */
	struct dwarf_format format;
	uint8_t type; /* DW_UT_… */
};

struct abbrev_kept {
	uint64_t at, used;
	struct dwarf_format format;
	struct abbrev_table table;
};

struct dwarf_file {
	struct cursor c[DWARF_SECTIONS];
	struct cursor entry;         /* .debug_info again, for what is read here and there */
	VEC(struct unit_head) units; /* by offset */
	struct abbrev_kept abbrevs[DWARF_ABBREVS_KEPT];
	uint64_t uses;
};

/* Finds the sections (of a package or split file: ".dwo") and reads the heads of all units but type
 * units. Where there are lines without units, each table counts as a unit of type DW_UT_lines. The
 * descriptor is borrowed and must outlive *f. -ENOENT: no debug information; -ENOEXEC, -E2BIG,
 * -ENOTSUP (a kind of ELF file or a compression that is not read here), -ENOMEM or an errno. One
 * small read for each 64 KiB of .debug_info. */
int dwarf_file_open(struct dwarf_file *f, int fd, bool split, struct error *err);
void dwarf_file_close(struct dwarf_file *f);
size_t dwarf_file_bytes(const struct dwarf_file *f);
size_t dwarf_file_n_fds(const struct dwarf_file *f); /* of its own */

static inline bool dwarf_file_has(const struct dwarf_file *f, enum dwarf_section_id id)
{
	return f->c[id].s.size > 0;
}

/* The unit that holds an offset of .debug_info; NULL if none does. O(log n). */
const struct unit_head *dwarf_file_unit(const struct dwarf_file *f, uint64_t offset);

/* The shapes of a unit's entries, kept until 32 others have been asked for. */
int dwarf_file_abbrevs(struct dwarf_file *f, const struct unit_head *u,
		       const struct abbrev_table **ret);
