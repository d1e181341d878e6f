/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions, evaluated over formulas instead of numbers. Contract in expression.h. So the order
 * of operands and the way constants are written do not matter, and nothing has to be compared byte
 * by byte with what one compiler writes. */
#include "cfi/expression.h"

#include "cfi/cfi-bytes.h"

#define OP_DEREF       0x06
#define OP_CONST1U     0x08
#define OP_CONST8S     0x0f /* between them 1S, 2U, 2S, 4U, 4S, 8U */
#define OP_CONSTU      0x10
#define OP_CONSTS      0x11
#define OP_AND         0x1a
#define OP_MINUS       0x1c
#define OP_MUL         0x1e
#define OP_PLUS        0x22
#define OP_PLUS_UCONST 0x23
#define OP_SHL         0x24
#define OP_GE          0x2a
#define OP_LIT0        0x30
#define OP_LIT31       0x4f
#define OP_BREG0       0x70
#define OP_BREG31      0x8f
#define OP_NOP         0x96

#define DEPTH 6

static struct formula constant(uint64_t value)
{
	return (struct formula){.kind = FORMULA_CONSTANT, .offset = (int64_t)value};
}

static int64_t sum(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static struct formula add_constant(struct formula f, int64_t c)
{
	switch (f.kind) {
	case FORMULA_CONSTANT:
	case FORMULA_CFA:
	case FORMULA_REGISTER:
	case FORMULA_INDEXED:
	case FORMULA_PLT:
		f.offset = sum(f.offset, c);
		return f;
	case FORMULA_MEMORY:
	case FORMULA_ELEMENT:
		f.extra = sum(f.extra, c);
		return f;
	default:
		return (struct formula){0};
	}
}

static struct formula plus(struct formula a, struct formula b)
{
	if (b.kind == FORMULA_CONSTANT)
		return add_constant(a, b.offset);
	if (a.kind == FORMULA_CONSTANT)
		return add_constant(b, a.offset);
	if (a.kind != FORMULA_REGISTER) {
		struct formula swap = a;

		a = b;
		b = swap;
	}
	if (a.kind == FORMULA_REGISTER && b.kind == FORMULA_SCALED) {
		a.kind = FORMULA_INDEXED;
		a.other = b.other;
		return a;
	}
	if (a.kind == FORMULA_REGISTER && b.kind == FORMULA_PC_EIGHT) {
		a.kind = FORMULA_PLT;
		a.extra = b.extra;
		return a;
	}
	return (struct formula){0};
}

/* a · 8, where `eight` says that the other operand means that. */
static struct formula times_eight(struct formula a, int eight)
{
	if (eight && a.kind == FORMULA_REGISTER && a.offset == 0)
		return (struct formula){.kind = FORMULA_SCALED, .other = a.base};
	if (eight && a.kind == FORMULA_PC_TEST)
		return (struct formula){.kind = FORMULA_PC_EIGHT, .extra = a.extra};
	return (struct formula){0};
}

static int is_constant(struct formula f, int64_t c)
{
	return f.kind == FORMULA_CONSTANT && f.offset == c;
}

static struct formula deref(struct formula f)
{
	if (f.kind == FORMULA_REGISTER)
		f.kind = FORMULA_MEMORY;
	else if (f.kind == FORMULA_INDEXED)
		f.kind = FORMULA_ELEMENT;
	else
		return (struct formula){0};
	f.extra = 0;
	return f;
}

static struct formula combine(uint8_t op, struct formula a, struct formula b, uint8_t pc)
{
	switch (op) {
	case OP_PLUS:
		return plus(a, b);
	case OP_MINUS:
		return b.kind == FORMULA_CONSTANT
			       ? add_constant(a, (int64_t)(0 - (uint64_t)b.offset))
			       : (struct formula){0};
	case OP_MUL:
		return times_eight(a, is_constant(b, 8));
	case OP_SHL:
		return times_eight(a, is_constant(b, 3));
	case OP_AND:
		if (a.kind == FORMULA_REGISTER && a.base == pc && a.offset == 0 &&
		    is_constant(b, 15))
			return (struct formula){.kind = FORMULA_PC_LOW};
		return (struct formula){0};
	case OP_GE:
		if (a.kind == FORMULA_PC_LOW && b.kind == FORMULA_CONSTANT)
			return (struct formula){.kind = FORMULA_PC_TEST, .extra = b.offset};
		return (struct formula){0};
	default:
		return (struct formula){0};
	}
}

/* A value that an operation pushes; false: it is not one of those. */
static int read_value(uint8_t op, struct cfi_bytes *b, struct formula *ret)
{
	if (op >= OP_LIT0 && op <= OP_LIT31) {
		*ret = constant(op - OP_LIT0);
		return 1;
	}
	if (op >= OP_BREG0 && op <= OP_BREG31) {
		*ret = (struct formula){.kind = FORMULA_REGISTER,
					.base = (uint8_t)(op - OP_BREG0),
					.offset = cfi_sleb(b)};
		return 1;
	}
	if (op >= OP_CONST1U && op <= OP_CONST8S) {
		size_t n = (size_t)1 << (op - OP_CONST1U) / 2;

		*ret = constant(op & 1 ? (uint64_t)cfi_signed(b, n) : cfi_number(b, n));
		return 1;
	}
	switch (op) {
	case OP_CONSTU:
		*ret = constant(cfi_uleb(b));
		return 1;
	case OP_CONSTS:
		*ret = constant((uint64_t)cfi_sleb(b));
		return 1;
	default:
		return 0;
	}
}

struct formula rows_expression(const uint8_t *p, size_t n, uint8_t pc, int with_cfa)
{
	struct cfi_bytes b = {p, p + n, false};
	struct formula stack[DEPTH] = {{.kind = FORMULA_CFA}};
	size_t depth = with_cfa ? 1 : 0;

	while (b.p < b.end) {
		uint8_t op = cfi_u8(&b);
		struct formula value;

		if (op == OP_NOP)
			continue;
		if (read_value(op, &b, &value)) {
			if (depth == DEPTH)
				return (struct formula){0};
			stack[depth++] = value;
		} else if (depth && op == OP_DEREF) {
			stack[depth - 1] = deref(stack[depth - 1]);
		} else if (depth && op == OP_PLUS_UCONST) {
			stack[depth - 1] = add_constant(stack[depth - 1], (int64_t)cfi_uleb(&b));
		} else if (depth > 1) {
			depth--;
			stack[depth - 1] = combine(op, stack[depth - 1], stack[depth], pc);
		} else {
			return (struct formula){0};
		}
	}
	return depth && !b.broken ? stack[depth - 1] : (struct formula){0};
}
