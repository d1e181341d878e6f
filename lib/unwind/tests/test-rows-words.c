/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of how full rows become words. */
#include "testing/test.h"
#include "unwind/tests/test-frames.h"

static void one_rule(uint16_t machine, uint8_t ra, const char *ops, size_t n, uint64_t rule)
{
	struct frames x;

	frames_begin(&x);
	x.w.machine = machine;
	frames_fde(&x, frames_cie(&x, "zR", ra, OPS("")), 0x1000, 0x10, ops, n);
	frames_read(&x);
	if (rule)
		frames_row_is(&x, 0, 0x1000, rule);
	expect_eq(x.stats.inexpressible, rule == 0);
	expect_eq(x.n, rule ? 2 : 0);
	frames_end(&x);
}

/* Each form of expression that compilers, PLTs and hand-written assembly use becomes its word. */
TEST(expressions_become_words)
{
	uint64_t same = (uint64_t)(UNWIND_FP_SAME & 0xffff) << 24;

	/* CFA = rsp + 8, and 8 more from the 11th byte of a slot on. */
	one_rule(EM_X86_64, 16, OPS("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22" RA),
		 unwind_rule_more(unwind_rule(7, UNWIND_CFA_PLT, 0, UNWIND_FP_SAME, 8), 0, 0, 11));
	/* CFA = *(rsp + 40) + 8 */
	one_rule(EM_X86_64, 16, OPS("\x0f\x05\x77\x28\x06\x23\x08" RA),
		 unwind_rule_more(unwind_rule(7, UNWIND_CFA_DEREF, 0, UNWIND_FP_SAME, 40), 0, 0,
				  8));
	/* CFA = *(rsp + 8 r9 + 8) + 8; rbp at CFA - 24 */
	one_rule(EM_X86_64, 16,
		 OPS("\x0f\x0a\x77\x08\x79\x00\x38\x1e\x22\x06\x23\x08" RA "\x86\x03"),
		 unwind_rule_more(unwind_rule(7, UNWIND_CFA_INDEX, 0, -3, 8), 0, 9, 8));
	/* CFA = rbp - 4000 by an expression */
	one_rule(EM_X86_64, 16, OPS("\x0f\x03\x76\xe0\x60" RA),
		 unwind_rule(6, UNWIND_CFA_REG, 0, 0, -4000) | same);
	/* CFA = *(rbp - 16), rbp at *(rbp): a realigned stack. */
	one_rule(EM_X86_64, 16, OPS("\x0f\x03\x76\x70\x06\x10\x06\x02\x76\x00" RA),
		 unwind_rule_more(unwind_rule(6, UNWIND_CFA_DEREF, 0, 0, -16), 1, 0, 0));
	/* … and before the register with the CFA is saved. */
	one_rule(EM_X86_64, 16, OPS("\x0c\x0a\x00\x10\x06\x02\x76\x00" RA),
		 unwind_rule_more(frames_rule(10, 0, 0), 1, 0, 0));
	/* A place counted from the CFA's own register is one counted from the CFA. */
	one_rule(EM_X86_64, 16, OPS("\x0c\x07\x20\x10\x06\x02\x77\x10" RA), frames_rule(7, 32, -2));
}

/* The frame of a signal handler, as glibc describes it. */
TEST(signal_frames_become_words)
{
	one_rule(EM_X86_64, 16,
		 OPS("\x0f\x04\x77\xa0\x01\x06\x10\x06\x03\x77\xf8\x00\x10\x07\x03\x77\xa0\x01"
		     "\x10\x10\x03\x77\xa8\x01"),
		 unwind_rule(7, UNWIND_CFA_SIGNAL, 0, 0, 40));
}

/* The outermost frame, and a return address in a register. */
TEST(ends_and_registers)
{
	one_rule(EM_X86_64, 16, OPS("\x0c\x07\x08\x07\x10"),
		 unwind_rule(0, UNWIND_CFA_END, 0, 0, 0));
	one_rule(EM_X86_64, 16, OPS("\x0c\x07\x00\x09\x10\x05"),
		 unwind_rule_more(unwind_rule(7, UNWIND_CFA_REG, UNWIND_RA_REGISTER, UNWIND_FP_SAME,
					      0),
				  0, UNWIND_X86_RDI, 0));
}

/* arm64's ways: a leaf, a frame record at the frame's lower end, one return address alone; signed
 * return addresses change nothing. */
TEST(arm64_words)
{
	one_rule(EM_AARCH64, 30, OPS("\x0c\x1f\x00"),
		 unwind_rule_more(unwind_rule(UNWIND_ARM_SP, UNWIND_CFA_REG, UNWIND_RA_REGISTER,
					      UNWIND_FP_SAME, 0),
				  0, UNWIND_ARM_LR, 0));
	one_rule(EM_AARCH64, 30, OPS("\x0c\x1f\x30\x2d\x9d\x06\x9e\x05"),
		 unwind_rule(UNWIND_ARM_SP, UNWIND_CFA_REG, UNWIND_RA_FP, -6, 48));
	one_rule(EM_AARCH64, 30, OPS("\x0c\x1d\x30\x9d\x06\x9e\x05"),
		 unwind_rule(UNWIND_ARM_FP, UNWIND_CFA_REG, UNWIND_RA_FP, -6, 48));
	one_rule(EM_AARCH64, 30, OPS("\x0c\x1f\x20\x9e\x04"),
		 unwind_rule(UNWIND_ARM_SP, UNWIND_CFA_REG, UNWIND_RA_ALONE, -4, 32));
}

/* What the word cannot hold is 0 and counted, never something near it. */
TEST(inexpressible_rows_are_none)
{
	static const struct {
		const char *ops;
		size_t n;
	} cases[] = {
		{OPS("\x0c\x07\x80\x80\x80\x04" RA)},             /* an offset of 8 MiB */
		{OPS("\x0f\x07\x77\x00\x06\x23\x80\x01\x96" RA)}, /* *(rsp) + 128 */
		{OPS("\x0f\x03\x77\x00\x20" RA)},                 /* -rsp */
		{OPS("\x0c\x07\x08" RA "\x09\x06\x09")},          /* rbp in r9 */
		{OPS("\x0c\x07\x20\x90\x02\x86\x04")},            /* return address and rbp apart */
		{OPS("\x0c\x07\x10" RA "\x87\x03")},              /* rsp is not the CFA */
		{OPS("\x0c\x07\x08" RA "\x10\x06\x02\x71\x00")},  /* rbp at *(rcx) */
		{OPS("\x0c\x07\x08")},                            /* no return address */
		{OPS("\x0c\x20\x08" RA)},                         /* CFA from register 32 */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		one_rule(EM_X86_64, 16, cases[i].ops, cases[i].n, 0);
}

static uint64_t aux_x86(int index, uint64_t n)
{
	return (n & 0xfff) << (12 * index);
}

/* A file in which some CFA is found by way of a preserved register says of all its rows where such
 * registers are saved; other files say it of none. */
TEST(auxiliary_words_where_needed)
{
	struct frames x;
	size_t of;

	frames_begin(&x);
	of = frames_usual_cie(&x);
	/* rbx at CFA - 16, r12 at rbp - 24, r13 by an expression that cannot be said; r14 kept. */
	frames_fde(&x, of, 0x1000, 0x10,
		   OPS("\x83\x02\x10\x0c\x02\x76\x68\x10\x0d\x03\x71\x00\x06\x08\x0e"));
	frames_fde(&x, of, 0x2000, 0x10, OPS("\x41\x0d\x03"));
	frames_read(&x);
	frames_row_is(&x, 0, 0x1000, ENTRY_RULE);
	expect_eq(x.rows[0].aux, aux_x86(0, (uint64_t)-2 & 0x7ff) |
					 aux_x86(1, ((uint64_t)-3 & 0x7ff) | UNWIND_AUX_X86_FRAME) |
					 aux_x86(2, UNWIND_AUX_X86_LOST));
	frames_row_is(&x, 2, 0x2000, ENTRY_RULE);
	expect_eq(x.rows[2].aux, 0);
	frames_row_is(&x, 3, 0x2001, frames_rule(UNWIND_X86_RBX, 8, UNWIND_FP_SAME));
	expect(x.stats.aux);
	frames_end(&x);
	frames_begin(&x);
	frames_fde(&x, frames_usual_cie(&x), 0x1000, 0x10, OPS("\x83\x02"));
	frames_read(&x);
	expect_eq(x.rows[0].aux, 0);
	expect(!x.stats.aux);
	frames_end(&x);
}

/* arm64's auxiliary words: below the CFA, and lost where they do not fit. */
TEST(auxiliary_words_of_arm64)
{
	struct frames x;
	size_t of;

	frames_begin(&x);
	x.w.machine = EM_AARCH64;
	of = frames_cie(&x, "zR", 30, OPS("\x0c\x1f\x00"));
	frames_fde(&x, of, 0x1000, 0x10,
		   OPS("\x0c\x13\x20\x9d\x04\x9e\x03\x93\x02\x94\x3f\x95\x3e"));
	frames_read(&x);
	frames_row_is(&x, 0, 0x1000, unwind_rule(19, UNWIND_CFA_REG, UNWIND_RA_FP, -4, 32));
	expect_eq(x.rows[0].aux, 2 | UNWIND_AUX_ARM_LOST << 6 | 62u << 12);
	frames_end(&x);
}
