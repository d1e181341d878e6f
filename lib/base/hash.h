/* SPDX-License-Identifier: Apache-2.0 */
/* Hashing for tables, not for identity on any wire. Seeded per process by the address-space layout,
 * so values must not be stored or sent. */
#pragma once

#include "base/str.h"

#include <stdint.h>

/* One round of mixing: every input bit reaches every output bit. */
static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
	__extension__ typedef unsigned __int128 u128;
	u128 product = (u128)(a ^ 0x9e3779b97f4a7c15ull) * (b ^ 0xe7037ed1a0b428dbull);

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_u64(uint64_t value)
{
	return hash_mix(value, 0x8ebc6af09c88c6e3ull);
}

uint64_t hash_bytes(const void *data, size_t n);

static inline uint64_t hash_str(struct str s)
{
	return hash_bytes(s.p, s.n);
}
