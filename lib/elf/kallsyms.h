/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's functions, as /proc/kallsyms lists them: "address type name", and "[module]" behind
 * what is not the kernel's own (modules, "bpf" for compiled programs). It gives no sizes: an extent
 * runs up to the next symbol of the same module. Nothing is named across the border of a module;
 * its last function ends where the next module begins, at most 64 KiB on. Data and the padding in
 * front of a function ("__pfx_NAME") have no names and end what is before them.
 *
 * Names are kept: the list cannot be read at an offset, and printing it costs the kernel tens of
 * milliseconds. 16 bytes a function and its name. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/vec.h"

struct kallsyms_symbol {
	uint64_t address;
	uint32_t name; /* offset in names, or KALLSYMS_END */
	uint16_t module;
	uint16_t local;
};

#define KALLSYMS_END UINT32_MAX /* not a function: code ends here */

struct kallsyms {
	VEC(struct kallsyms_symbol) symbols; /* by address */
	struct buf names;                    /* each with its NUL */
	struct intern modules;               /* 0: the kernel itself */
};

#define KALLSYMS_NULL ((struct kallsyms){0})

/* Reads the list from its beginning, in pieces; the descriptor's position, which it may share with
 * others, stays. -EACCES: all addresses are zero, the
 * kernel hides them from us (kptr_restrict); -EINVAL: not such a list; -E2BIG: over a million
 * functions or 64 MiB of names; -ENOMEM or an errno. O(n). */
int kallsyms_load(struct kallsyms *ret, int fd, struct error *err);
void kallsyms_free(struct kallsyms *k);
size_t kallsyms_bytes(const struct kallsyms *k);

/* The function that covers a kernel address, its module "" for the kernel's own; both borrowed. Of
 * several names the one that elf/symbols.h prefers. False if none does. O(log n). */
bool kallsyms_find(const struct kallsyms *k, uint64_t address, struct str *name,
		   struct str *module);
