/* SPDX-License-Identifier: Apache-2.0 */
/* The files that split units are in: one package, or a file for each unit, which is opened when the
 * unit is needed. Which ones are missing is remembered, for whoever can open files. */
#pragma once

#include "dwarf/unit.h"

#define SPLIT_FILES_MAX  128u /* single ones, of a program at a time */
#define SPLIT_WANTED_MAX 64u
#define SPLIT_ASKED_MAX  4096u

struct split_wanted {
	uint64_t id;
	struct buf path; /* with a NUL behind it */
};

struct split {
	struct dwarf_file package;
	bool has_package;
	VEC(struct dwarf_file *) files;
	VEC(struct split_wanted) wanted;
	VEC(uint64_t) asked; /* ids that have been wanted once; by chance, not by order */
};

void split_fini(struct split *s);
size_t split_bytes(const struct split *s);
size_t split_n_fds(const struct split *s);

/* The unit with the body of a skeleton, and the file that it is in. -EAGAIN: it is not at hand, and
 * is wanted from now on, unless it was before; or -ENOMEM. */
int split_find(struct split *s, const struct unit *skeleton, struct dwarf_file **ret_file,
	       const struct unit_head **ret);

/* Another file, its descriptor borrowed. -E2BIG: there are too many; or as dwarf_file_open. */
int split_add(struct split *s, int fd);
