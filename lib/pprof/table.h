/* SPDX-License-Identifier: Apache-2.0 */
/* Distinct byte records under dense ids from 0, stored end to end: 4 bytes and an index slot on top
 * of each record's own. An encoder keeps every message of a kind in one, already in wire form, so
 * that equality is memcmp and writing is copying. One of zeros is valid, and empty. */
#pragma once

#include "base/buf.h"
#include "base/index.h"
#include "base/vec.h"

struct table {
	struct buf bytes;
	VEC(uint32_t) ends;
	struct index index;
};

void table_free(struct table *t);

/* The record's id, making one if need be; *ret_new tells which. INDEX_NONE when memory is short
 * (unchanged). The bytes are copied. Expected O(s.n). */
uint32_t table_add(struct table *t, struct str s, bool *ret_new);

/* A record by id; valid until the next add. O(1). */
static inline struct str table_get(const struct table *t, uint32_t id)
{
	uint32_t start = id ? t->ends.p[id - 1] : 0;

	return (struct str){t->bytes.p + start, t->ends.p[id] - start};
}
