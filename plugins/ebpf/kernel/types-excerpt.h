/* SPDX-License-Identifier: Apache-2.0 */
/* Of the kernel's types those that an object's programs name, with the members that they name: what
 * libbpf needs to relocate the object. The whole has a hundred thousand types, in six megabytes.
 * libbpf reads, copies and checks them anew for each object, and looks through them for each type
 * that the object names: two fifths of what it took to start sampling.
 *
 * An object has it if it needs no more than offsets, sizes and values of enumerations. A function
 * of the kernel (kfunc), a program of type tracing, or a type's number must be looked up in the
 * whole.
 *
 * Invariant: what libbpf finds in an excerpt is what it would find in the whole. So a struct keeps
 * its size and its members' offsets, all types of one name are taken, and a type behind a pointer,
 * which relocation does not look at, is void. */
#pragma once

#include "base/str.h"

struct bpf_object;
struct btf;

/* `kernel` is a text as /sys/kernel/btf/vmlinux is: any bytes are legal input. `needs` are the
 * object's own types. 0 with a BTF that the caller frees, or a negative errno. O(kernel). */
int types_excerpt_make(struct str kernel, const struct btf *needs, struct btf **ret);

/* A file for libbpf's option `btf_custom_path`. The path is known when the object is opened, the
 * content once its types are. */
struct types_excerpt {
	int fd;
	char path[32];
};

/* The path; NULL where there is no such file, and libbpf reads the whole by itself. */
const char *types_excerpt_open(struct types_excerpt *e);
/* What the object needs; all types where an excerpt cannot be made. 0 or a negative errno. */
int types_excerpt_fill(const struct types_excerpt *e, const struct bpf_object *object);
void types_excerpt_close(struct types_excerpt *e);
