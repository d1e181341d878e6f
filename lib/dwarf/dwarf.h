/* SPDX-License-Identifier: Apache-2.0 */
/* Functions, lines and inlined calls of an address by DWARF 2 to 5. Files are untrusted. Split
 * units are read from a package (.dwp) or from files of their own, what dwz has moved from another
 * file, sections as elf/inflate.h decompresses them (zlib, zstd). A file with a table of lines and
 * nothing else gives lines.
 *
 * Own reader instead of libdw (docs/decisions/0050): sections are read in pieces with pread, so a
 * file of any size takes what its hot units take, and every entry and line instruction is a step of
 * a budget that the caller sets.
 *
 * In memory: 24 bytes a range of a unit, 80 a unit; of the units asked for last their functions (24
 * bytes each) and lines (16 each), up to a limit. Used by one thread at a time. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

struct dwarf;

/* Descriptors are borrowed and must outlive the reader; -1: there is none. */
struct dwarf_files {
	int fd;    /* of the program, or of its debug file */
	int alt;   /* .gnu_debugaltlink's */
	int split; /* the package of split units; without it their files are added one by one */
	size_t max_bytes; /* of memory, about; at least 1 MiB */
	uint64_t steps;   /* to begin with */
};

/* Reads which unit has which addresses. -ENOENT: no debug information; -EAGAIN: its units are
 * split, and there is no package; -E2BIG: more than the limits; -ETIME: out of steps; -ENOTSUP,
 * -ENOEXEC, -ENOMEM or an errno. O(units). */
int dwarf_new(struct dwarf **ret, const struct dwarf_files *files, struct error *err);
void dwarf_free(struct dwarf *d);

/* Grants steps: what is left of earlier ones is gone. */
void dwarf_grant(struct dwarf *d, uint64_t steps);
size_t dwarf_bytes(const struct dwarf *d);
/* Whether some unit's functions or lines have been left out, since they would take more memory than
 * they may. */
bool dwarf_is_cut(const struct dwarf *d);
/* Descriptors of its own: of inflated sections. */
size_t dwarf_n_fds(const struct dwarf *d);

/* Files of split units (.dwo) that were missing when an address was asked for, each named once: its
 * path, as the compiler wrote it; NULL: no more. Borrowed until the next call. */
const char *dwarf_wants(struct dwarf *d);

/* Adds such a file; its descriptor is borrowed and must outlive the reader. 0: addresses asked for
 * from now on are found in it; -E2BIG: too many are there; -ENOEXEC, -ENOMEM or an errno. */
int dwarf_add_split(struct dwarf *d, int fd);

struct dwarf_text {
	uint32_t at, n; /* in frames.text; n 0: unknown */
};

struct dwarf_frame {
	struct dwarf_text function, file;
	bool linked;           /* function is a linked name (mangled), not one of the source */
	uint32_t line, column; /* 0: unknown */
	uint32_t start_line;
};

struct dwarf_frames {
	VEC(struct dwarf_frame) list; /* the innermost inlined call first */
	struct buf text;
};

/* What stands at an address, replacing what *ret held. Names are raw bytes of at most 4 KiB. The
 * last frame is the function itself; its name may be unknown while the line is not. -ENOENT: no
 * unit knows the address; -ETIME: out of steps; -ENOEXEC, -E2BIG, -ENOMEM or pread's errno. Asking
 * in the order of addresses reads each unit once: O(unit), then O(log n) and the function's inlined
 * calls. */
int dwarf_find(struct dwarf *d, uint64_t address, struct dwarf_frames *ret);
void dwarf_frames_free(struct dwarf_frames *f);

static inline struct str dwarf_frame_text(const struct dwarf_frames *f, struct dwarf_text t)
{
	return t.n ? (struct str){f->text.p + t.at, t.n} : STR_NULL;
}
