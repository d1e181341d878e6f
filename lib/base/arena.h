/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is freed all at once. Pointers stay where they are until arena_free. ARENA_NULL is a
 * valid empty arena. */
#pragma once

#include "base/str.h"

#include <stddef.h>

struct arena_block;

struct arena {
	struct arena_block *head;
	size_t bytes; /* taken from the system so far */
};

#define ARENA_NULL ((struct arena){0})

void arena_free(struct arena *a);

/* Gives `to` all that `from` holds. */
void arena_join(struct arena *to, struct arena *from);

/* n zeroed bytes, 16-aligned; NULL when memory is short. O(n). */
void *arena_alloc(struct arena *a, size_t n);
#define arena_array(a, type, count) ((type *)arena_calloc((a), (count), sizeof(type)))
void *arena_calloc(struct arena *a, size_t count, size_t size);

/* A NUL-terminated copy; p is NULL when memory is short. */
struct str arena_str(struct arena *a, struct str s);

/* printf into the arena; NULL when memory is short. */
char *arena_printf(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
