/* SPDX-License-Identifier: Apache-2.0 */
/* Characters: their encoding, their case, and the sets that \p{…} names. The data is that of Go's
 * package unicode, so that rules mean the same here and in Prometheus. */
#pragma once

#include "base/buf.h"
#include "regex/charset.h"

#define RUNE_ERROR 0xfffdu   /* stands for a byte that is no part of a character */
#define RUNE_MAX   0x10ffffu /* the last code point */

/* The first (last) character of a non-empty text and its length; RUNE_ERROR and 1 for a byte that
 * belongs to none. Both cut a text into the same pieces. */
size_t rune_decode(struct str s, uint32_t *ret);
size_t rune_decode_last(struct str s, uint32_t *ret);

/* Appends the encoding of c ≤ RUNE_MAX. 0, -ENOMEM or -E2BIG. */
int rune_encode(uint32_t c, struct buf *out);

/* Whether it is a letter or a decimal digit; beyond ASCII O(table). */
bool rune_is_alnum(uint32_t c);

/* Simple mappings; O(log n). */
uint32_t rune_upper(uint32_t c);
uint32_t rune_lower(uint32_t c);
/* The next character that is equal without regard to case, the first again after the last; c itself
 * where there is none. */
uint32_t rune_fold(uint32_t c);

/* Appends `s` in upper or lower case as Go's strings.ToUpper and ToLower: simple mapping of each
 * character; a byte that belongs to none becomes U+FFFD. 0, -ENOMEM or -E2BIG. */
int case_map(struct str s, bool upper, struct buf *out);

/* Adds to `set` everything that folds to a member, which is to be cleaned then. 0 or -ENOMEM. */
int charset_fold(struct charset *set);

/* Adds the members of the category, script or "Any", "ASCII", "Assigned" of this name, spelled in
 * any case and with any spaces, hyphens and underscores. -ENOENT if there is none, -ENOMEM. */
int charset_add_named(struct charset *set, struct str name);
