/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where the kernel keeps the tables of its own unwinder on x86-64, and the cache of their rows,
 * both for kernel-stack.h.
 *
 * CONFIG_UNWINDER_ORC (arch/x86/include/asm/orc_types.h) has addresses, ascending, each as a
 * distance from its own place in memory, and beside them entries of 6 bytes. An entry holds up to
 * the next address and says how the caller's registers follow. The kernel does not promise their
 * format: this is the one since 6.4. */
#pragma once

#ifndef KERNEL_TYPES_H
#include <linux/types.h>
#endif

/* Addresses in the kernel. All zero: not to be had. */
struct kernel_tables {
	__u64 text, text_end; /* the kernel's code without modules', at most KERNEL_TEXT_MAX */
	__u64 addresses;      /* __s32 [n] */
	__u64 entries;        /* struct kernel_entry [n] */
	/* Return addresses that tracers put in place of the true one, or 0. */
	__u64 return_hooks[3];
	__u32 n;
};

/* Machine code of BPF programs, zero for none. It has no tables, and keeps frame pointers. */
#define KERNEL_COMPILED 4

struct kernel_jit {
	struct kernel_code {
		__u64 start, bytes;
	} code[KERNEL_COMPILED];
};

/* The symbols that symbols.bpf.c finds. */
enum {
	KERNEL_SYMBOL_TEXT,
	KERNEL_SYMBOL_TEXT_END,
	KERNEL_SYMBOL_ADDRESSES,
	KERNEL_SYMBOL_ADDRESSES_END,
	KERNEL_SYMBOL_ENTRIES,
	KERNEL_SYMBOL_ENTRIES_END,
	KERNEL_SYMBOL_HOOKS, /* and the two behind it */
	KERNEL_SYMBOLS = KERNEL_SYMBOL_HOOKS + 3,
};

struct kernel_entry {
	__s16 sp_offset, fp_offset;
	__u16 rule; /* KERNEL_RULE_* */
};

#define KERNEL_RULE_SP(rule)   ((rule)&15) /* what the stack pointer of the caller follows from */
#define KERNEL_RULE_FP(rule)   ((rule) >> 4 & 15) /* what says where its frame pointer is saved */
#define KERNEL_RULE_TYPE(rule) ((rule) >> 8 & 7)
#define KERNEL_RULE_SIGNAL(rule)                                                                   \
	((rule) >> 11 & 1) /* the caller's address is where it stands, not behind a call */

/* KERNEL_RULE_SP and KERNEL_RULE_FP. */
#define KERNEL_BY_NOTHING     0 /* the frame pointer is unchanged, or with the other registers */
#define KERNEL_BY_CALLER_SP   1
#define KERNEL_BY_FP          4
#define KERNEL_BY_SP          5
#define KERNEL_BY_FP_INDIRECT 8 /* *(fp + offset) */
#define KERNEL_BY_SP_INDIRECT 9 /* *sp + offset */

#define KERNEL_TYPE_UNDEFINED 0
#define KERNEL_TYPE_END       1
#define KERNEL_TYPE_CALL      2
#define KERNEL_TYPE_REGS      3 /* all registers stand there: struct pt_regs */
#define KERNEL_TYPE_PARTIAL   4 /* only those that the CPU itself saves */

/* Of struct pt_regs, in bytes; what an interrupt leaves is its end. */
#define KERNEL_REGS_FP 32
#define KERNEL_REGS_PC 128

/* The cache: one set, a cache line, for each 256 bytes of code, modulo their number. A row is one
 * word, so that CPUs write and read it whole without a lock; the set's number says what of the
 * address is not in it.
 *
 *   bits  0..7  first byte of the granule that the row covers
 *   bits  8..15 last one
 *   bits 16..23 bits 19..26 of the distance from the start of code
 *   bits 24..35 sp_offset in units of 8 bytes, signed
 *   bits 36..47 fp_offset likewise
 *   bits 48..59 rule
 *   bit  60     set, so that no row is 0 */
#define KERNEL_WAYS     8
#define KERNEL_SETS     2048u /* a power of two: bits 8..18 of the distance */
#define KERNEL_GRANULE  256u
#define KERNEL_TEXT_MAX (1ull << 27)
#define KERNEL_ROW_SET  (1ull << 60)

/* That of a frame with a frame pointer. */
#define KERNEL_ROW_FRAME                                                                           \
	(KERNEL_ROW_SET | 2ull << 24 | 0xffeull << 36 |                                            \
	 (KERNEL_BY_FP | KERNEL_BY_CALLER_SP << 4 | KERNEL_TYPE_CALL << 8 | 0ull) << 48)

struct kernel_set {
	__u64 rows[KERNEL_WAYS];
};

#define KERNEL_SEARCH_STEPS 21
#define KERNEL_ENTRIES_MAX  (1u << KERNEL_SEARCH_STEPS)

_Static_assert((KERNEL_SETS & (KERNEL_SETS - 1)) == 0, "bits of the distance number the sets");
_Static_assert(KERNEL_TEXT_MAX == (__u64)KERNEL_SETS * KERNEL_GRANULE << 8, "8 bits more in a row");
_Static_assert(sizeof(struct kernel_entry) == 6, "the kernel's");
_Static_assert(sizeof(struct kernel_set) == 64, "one cache line");
