/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that look random and are the same in every run: xorshift64. */
#pragma once

#include <stddef.h>
#include <stdint.h>

static uint64_t random_state = 88172645463325252u;

static inline uint64_t random_word(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	return random_state ^= random_state << 17;
}

/* Below n. */
static inline uint32_t any(uint32_t n)
{
	return (uint32_t)random_word() % n;
}

/* Overwrites so many of n bytes, some perhaps twice. */
static inline void spoil(void *p, size_t n, size_t times)
{
	for (size_t i = 0; i < times; i++)
		((uint8_t *)p)[random_word() % n] = (uint8_t)random_word();
}
