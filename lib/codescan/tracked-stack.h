/* SPDX-License-Identifier: Apache-2.0 */
/* What x86-64 instructions do to the stack pointer and the frame pointer. Pure. */
#pragma once

#include "codescan/x86.h"

/* What is known of the stack at an instruction. */
struct tracked_stack {
	bool known, end;
	bool by_sp, by_fp; /* the CFA is at stack pointer + sp, at frame pointer + fp */
	int32_t sp, fp;
	int32_t saved; /* the frame pointer is at CFA - saved; 0: it is not saved */
	/* Where the stack is aligned: the stack pointer as it was is copied to a register and
	 * stored. */
	bool by_slot;    /* the CFA is at *(stack pointer + slot) + far */
	uint16_t copies; /* a bit for each register that is CFA - far */
	int32_t slot, far;
};

/* Behind an instruction that is neither a jump nor a return. */
void tracked_stack_step(struct tracked_stack *s, const struct x86_instruction *i);
