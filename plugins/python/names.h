/* SPDX-License-Identifier: Apache-2.0 */
/* What code objects are called, by the ids that the BPF program gives them. Names outlive their
 * process. Equal ones of many processes are kept once. Bounded in bytes: what was not asked for is
 * forgotten by halves, and the program is made to tell it again. */
#pragma once

#include "python/lines.h"
#include "python/wire.h"

#include <stdbool.h>
#include <stddef.h>

#define NAMES_BYTES (4u << 20) /* of each half */

struct name {
	const char *function, *file; /* UTF-8 unless the process forged it; not terminated */
	uint32_t n_function, n_file;
	struct line_table lines;
	uint32_t all_lines; /* bytes of the table; more than lines.n where it was cut */
};

struct names;

/* `forget` is called for each id that is no longer known. NULL when memory is short. */
struct names *names_new(void (*forget)(void *context, uint64_t id), void *context);
void names_free(struct names *n);

/* A line table that the program could not copy whole. */
#define NAMES_TABLE_MAX (1u << 18)

/* A record of the program's, of `size` bytes. `table` is its whole line table, where the record has
 * a part of it only, or NULL. false: it is malformed, or memory is short. */
bool names_add(struct names *n, const void *record, size_t size, const unsigned char *table);

/* Holds until the next call. false: not known. O(1). */
bool names_find(struct names *n, uint64_t id, struct name *ret);

/* Bytes in use. */
size_t names_bytes(const struct names *n);
