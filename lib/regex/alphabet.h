/* SPDX-License-Identifier: Apache-2.0 */
/* The characters that a program can tell apart. Two code points that are in the same of its sets
 * (and, where it has assertions, are alike for these) are one letter; what the automaton steps over
 * are letters, so its tables are as wide as the pattern is diverse and not as Unicode is. */
#pragma once

#include "regex/program.h"
#include "regex/unicode.h"

#define LETTERS_MAX 2048u

/* What assertions ask of a letter. */
#define LETTER_NEWLINE 1u
#define LETTER_WORD    2u
#define LETTER_NONE    4u /* the border of the text */

struct alphabet {
	uint32_t n_letters;
	uint16_t ascii[128];  /* letter of a code point */
	VEC(uint32_t) starts; /* the others: letters.p[i] from starts.p[i] on */
	VEC(uint16_t) letters;
	uint8_t *kinds;   /* of each letter: NEWLINE, WORD or 0 */
	uint8_t *members; /* [set · n_letters + letter]: whether it is in the set */
};

/* 0, -E2BIG for more letters than LETTERS_MAX, or -ENOMEM. */
int alphabet_init(struct alphabet *a, const struct program *program);
void alphabet_fini(struct alphabet *a);

/* O(log n), for ASCII O(1). */
uint16_t alphabet_letter(const struct alphabet *a, uint32_t c);

static inline bool alphabet_has(const struct alphabet *a, uint32_t set, uint16_t letter)
{
	return a->members[(size_t)set * a->n_letters + letter];
}

/* The last (first) character's letter of a non-empty text, and its length. */
static inline uint16_t alphabet_last(const struct alphabet *a, struct str s, size_t *ret_length)
{
	unsigned char byte = (unsigned char)s.p[s.n - 1];
	uint32_t c;

	*ret_length = 1;
	if (byte < 0x80)
		return a->ascii[byte];
	*ret_length = rune_decode_last(s, &c);
	return alphabet_letter(a, c);
}

static inline uint16_t alphabet_first(const struct alphabet *a, struct str s, size_t *ret_length)
{
	unsigned char byte = (unsigned char)s.p[0];
	uint32_t c;

	*ret_length = 1;
	if (byte < 0x80)
		return a->ascii[byte];
	*ret_length = rune_decode(s, &c);
	return alphabet_letter(a, c);
}
