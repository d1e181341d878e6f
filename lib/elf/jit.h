/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that a runtime has compiled itself, as it tells of them: a perf
 * map (lines of "START SIZE NAME", start and size in hex;
 * tools/perf/Documentation/jit-interface.txt of Linux), or a jitdump file (binary records;
 * jitdump-specification.txt there). Both grow while the process lives (one that has become shorter
 * was written anew); what a runtime says of its
 * own code may be wrong, and later words count before earlier ones.
 *
 * 24 bytes a function and its name. */
#pragma once

#include "base/buf.h"
#include "base/vec.h"

#include <stdint.h>

#define JIT_MAX_FUNCTIONS (1u << 20)

struct jit_function {
	uint64_t address;
	uint32_t size;
	uint32_t name, length; /* in names */
	uint32_t order;
};

struct jit {
	VEC(struct jit_function) list; /* by address, then order */
	struct buf names;
	uint64_t at; /* how far the file is read */
	uint32_t orders;
	bool dump; /* it is a jitdump */
};

#define JIT_NULL ((struct jit){0})

/* Reads what has been written since the last call; a line or record that is not whole yet is left
 * for the next. 1: there was something new; 0; -ENOEXEC: neither kind of file; -E2BIG: more
 * functions than the limit, or names of more than max_bytes; -ENOMEM or pread's errno. After a
 * failure what was read before is kept. */
int jit_load(struct jit *j, int fd, size_t max_bytes);
void jit_free(struct jit *j);
size_t jit_bytes(const struct jit *j);

/* The function that covers an address, the one told last; borrowed until the next load. False if
 * none does. O(log n). */
bool jit_find(const struct jit *j, uint64_t address, struct str *ret);
