/* SPDX-License-Identifier: Apache-2.0 */
/* Stack effects. Contract in tracked-stack.h. Only what compilers and careful hands write is
 * followed; anything else that changes one of the two registers makes its value unknown. */
#include "codescan/tracked-stack.h"

/* Registers as instructions number them; DWARF's numbers differ. */
#define RSP 4
#define RBP 5

#define DEPTH_MAX (1 << 20)

static void move_sp(struct tracked_stack *s, int64_t by)
{
	int64_t sp = s->sp + by, slot = s->slot + by;

	s->by_sp = s->by_sp && sp >= 0 && sp < DEPTH_MAX;
	s->sp = (int32_t)sp;
	s->by_slot = s->by_slot && slot >= 0 && slot < DEPTH_MAX;
	s->slot = (int32_t)slot;
}

static void set_sp(struct tracked_stack *s, int64_t sp)
{
	s->by_sp = true;
	s->by_slot = false;
	s->sp = 0;
	move_sp(s, sp);
}

static void push(struct tracked_stack *s, bool fp)
{
	move_sp(s, 8);
	if (fp && s->by_sp && !s->saved && !s->by_fp)
		s->saved = s->sp;
}

static void pop(struct tracked_stack *s, uint8_t reg)
{
	move_sp(s, -8);
	if (reg == RBP) {
		s->saved = 0;
		s->by_fp = false;
	}
	if (reg == RSP)
		s->by_sp = s->by_slot = false;
}

/* A register gets a value that is not followed. */
static void clobber(struct tracked_stack *s, uint8_t reg)
{
	if (reg == RSP)
		s->by_sp = s->by_slot = false;
	if (reg == RBP)
		s->by_fp = false;
}

/* A register gets another, plus an offset. */
static void assign(struct tracked_stack *s, uint8_t to, uint8_t from, int64_t offset)
{
	if (to == RSP && from == RSP) {
		move_sp(s, -offset);
	} else if (to == RSP && from == RBP && s->by_fp) {
		set_sp(s, s->fp - offset);
	} else if (to == RBP && from == RSP && s->by_sp) {
		s->by_fp = true;
		s->fp = (int32_t)(s->sp - offset);
	} else if (from == RSP && s->by_sp) {
		s->copies = (uint16_t)(1u << to);
		s->far = (int32_t)(s->sp - offset);
	} else if (to != from || offset) {
		clobber(s, to);
	}
}

static void leave(struct tracked_stack *s)
{
	s->by_sp = s->by_fp;
	set_sp(s, s->fp - 8);
	s->by_sp = s->by_fp;
	s->by_fp = false;
	s->saved = 0;
}

/* Arithmetic with an immediate: add, or, adc, sbb, and, sub, xor, cmp. */
static void compute(struct tracked_stack *s, const struct x86_instruction *i)
{
	uint8_t what = i->reg & 7;

	if (i->memory || what == 7)
		return;
	if (i->rm == RSP && (what == 0 || what == 5))
		move_sp(s, what == 5 ? i->immediate : -i->immediate);
	else
		clobber(s, i->rm);
}

/* Where an operand in memory lies, from the CFA downwards; 0: not known. */
static int32_t place_of(const struct tracked_stack *s, const struct x86_instruction *i)
{
	return i->memory && i->based && i->rm == RSP && s->by_sp ? s->sp - i->displacement : 0;
}

/* The stack pointer as it was before it was aligned is stored. */
static void keep_copy(struct tracked_stack *s, const struct x86_instruction *i)
{
	if (!i->wide || !i->based || i->rm != RSP)
		return;
	s->by_slot = i->displacement >= 0 && i->displacement < DEPTH_MAX;
	s->slot = i->displacement;
}

static void store(struct tracked_stack *s, const struct x86_instruction *i)
{
	if (!i->memory)
		assign(s, i->rm, i->reg, 0);
	else if (i->reg == RBP && !s->saved && !s->by_fp && place_of(s, i) > 0)
		s->saved = place_of(s, i);
	else if (s->copies >> i->reg & 1 && !s->by_sp)
		keep_copy(s, i);
}

static void load(struct tracked_stack *s, const struct x86_instruction *i)
{
	if (!i->memory) {
		assign(s, i->reg, i->rm, 0);
		return;
	}
	if (i->reg == RSP && s->by_slot && i->based && i->rm == RSP && i->displacement == s->slot) {
		set_sp(s, s->far);
		return;
	}
	/* The frame pointer comes back from where it was saved. */
	if (i->reg == RBP && s->saved && place_of(s, i) == s->saved)
		s->saved = 0;
	clobber(s, i->reg);
}

/* xor of a register with itself, or of two. */
static void exclude(struct tracked_stack *s, const struct x86_instruction *i)
{
	uint8_t to = i->op == 0x31 ? i->rm : i->reg;

	if (i->memory && i->op == 0x31)
		return;
	if (!i->memory && i->reg == RBP && i->rm == RBP && !s->saved && !s->by_fp)
		s->end = true;
	clobber(s, to);
}

/* inc, dec, call, jump, push. */
static void step_group5(struct tracked_stack *s, const struct x86_instruction *i)
{
	if ((i->reg & 7) == 6)
		push(s, !i->memory && i->rm == RBP);
	else if ((i->reg & 7) < 2 && !i->memory)
		clobber(s, i->rm);
}

/* Whatever else has a register for its destination: by bit 1 of most opcodes, else the operand.
 * Even ones are of bytes, where the same numbers mean other registers. */
static void step_plain(struct tracked_stack *s, const struct x86_instruction *i)
{
	bool to_reg = i->op < 0x40 ? i->op & 2 : i->op == 0x63 || i->op == 0x69 || i->op == 0x6b;

	if (!(i->op & 1))
		return;
	if (to_reg)
		clobber(s, i->reg);
	else if (!i->memory && (i->op < 0xf6 || (i->reg & 6) == 2))
		clobber(s, i->rm);
}

/* Instructions of one byte's opcode that have an operand's address. */
static void step_operand(struct tracked_stack *s, const struct x86_instruction *i)
{
	switch (i->op) {
	case 0x81:
	case 0x83:
		compute(s, i);
		break;
	case 0x89:
		store(s, i);
		break;
	case 0x8b:
		load(s, i);
		break;
	case 0x8d:
		if (i->based)
			assign(s, i->reg, i->rm, i->displacement);
		else
			clobber(s, i->reg);
		break;
	case 0x31:
	case 0x33:
		exclude(s, i);
		break;
	case 0x8f:
		pop(s, i->memory ? 0xff : i->rm);
		break;
	case 0xff:
		step_group5(s, i);
		break;
	case 0x38:
	case 0x39:
	case 0x3a:
	case 0x3b:
	case 0x84:
	case 0x85:
		break;
	case 0xd8:
	case 0xd9:
	case 0xda:
	case 0xdb:
	case 0xdc:
	case 0xdd:
	case 0xde:
	case 0xdf:
		break;
	default:
		step_plain(s, i);
	}
}

static void step_one_byte(struct tracked_stack *s, const struct x86_instruction *i)
{
	if (i->has_modrm) {
		step_operand(s, i);
		return;
	}
	switch (i->op & 0xf8) {
	case 0x50:
		push(s, i->rm == RBP);
		return;
	case 0x58:
		pop(s, i->rm);
		return;
	case 0x90: /* xchg with rax, or nothing */
	case 0xb8:
		if (i->op != 0x90 || i->rm)
			clobber(s, i->rm);
		return;
	default:
		break;
	}
	if (i->op == 0x68 || i->op == 0x6a)
		push(s, false);
	else if (i->op == 0x9c || i->op == 0x9d) /* pushf, popf */
		move_sp(s, i->op == 0x9c ? 8 : -8);
	else if (i->op == 0xc9)
		leave(s);
	else if (i->op == 0xc8) /* enter */
		s->known = false;
}

/* Moves and arithmetic of two-byte opcodes whose destination is a general register. */
static void step_two_bytes(struct tracked_stack *s, const struct x86_instruction *i)
{
	if ((i->op >= 0x40 && i->op < 0x50) || i->op == 0xaf || (i->op & 0xf6) == 0xb6 ||
	    (i->op >= 0xbc && i->op < 0xbe) || i->op == 0xb8)
		clobber(s, i->reg);
}

static bool computes_sp(const struct x86_instruction *i)
{
	return x86_is_one_byte(i) && (i->op == 0x81 || i->op == 0x83) && !i->memory && i->rm == RSP;
}

void tracked_stack_step(struct tracked_stack *s, const struct x86_instruction *i)
{
	/* A copy is stored right away, if at all: only what aligns the stack comes before. */
	bool copied = s->copies != 0 && !computes_sp(i);

	if (x86_is_one_byte(i))
		step_one_byte(s, i);
	else if (i->map == 1 && !i->vector)
		step_two_bytes(s, i);
	if (copied)
		s->copies = 0;
}
