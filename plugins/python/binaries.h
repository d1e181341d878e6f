/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of files, and which of the program's layouts each interpreter has. */
#pragma once

#include "python/interpreter.h"
#include "runtime-kit/object-table.h"

#define BINARIES_MAX 8192u /* files that no process uses, 64 bytes each */

struct binary {
	struct object_entry entry;       /* its slot: index into the map `layouts` */
	struct interpreter *interpreter; /* NULL: the file has none */
};

struct binaries {
	struct object_table table;
	int layouts; /* the program's map */
};

/* 0 or -ENOMEM. */
int binaries_init(struct binaries *b, const struct andiron_extension *objects, int layouts);
/* Also after a failure, and of zeros. */
void binaries_fini(struct binaries *b);

/* The file's, read if it is new. NULL when memory is short, or it cannot be opened. Lives until the
 * next call, or until it is released. */
struct binary *binaries_find(struct binaries *b, uint64_t object);

/* A process uses it, and it has a layout in the program's map then; false: no room for one. */
bool binary_retain(struct binaries *b, struct binary *binary);
void binary_release(struct binary *binary);
