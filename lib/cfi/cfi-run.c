/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions of call-frame information, run up to the next boundary. Contract in cfi.h.
 *
 * The row is changed in place, and says by `changed` whether anything did that the caller watches:
 * most boundaries of real code (registers saved one after the other) change nothing else than its
 * other registers. Only rules up to the highest that is in use are ever copied. */
#include "cfi/cfi.h"

#include "base/check.h"

#include <errno.h>

/* DWARF 5, table 7.29, and the vendors'. */
#define OP_NOP                0x00
#define OP_SET_LOC            0x01
#define OP_ADVANCE_LOC1       0x02
#define OP_ADVANCE_LOC2       0x03
#define OP_ADVANCE_LOC4       0x04
#define OP_OFFSET_EXTENDED    0x05
#define OP_RESTORE_EXTENDED   0x06
#define OP_UNDEFINED          0x07
#define OP_SAME_VALUE         0x08
#define OP_REGISTER           0x09
#define OP_REMEMBER_STATE     0x0a
#define OP_RESTORE_STATE      0x0b
#define OP_DEF_CFA            0x0c
#define OP_DEF_CFA_REGISTER   0x0d
#define OP_DEF_CFA_OFFSET     0x0e
#define OP_DEF_CFA_EXPRESSION 0x0f
#define OP_EXPRESSION         0x10
#define OP_OFFSET_EXTENDED_SF 0x11
#define OP_DEF_CFA_SF         0x12
#define OP_DEF_CFA_OFFSET_SF  0x13
#define OP_VAL_OFFSET         0x14
#define OP_VAL_OFFSET_SF      0x15
#define OP_VAL_EXPRESSION     0x16
#define OP_ADVANCE_LOC8       0x1d
#define OP_NEGATE_RA_STATE_PC 0x2c
#define OP_NEGATE_RA_STATE    0x2d /* of arm64; who follows addresses strips them anyway */
#define OP_ARGS_SIZE          0x2e
#define OP_NEGATIVE_OFFSET    0x2f
#define OP_ADVANCE_LOC        0x40
#define OP_OFFSET             0x80
#define OP_RESTORE            0xc0

bool cfi_may_define_cfa_by(const struct cfi_fde *fde, uint32_t registers)
{
	const uint32_t by_register = 1u << OP_DEF_CFA | 1u << OP_DEF_CFA_REGISTER |
				     1u << OP_DEF_CFA_SF;
	const uint8_t *end = fde->program.end;

	for (const uint8_t *p = fde->program.p; p < end; p++) {
		if (*p == OP_DEF_CFA_EXPRESSION)
			return true;
		if (*p >= 32 || !(by_register >> *p & 1))
			continue;
		/* A number that goes on, or is too large, may be any. */
		if (p + 1 < end && (p[1] >= 32 || registers >> p[1] & 1))
			return true;
	}
	return false;
}

static void copy_row(struct cfi_row *to, const struct cfi_row *from)
{
	to->cfa = from->cfa;
	to->cfa_offset = from->cfa_offset;
	to->n = from->n;
	memcpy(to->rules, from->rules, from->n * sizeof(from->rules[0]));
}

void cfi_run_begin(struct cfi_run *run, const struct cfi_fde *fde)
{
	run->cie = fde->cie;
	run->program = fde->program;
	run->start = run->end = fde->start;
	run->limit = fde->end;
	run->changed = run->more = true;
	run->depth = 0;
	copy_row(&run->row, &fde->cie->initial);
}

static void set_rule(struct cfi_run *run, uint64_t n, struct cfi_rule rule)
{
	struct cfi_row *row = &run->row;

	if (n >= CFI_REGISTERS)
		return;
	while (row->n <= n)
		row->rules[row->n++] = (struct cfi_rule){0};
	row->rules[n] = rule;
	if (run->watch[n / 64] >> n % 64 & 1)
		run->changed = true;
}

static void set_value(struct cfi_run *run, uint64_t n, uint8_t how, uint64_t value)
{
	set_rule(run, n, (struct cfi_rule){.how = how, .value = (int64_t)value});
}

static struct cfi_rule take_expression(struct cfi_run *run, uint8_t how)
{
	uint64_t size = cfi_uleb(&run->program);
	const uint8_t *p = cfi_take(&run->program, size);

	return (struct cfi_rule){.how = how, .n = (uint32_t)size, .expression = p};
}

static void set_cfa_register(struct cfi_run *run, uint64_t n)
{
	run->row.cfa = (struct cfi_rule){.how = CFI_REGISTER, .value = (int64_t)n};
	run->changed = true;
}

static void set_cfa_offset(struct cfi_run *run, uint64_t offset)
{
	run->row.cfa_offset = (int64_t)offset;
	run->changed = true;
}

static int remember(struct cfi_run *run)
{
	if (run->depth == CFI_REMEMBER)
		return -EBADMSG;
	copy_row(&run->remembered[run->depth++], &run->row);
	return 0;
}

static int recall(struct cfi_run *run)
{
	if (run->depth == 0)
		return -EBADMSG;
	check(run->depth <= CFI_REMEMBER);
	copy_row(&run->row, &run->remembered[--run->depth]);
	run->changed = true;
	return 0;
}

static uint64_t factored(const struct cfi_run *run, uint64_t value)
{
	return value * (uint64_t)run->cie->data_align;
}

static void restore(struct cfi_run *run, uint64_t n)
{
	if (n < CFI_REGISTERS)
		set_rule(run, n, cfi_row_rule(&run->cie->initial, (uint32_t)n));
}

/* 1: the location moves on by `delta` units. */
static int advance(struct cfi_run *run, uint64_t delta)
{
	run->end = run->start + delta * run->cie->code_align;
	return 1;
}

static int run_cfa(struct cfi_run *run, uint8_t op)
{
	struct cfi_bytes *b = &run->program;

	switch (op) {
	case OP_DEF_CFA:
		set_cfa_register(run, cfi_uleb(b));
		set_cfa_offset(run, cfi_uleb(b));
		return 0;
	case OP_DEF_CFA_SF:
		set_cfa_register(run, cfi_uleb(b));
		set_cfa_offset(run, factored(run, (uint64_t)cfi_sleb(b)));
		return 0;
	case OP_DEF_CFA_REGISTER:
		set_cfa_register(run, cfi_uleb(b));
		return 0;
	case OP_DEF_CFA_OFFSET:
		set_cfa_offset(run, cfi_uleb(b));
		return 0;
	case OP_DEF_CFA_OFFSET_SF:
		set_cfa_offset(run, factored(run, (uint64_t)cfi_sleb(b)));
		return 0;
	default: /* OP_DEF_CFA_EXPRESSION */
		run->row.cfa = take_expression(run, CFI_EXPRESSION);
		run->changed = true;
		return 0;
	}
}

static int run_rule(struct cfi_run *run, uint8_t op)
{
	struct cfi_bytes *b = &run->program;
	uint64_t n = cfi_uleb(b);

	switch (op) {
	case OP_OFFSET_EXTENDED:
		set_value(run, n, CFI_OFFSET, factored(run, cfi_uleb(b)));
		return 0;
	case OP_OFFSET_EXTENDED_SF:
		set_value(run, n, CFI_OFFSET, factored(run, (uint64_t)cfi_sleb(b)));
		return 0;
	case OP_NEGATIVE_OFFSET:
		set_value(run, n, CFI_OFFSET, 0 - factored(run, cfi_uleb(b)));
		return 0;
	case OP_VAL_OFFSET:
		set_value(run, n, CFI_VAL_OFFSET, factored(run, cfi_uleb(b)));
		return 0;
	case OP_VAL_OFFSET_SF:
		set_value(run, n, CFI_VAL_OFFSET, factored(run, (uint64_t)cfi_sleb(b)));
		return 0;
	case OP_RESTORE_EXTENDED:
		restore(run, n);
		return 0;
	case OP_UNDEFINED:
		set_value(run, n, CFI_UNDEFINED, 0);
		return 0;
	case OP_SAME_VALUE:
		set_value(run, n, CFI_SAME, 0);
		return 0;
	case OP_REGISTER:
		set_value(run, n, CFI_REGISTER, cfi_uleb(b));
		return 0;
	case OP_EXPRESSION:
		set_rule(run, n, take_expression(run, CFI_EXPRESSION));
		return 0;
	default: /* OP_VAL_EXPRESSION */
		set_rule(run, n, take_expression(run, CFI_VAL_EXPRESSION));
		return 0;
	}
}

/* 1 at a boundary, 0 to go on. */
static int run_op(struct cfi_run *run, uint8_t op)
{
	struct cfi_bytes *b = &run->program;

	switch (op) {
	case OP_NOP:
	case OP_NEGATE_RA_STATE:
	case OP_NEGATE_RA_STATE_PC:
		return 0;
	case OP_ADVANCE_LOC1:
		return advance(run, cfi_u8(b));
	case OP_ADVANCE_LOC2:
		return advance(run, cfi_number(b, 2));
	case OP_ADVANCE_LOC4:
		return advance(run, cfi_number(b, 4));
	case OP_ADVANCE_LOC8:
		return advance(run, cfi_number(b, 8));
	case OP_REMEMBER_STATE:
		return remember(run);
	case OP_RESTORE_STATE:
		return recall(run);
	case OP_DEF_CFA:
	case OP_DEF_CFA_SF:
	case OP_DEF_CFA_REGISTER:
	case OP_DEF_CFA_OFFSET:
	case OP_DEF_CFA_OFFSET_SF:
	case OP_DEF_CFA_EXPRESSION:
		return run_cfa(run, op);
	case OP_OFFSET_EXTENDED:
	case OP_OFFSET_EXTENDED_SF:
	case OP_NEGATIVE_OFFSET:
	case OP_VAL_OFFSET:
	case OP_VAL_OFFSET_SF:
	case OP_RESTORE_EXTENDED:
	case OP_UNDEFINED:
	case OP_SAME_VALUE:
	case OP_REGISTER:
	case OP_EXPRESSION:
	case OP_VAL_EXPRESSION:
		return run_rule(run, op);
	case OP_ARGS_SIZE:
		cfi_uleb(b);
		return 0;
	case OP_SET_LOC:
		run->end = cfi_number(b, 8);
		return run->cie->encoding == 0 ? 1 : -EBADMSG;
	default:
		return -EBADMSG;
	}
}

int cfi_run_next(struct cfi_run *run)
{
	struct cfi_bytes *b = &run->program;
	int r = 0;

	if (!run->more)
		return 0;
	run->start = run->end;
	while (r == 0 && b->p < b->end) {
		uint8_t op = *b->p++;

		switch (op & 0xc0) {
		case OP_ADVANCE_LOC:
			r = advance(run, op & 0x3f);
			break;
		case OP_OFFSET:
			set_value(run, op & 0x3f, CFI_OFFSET, factored(run, cfi_uleb(b)));
			break;
		case OP_RESTORE:
			restore(run, op & 0x3f);
			break;
		default:
			r = run_op(run, op);
			break;
		}
	}
	if (r < 0 || b->broken) {
		run->more = false;
		run->end = run->start;
		return -EBADMSG;
	}
	if (r == 0) {
		run->more = false;
		run->end = run->limit;
	}
	return 1;
}
