/* SPDX-License-Identifier: Apache-2.0 */
/* Hashing of byte strings: eight bytes a multiplication. */
#include "base/hash.h"

#include <string.h>

uint64_t hash_bytes(const void *data, size_t n)
{
	const unsigned char *p = data;
	uint64_t h = hash_mix((uint64_t)(uintptr_t)&hash_bytes, n), word;

	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&word, p, 8);
		h = hash_mix(h, word);
	}
	word = 0;
	if (n)
		memcpy(&word, p, n);
	return hash_mix(h, word);
}
