/* SPDX-License-Identifier: Apache-2.0 */
/* Letters and digits of ASCII, whatever the process's locale is, which <ctype.h> would ask. Pure,
 * O(1). */
#pragma once

#include <stdbool.h>

static inline bool ascii_is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static inline bool ascii_is_letter(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline bool ascii_is_alnum(int c)
{
	return ascii_is_digit(c) || ascii_is_letter(c);
}

static inline char ascii_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* The value of a hexadecimal digit, or -1. */
static inline int ascii_hex_value(int c)
{
	if (ascii_is_digit(c))
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
