/* SPDX-License-Identifier: Apache-2.0 */
/* Which types and functions the running kernel describes (BTF, /sys/kernel/btf/vmlinux): what a
 * program of its could use. By name alone, which is enough to ask for a function, and spares
 * parsing a hundred thousand types, as libbpf would.
 *
 * Source of the format: linux/btf.h; a section of strings, each with a NUL before and behind it. */
#pragma once

#include "base/buf.h"

/* What the kernel says of its types, mapped, or copied where it cannot be (before 6.16). */
struct kernel_types {
	struct str text;
	void *map; /* or NULL */
	struct buf copy;
};

/* 0 or a negative errno. [any] */
int kernel_types_read(struct kernel_types *ret);
void kernel_types_fini(struct kernel_types *t);

/* Whether a type, a function or a member has this name. False where the kernel does not tell. One
 * look through its strings, two megabytes: a millisecond, a few more where the file cannot be
 * mapped (before 6.16). */
bool kernel_types_name(const char *name);

/* The same for the text of such a file: untrusted, any bytes are legal input. O(n). */
bool kernel_types_text_names(struct str btf, const char *name);
