/* SPDX-License-Identifier: Apache-2.0 */
/* The executable mappings of a process, from /proc/PID/maps. The text is untrusted: any bytes are
 * legal input. Source of the format: proc(5). */
#pragma once

#include "ebpf/processes/mapped-file.h"
#include "bpfwire/sampler.h"

#include "base/arena.h"
#include "base/vec.h"

/* One line of the file. `path` is borrowed, without " (deleted)". */
struct maps_line {
	uint64_t start, limit, offset, device, inode;
	bool executable, writable;
	struct str path;
};

/* False if the line is not one. */
bool maps_parse_line(struct str line, struct maps_line *ret);

/* No process needs more; what it has beyond stays unknown. */
#define MAPS_MAX 16384u

struct mapping {
	uint64_t start, limit, offset;
	struct mapped_file *file; /* NULL: no file, `name` says what it is */
	struct str name;          /* empty where there is a file: the object knows its path */
	uint64_t line;            /* a hash of its line in the text; 0: of none */
};

/* Code [from, to) that the program of a language runtime walks: by a file's own addresses, or by a
 * process's, whatever is mapped there. */
struct code_claim {
	uint64_t from, to;
	uint16_t slot; /* of the program */
};

/* The mappings of a process at one moment, ascending; `older`: before, in this interval. */
struct mapset {
	struct mapset *older;
	VEC(struct mapping) list;
	VEC(struct code_claim) claims; /* ascending, apart from each other */
	bool claimed;                  /* runtimes were asked for their claims */
	uint32_t exec_pages;           /* executable and not writable: mm_struct.exec_vm */
	bool whole;                    /* every file in it was opened, and nothing is omitted */
	bool inherited;                /* another process has them */
	uint64_t generation;           /* unwind_generation of the process that had them */
	uint64_t text;                 /* a hash of the text that says all of this; 0: of none */
	uint64_t asked;                /* as struct procmap has it, of that text */
	struct str exe;                /* the program, by its path; empty: unknown */
	struct arena arena;            /* names */
};

void mapset_free(struct mapset *set); /* with all older ones */

/* Opens the file of a line: a descriptor, or -1 with no file to be had. A line without a file
 * (inode 0) is JIT-compiled code: its JIT source is opened (jit-source.h), and `reopen` says where
 * that is. */
typedef int (*maps_open_fn)(void *context, const struct maps_line *line, char *reopen, size_t n);

/* Makes a set of the executable mappings of a maps text. NULL when memory is short. A file that
 * cannot be opened is known by its name only. A line that stood in the text of `like` already has
 * the same file; NULL: all files are opened. Of a file that cannot be opened, since the process is
 * ending, what the same program had mapped there `before` is taken, if it is the same file; NULL:
 * nothing was known. */
struct mapset *mapset_parse(struct str text, struct mapped_files *files, maps_open_fn open,
			    void *context, const struct mapset *like, const struct mapset *before);

/* The name of a mapping whose file nobody has opened yet. */
#define MAPS_UNKNOWN_FILE "[unknown file]"

/* A set from the kernel's list, with known files only. NULL when memory is short. */
struct mapset *mapset_take(const struct sampler_mapped *mapped, struct mapped_files *files);

/* Whether both say the same of the same program; claims and older sets do not count. */
bool mapset_equal(const struct mapset *a, const struct mapset *b);

/* Has it remember the text of an equal one. */
void mapset_keep_text(struct mapset *set, const struct mapset *same);

/* The same set once more, with its claims, without older ones; NULL when memory is short. */
struct mapset *mapset_copy(const struct mapset *set);

/* Gives JIT-compiled code without a source in `set` the source that such code has in `older`, a set
 * of the same program and process. Its source may be unmapped, or the process gone, by then. */
void mapset_keep_jit_sources(struct mapset *set, const struct mapset *older);

/* Has runtimes asked for their claims again, also on older sets. NULL is none. */
void mapset_forget_claims(struct mapset *set);

/* Whether it is JIT-compiled code, whose file is the source of its symbols. */
bool mapping_has_jit_source(const struct mapping *m);

/* The mapping that holds `pc`, the newest first; NULL if none does. O(sets · log mappings). */
const struct mapping *mapset_find(const struct mapset *set, uint64_t pc);

/* The same, but as of the exec that sampler_stack_exec says, if there is one. */
const struct mapping *mapset_find_exec(const struct mapset *set, uint32_t exec, uint64_t pc);

/* Where `pc` lies in the mapping's file, as the file itself counts; for what is no file, `pc`
 * itself ("[vdso]": within it). */
uint64_t mapping_address(const struct mapping *m, uint64_t pc);
