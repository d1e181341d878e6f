/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of files, by object id, and which of the program's layouts each interpreter has.
 * Each file is read once. */
#pragma once

#include "python/interpreter.h"

#include <andiron/host.h>

struct binary {
	uint64_t object;
	struct binary *next;             /* in its bucket */
	struct interpreter *interpreter; /* NULL: it has none */
	uint32_t layout; /* index into `layouts`; PYTHON_LAYOUTS: none at the moment */
	uint32_t n_processes;
};

struct binaries;

/* `layouts` is the program's map. NULL when memory is short. */
struct binaries *binaries_new(const struct andiron_extension *objects, int layouts);
void binaries_free(struct binaries *b);

/* The file's, read if it is new. NULL when memory is short, or it cannot be opened. Lives as long
 * as the table. */
struct binary *binaries_find(struct binaries *b, uint64_t object);

/* A process uses it, and it has a layout in the program's map then; false: no room for one. */
bool binary_retain(struct binaries *b, struct binary *binary);
void binary_release(struct binary *binary);
