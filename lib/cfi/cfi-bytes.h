/* SPDX-License-Identifier: Apache-2.0 */
/* A cursor over bytes of call-frame information. What would read past the end gives 0 and sets
 * `broken`, once and for all, so that a run of reads is checked at its end. Numbers longer than 64
 * bits wrap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cfi_bytes {
	const uint8_t *p, *end;
	bool broken;
};

static inline const uint8_t *cfi_take(struct cfi_bytes *b, uint64_t n)
{
	const uint8_t *p = b->p;

	if ((uint64_t)(b->end - p) < n) {
		b->broken = true;
		b->p = b->end;
		return NULL;
	}
	b->p = p + n;
	return p;
}

/* A number of n ≤ 8 bytes, little-endian. */
static inline uint64_t cfi_number(struct cfi_bytes *b, size_t n)
{
	const uint8_t *p = cfi_take(b, n);
	uint64_t value = 0;

	if (p)
		memcpy(&value, p, n);
	return value;
}

/* The same, signed; n is 1, 2, 4 or 8. */
static inline int64_t cfi_signed(struct cfi_bytes *b, size_t n)
{
	unsigned int shift = 64 - 8 * (unsigned int)n;

	return (int64_t)(cfi_number(b, n) << shift) >> shift;
}

static inline uint8_t cfi_u8(struct cfi_bytes *b)
{
	if (b->p == b->end) {
		b->broken = true;
		return 0;
	}
	return *b->p++;
}

uint64_t cfi_uleb_long(struct cfi_bytes *b);

static inline uint64_t cfi_uleb(struct cfi_bytes *b)
{
	if (b->p < b->end && *b->p < 0x80)
		return *b->p++;
	return cfi_uleb_long(b);
}

int64_t cfi_sleb(struct cfi_bytes *b);
