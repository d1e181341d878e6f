/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of files, and which of the program's layouts each interpreter has. */
#pragma once

#include "python/interpreter.h"
#include "runtime-kit/object-table.h"

#define BINARIES_MAX 8192u /* files that no process uses, 64 bytes each */

struct binary {
	struct object_entry entry;       /* its slot: index into the map `layouts` */
	struct interpreter *interpreter; /* NULL: the file has none */
	struct tasks *asyncio;           /* NULL: nor has it this module */
	/* Of an interpreter: what its processes' asyncio says, once one has it. */
	struct python_tasks *tasks;
};

struct binaries {
	struct object_table table;
	int layouts, tasks; /* the program's maps */
};

/* 0 or -ENOMEM. */
int binaries_init(struct binaries *b, const struct andiron_extension *objects, int layouts,
		  int tasks);
/* Also after a failure, and of zeros. */
void binaries_fini(struct binaries *b);

/* The file's, read if it is new. NULL when memory is short, or it cannot be opened. Lives until the
 * next call, or until it is released. */
struct binary *binaries_find(struct binaries *b, uint64_t object);

/* A process uses it, and it has a layout in the program's map then; false: no room for one. */
bool binary_retain(struct binaries *b, struct binary *binary);
void binary_release(struct binary *binary);

/* A process that uses the interpreter has this file with asyncio. Whether the program knows where
 * its tasks are: not where the two do not fit, or the same interpreter has had another asyncio. */
bool binary_has_asyncio(struct binaries *b, struct binary *interpreter,
			const struct binary *asyncio);
