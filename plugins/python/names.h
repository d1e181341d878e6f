/* SPDX-License-Identifier: Apache-2.0 */
/* Records of code objects, as names of the cache. */
#pragma once

#include "python/lines.h"
#include "python/wire.h"
#include "runtime-kit/name-cache.h"

/* A line table that the program could not copy whole. Of half a million code objects of packages
 * 36 have a longer one, nearly all of them bodies of modules with data. */
#define NAMES_TABLE_MAX (32u << 10)

/* A record of the program's, of `size` bytes, into the cache. `table` is its whole line table,
 * where the record has a part of it only, or NULL. 0, -EINVAL for a malformed record, or as
 * name_cache_put(). */
int names_add(struct name_cache *c, const void *record, size_t size, const unsigned char *table);

/* The line table of a name. */
struct line_table names_lines(const struct name *name);
