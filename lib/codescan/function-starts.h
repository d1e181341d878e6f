/* SPDX-License-Identifier: Apache-2.0 */
/* The first pass over code that no table describes (code-rows.h): it finds where functions
 * begin. */
#pragma once

#include "codescan/code-rows.h"

#define FUNCTION_ALIGN 16u /* functions begin at multiples of this, if at anything */

/* Decodes the instruction at an address, and counts that as work. 0, or an errno of a read. */
int code_rows_decode(struct code_rows *c, uint64_t at, struct x86_instruction *ret);

/* Fills in c->starts, whose maps are empty but for what code_rows_mark has put there. 0 or an errno
 * of a read. */
int code_rows_sweep(struct code_rows *c);
