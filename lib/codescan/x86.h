/* SPDX-License-Identifier: Apache-2.0 */
/* x86-64 instructions, as far as it takes to step from one to the next and to see what moves the
 * stack pointer. Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2,
 * chapter 2 and appendix A. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define X86_MAX 15u /* bytes of an instruction */

struct x86_instruction {
	uint8_t n;   /* bytes; 0: none that this knows */
	uint8_t map; /* 0: one byte; 1: 0f; 2: 0f 38; 3: 0f 3a; the same for VEX and EVEX */
	uint8_t op;
	bool vector; /* VEX or EVEX */
	bool wide;   /* REX.W */
	bool has_modrm;
	uint8_t mod, reg, rm; /* with REX's bits; rm: the base register, or that of the opcode */
	bool memory, based;   /* an operand in memory; with a base register and no index */
	bool from_pc;         /* … counted from the next instruction */
	int32_t displacement;
	int64_t immediate;
};

/* Decodes what stands at p, of n bytes; zeros, if that is none that this knows. */
void x86_decode(const uint8_t *p, size_t n, struct x86_instruction *ret);

static inline bool x86_is_one_byte(const struct x86_instruction *i)
{
	return i->map == 0 && !i->vector;
}

static inline bool x86_is_near_jump(const struct x86_instruction *i)
{
	return x86_is_one_byte(i) && (i->op == 0xe9 || i->op == 0xeb);
}

/* loop and its kind are conditional jumps too. */
static inline bool x86_is_conditional(const struct x86_instruction *i)
{
	if (x86_is_one_byte(i))
		return (i->op & 0xf0) == 0x70 || (i->op & 0xfc) == 0xe0;
	return i->map == 1 && !i->vector && (i->op & 0xf0) == 0x80;
}

static inline bool x86_is_table_jump(const struct x86_instruction *i)
{
	return x86_is_one_byte(i) && i->op == 0xff && (i->reg & 6) == 4;
}

static inline bool x86_is_call(const struct x86_instruction *i)
{
	return x86_is_one_byte(i) && (i->op == 0xe8 || (i->op == 0xff && (i->reg & 7) == 2));
}

static inline bool x86_is_return(const struct x86_instruction *i)
{
	return x86_is_one_byte(i) && (i->op == 0xc2 || i->op == 0xc3);
}

/* int3, iret, hlt, ud2 */
static inline bool x86_is_stop(const struct x86_instruction *i)
{
	if (x86_is_one_byte(i))
		return i->op == 0xcc || i->op == 0xcf || i->op == 0xf4;
	return i->map == 1 && !i->vector && i->op == 0x0b;
}

/* Whether nothing falls through. */
static inline bool x86_ends(const struct x86_instruction *i)
{
	return x86_is_near_jump(i) || x86_is_table_jump(i) || x86_is_return(i) || x86_is_stop(i);
}

static inline bool x86_is_padding(const struct x86_instruction *i)
{
	return (i->map == 0 && ((i->op == 0x90 && i->rm == 0) || i->op == 0xcc)) ||
	       (i->map == 1 && !i->vector && i->op == 0x1f);
}
