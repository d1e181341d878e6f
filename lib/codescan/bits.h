/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of bits, a bit for each byte or for each round address of code. Of bytes, so that several
 * share one piece of memory whatever their sizes are. Bounds are the caller's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

static inline void bits_set(uint8_t *bits, uint64_t at)
{
	bits[at / 8] |= (uint8_t)(1 << at % 8);
}

static inline void bits_clear(uint8_t *bits, uint64_t at)
{
	bits[at / 8] &= (uint8_t) ~(1 << at % 8);
}

static inline bool bits_has(const uint8_t *bits, uint64_t at)
{
	return bits[at / 8] >> at % 8 & 1;
}

/* The first one that is set of those from `at` on below n; n: none is. */
static inline uint64_t bits_next(const uint8_t *bits, uint64_t at, uint64_t n)
{
	while (at < n && !bits_has(bits, at))
		at += at % 8 == 0 && bits[at / 8] == 0 ? 8 : 1;
	return at < n ? at : n;
}
