/* SPDX-License-Identifier: Apache-2.0 */
/* Where functions begin. Contract in function-starts.h; of code_rows_mark, which others call too,
 * in code-rows.h. */
#include "codescan/function-starts.h"

#include "codescan/bits.h"

/* In a map of round addresses, if it is one, and of this code. */
static void set_round(uint8_t *bits, const struct code_rows *c, uint64_t address)
{
	if (address % FUNCTION_ALIGN == 0 && address >= c->start && address < c->end)
		bits_set(bits, address / FUNCTION_ALIGN - c->start / FUNCTION_ALIGN);
}

void code_rows_mark(struct code_rows *c, uint64_t address)
{
	if (address >= c->end)
		c->starts.beyond[c->starts.n_beyond++ % CODE_ROWS_BEYOND] = address;
	else if (address >= c->start)
		bits_set(c->starts.known, address - c->start);
}

/* Functions begin where calls lead, and where addresses are taken of. `at`: behind the instruction.
 */
static void mark(struct code_rows *c, const struct x86_instruction *i, uint64_t at)
{
	if (i->op == 0xe8)
		code_rows_mark(c, at + (uint64_t)i->immediate);
	else if (i->op == 0x8d && i->from_pc)
		code_rows_mark(c, at + (uint64_t)(int64_t)i->displacement);
	else if (c->absolute && ((i->op >= 0xb8 && i->op < 0xc0) || i->op == 0xc7 || i->op == 0x68))
		code_rows_mark(c, (uint64_t)i->immediate);
}

int code_rows_decode(struct code_rows *c, uint64_t at, struct x86_instruction *ret)
{
	const unsigned char *p;
	int got = window_some(&c->window, at - c->start, X86_MAX, &p);

	if (got < 0)
		return got;
	c->work++;
	x86_decode(p, (size_t)got, ret);
	return 0;
}

/* No function begins where a jump leads, nor between a short one and its target. */
static void note_jump(struct code_rows *c, const struct x86_instruction *i, uint64_t at)
{
	bool is_short = x86_is_one_byte(i) && i->op != 0xe9, back = i->immediate < 0;
	uint64_t target = at + (uint64_t)i->immediate, from = back ? target : at;
	uint64_t n = back ? -(uint64_t)i->immediate : (uint64_t)i->immediate + 1;

	set_round(c->starts.targets, c, target);
	for (uint64_t k = -from % FUNCTION_ALIGN; is_short && k < n; k += FUNCTION_ALIGN)
		set_round(c->starts.targets, c, from + k);
}

/* What `i`, behind which is `at`, tells of where functions begin. */
static void look_at(struct code_rows *c, const struct x86_instruction *i, uint64_t at)
{
	if (x86_is_one_byte(i))
		mark(c, i, at);
	if (x86_is_near_jump(i) || x86_is_conditional(i))
		note_jump(c, i, at);
}

/* How far the next instruction is from `i`, at `at`. Zeros that pad stand alone, and what is not
 * code ends at a round address, if at anything. */
static uint64_t length(const struct code_rows *c, const struct x86_instruction *i, uint64_t at,
		       bool zero)
{
	if (!i->n && c->strict)
		return FUNCTION_ALIGN - at % FUNCTION_ALIGN;
	return i->n && !zero ? i->n : 1;
}

static void mark_supposed(struct code_rows *c)
{
	for (uint64_t i = 0; i <= c->end / FUNCTION_ALIGN - c->start / FUNCTION_ALIGN; i++)
		if (bits_has(c->starts.aligned, i) && !bits_has(c->starts.targets, i))
			code_rows_mark(c, (c->start / FUNCTION_ALIGN + i) * FUNCTION_ALIGN);
}

int code_rows_sweep(struct code_rows *c)
{
	bool idle = false;       /* something has ended, and only padding was behind it */
	bool after_call = false; /* which ends something too, if padding is behind it */

	for (uint64_t at = c->start; at < c->end;) {
		struct x86_instruction i;
		int r = code_rows_decode(c, at, &i);
		bool zero = r == 0 && idle && i.n && x86_is_one_byte(&i) && i.op == 0;

		if (r < 0)
			return r;
		if (idle)
			set_round(c->starts.aligned, c, at);
		at += length(c, &i, at, zero);
		if (i.n)
			look_at(c, &i, at);
		idle = !i.n || x86_ends(&i) || zero || ((idle || after_call) && x86_is_padding(&i));
		after_call = x86_is_call(&i);
	}
	if (c->strict)
		mark_supposed(c);
	return 0;
}
