/* SPDX-License-Identifier: Apache-2.0 */
/* What a DWARF expression of call-frame information computes, as a formula; only those that a rule
 * can say are told apart. Source of the operations: DWARF 5 §2.5 and §7.7.1. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FORMULA_UNKNOWN  0
#define FORMULA_CONSTANT 1 /* offset */
#define FORMULA_CFA      2 /* CFA + offset */
#define FORMULA_REGISTER 3 /* base + offset */
#define FORMULA_INDEXED  4 /* base + 8 other + offset */
#define FORMULA_MEMORY   5 /* *(base + offset) + extra */
#define FORMULA_ELEMENT  6 /* *(base + 8 other + offset) + extra */
#define FORMULA_PLT      7 /* base + offset, and 8 more where (pc & 15) >= extra */
/* Parts of these. */
#define FORMULA_SCALED   8  /* 8 other */
#define FORMULA_PC_LOW   9  /* pc & 15 */
#define FORMULA_PC_TEST  10 /* (pc & 15) >= extra */
#define FORMULA_PC_EIGHT 11 /* that, times 8 */

struct formula {
	uint8_t kind;
	uint8_t base, other; /* registers */
	int64_t offset, extra;
};

/* `pc`: the register that stands for the program counter. Those of rules for registers begin
 * with the CFA on the stack (`with_cfa`). O(n). */
struct formula rows_expression(const uint8_t *p, size_t n, uint8_t pc, int with_cfa);
