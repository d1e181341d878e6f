/* SPDX-License-Identifier: Apache-2.0 */
/* V8's tables from code to source. A table of source positions is a list of pairs of numbers in
 * groups of seven bits: how far the code offset is from the one before, and how far the position
 * is, with a sign. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "v8/binary.h"

/* A position: where in a script, and in which function that was inlined (-1: in none). */
struct position {
	int32_t at; /* -1: not known */
	int32_t inlined;
};

/* As V8 packs it into a word. */
struct position position_of(uint64_t word);

/* The position of the last entry at or before an offset; false: there is none. `positions_shift` of
 * the file is of the code offset in an entry's first number, whose low bits say what the entry is
 * for. */
bool positions_find(const uint8_t *table, uint32_t n, const struct v8_binary *b, int64_t offset,
		    struct position *ret);

/* Where the last entry is; false: there is none. */
bool positions_last(const uint8_t *table, uint32_t n, const struct v8_binary *b, uint32_t *ret);

/* Whether no entry is behind the end of the code: a table that is read by a wrong shift is
 * longer. */
bool positions_fit(const uint8_t *table, uint32_t n, const struct v8_binary *b, uint64_t end);

/* A step of the baseline compiler's code: it ends at `end`, and is of the bytecode at `offset`. */
struct baseline_step {
	uint32_t end, offset;
};

/* Joins the compiler's table of code sizes with the bytecodes whose code they are. NULL: they do
 * not fit. The caller frees it. */
struct baseline_step *baseline_steps(const struct v8_binary *b, const uint8_t *sizes,
				     uint32_t n_sizes, const uint8_t *bytecodes,
				     uint32_t n_bytecodes, uint32_t *ret_n);
