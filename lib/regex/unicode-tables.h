/* SPDX-License-Identifier: Apache-2.0 */
/* The form of the generated Unicode tables, for unicode.c only.
 *
 * unicode_categories and unicode_scripts divide all code points into runs: the length of a run as a
 * varint (seven bits a byte, low ones first), and one byte, the number of the category or script
 * from 1, 0 where there is none. Names are sorted bytewise and written as `spell` of unicode.c
 * does. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A category's value has bit i set for the categories of number i + 1 that it is made of; a
 * script's is its number. */
struct unicode_name {
	const char *name;
	uint64_t value;
};

/* What is to be added to first, first + step … last for their simple mappings, and for the next of
 * the characters that are equal without regard to case. */
struct unicode_case {
	uint32_t first, last, step;
	int32_t upper, lower, fold;
};

extern const uint8_t unicode_categories[], unicode_scripts[];
extern const size_t unicode_categories_size, unicode_scripts_size;
extern const struct unicode_name unicode_category_names[], unicode_script_names[];
extern const size_t unicode_category_names_count, unicode_script_names_count;
extern const struct unicode_case unicode_cases[];
extern const size_t unicode_cases_count;
