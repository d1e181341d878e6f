/* SPDX-License-Identifier: Apache-2.0 */
/* The first pass over code that nothing describes (code-rows.h): it finds where functions begin. */
#pragma once

#include "codescan/code-rows.h"

#define ROWS_CODE_ROUND 16u /* functions begin at multiples of this, if at anything */

/* What stands at an address, counted as work. 0, or an errno of a read. */
int rows_code_decode(struct rows_code *c, uint64_t at, struct x86_instruction *ret);

/* Marks the beginnings in c->called; the maps are empty but for what others have marked. 0 or an errno of a read. */
int rows_code_sweep(struct rows_code *c);
