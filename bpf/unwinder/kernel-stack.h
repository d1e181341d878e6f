/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Walks the kernel's stack on x86-64 to the same addresses as bpf_get_stack, for half of its price
 * or less. The kernel looks each address up in its tables, which are cold when a sample comes; here
 * a row that was found is kept in a cache, in one line.
 *
 * It knows the kernel's own code, the common rules, and our own BPF programs. Anything else (a
 * module, another's program, a trampoline, a stack that does not lead up) gives no answer, and the
 * caller takes bpf_get_stack's. So an answer may be missing, but is never guessed.
 *
 * Ordinary C as sample.h is; who includes it defines before, besides what native-stack.h wants of
 * h_walk_state:
 *
 *   UNWIND_INLINE, UNWIND_GLOBAL          how functions are declared
 *   unwind_env                            type of `e`
 *   h_kernel_tables()                     const volatile struct kernel_tables *
 *   h_kernel_jit()                        const volatile struct kernel_jit *
 *   h_kernel_rows(i)                      struct kernel_set *, i below KERNEL_SETS, or NULL
 *   h_kernel_read(to, n, address)         0, or there is nothing that can be read
 *   h_now()                               some number, each time another
 *
 * State is the walk's: pc, exact and the registers sp and fp are those of the frame at hand,
 * n_words the frames so far. Nothing of it is needed when the kernel's frames are there. */
#pragma once

#include <andiron/bpf/walk.h>

#include "bpfwire/kernel-tables.h"

#define KERNEL_SP 7 /* of andiron_walk.regs */
#define KERNEL_FP 6

/* andiron_walk.end, between these functions only. */
#define KERNEL_END_WHOLE   1
#define KERNEL_END_UNKNOWN 2

/* No stack in the kernel is larger, and those that are changed between are further apart. */
#define KERNEL_STACK_MAX 16384ll

/* Keeps the compiler from making a branch out of arithmetic. */
#define KERNEL_OPAQUE(x) asm volatile("" : "+r"(x))

UNWIND_INLINE int kernel_end(struct andiron_walk *w, __u32 end)
{
	w->end = end;
	return 1;
}

UNWIND_INLINE __s64 kernel_row_sp_offset(__u64 row)
{
	return ((__s64)(row << 28) >> 52) * 8;
}

UNWIND_INLINE __s64 kernel_row_fp_offset(__u64 row)
{
	return ((__s64)(row << 16) >> 52) * 8;
}

UNWIND_INLINE __u32 kernel_row_rule(__u64 row)
{
	return row >> 48 & 0xfff;
}

/* Whether an offset is one that a row has room for. */
UNWIND_INLINE bool kernel_offset_fits(__s64 offset)
{
	return (offset & 7) == 0 && offset >= -KERNEL_STACK_MAX && offset < KERNEL_STACK_MAX;
}

/* Address i of the table; that of the entry, which lies behind all code, if it cannot be read. */
UNWIND_INLINE __u64 kernel_address(__u64 addresses, __u32 i)
{
	__u64 at = addresses + sizeof(__s32) * (__u64)i;
	__s32 distance[2] = {};

	if (h_kernel_read(distance, sizeof(distance[0]), at) != 0)
		distance[0] = 0;
	return at + (__u64)(__s64)distance[0];
}

/* How many of the n addresses do not lie above `at`. Without branches, and of numbers that the
 * verifier does not know: it follows one path then. */
UNWIND_GLOBAL __u32 kernel_search(__u64 addresses, __u32 n, __u64 at)
{
	__u32 low = 0, high = n, middle, above;
	__u64 behind;

	for (__u64 i = 0; i < KERNEL_SEARCH_STEPS && low < high; i++) {
		middle = (low + high) / 2;
		behind = at - kernel_address(addresses, middle);
		KERNEL_OPAQUE(behind);
		above = (__u32)((__s64)behind >> 63);
		high = (high & ~above) | (middle & above);
		low = (low & above) | ((middle + 1) & ~above);
	}
	return low;
}

/* The row of an address without its bits 16..23, by the tables; 0: none, or none that fits. */
UNWIND_INLINE __u64 kernel_find(const volatile struct kernel_tables *t, __u64 at)
{
	__u64 granule = at & ~(__u64)(KERNEL_GRANULE - 1), begin, next, first, last;
	__u32 n = t->n, i = kernel_search(t->addresses, n, at);
	struct kernel_entry entry = {};

	if (i == 0)
		return 0;
	begin = kernel_address(t->addresses, i - 1);
	next = i < n ? kernel_address(t->addresses, i) : ~0ull;
	if (begin == 0 || begin > at || next <= at ||
	    h_kernel_read(&entry, sizeof(entry), t->entries + sizeof(entry) * (i - 1)) != 0)
		return 0;
	if (!kernel_offset_fits(entry.sp_offset) || !kernel_offset_fits(entry.fp_offset))
		return 0;
	first = begin > granule ? begin - granule : 0;
	last = next - granule < KERNEL_GRANULE ? next - granule - 1 : KERNEL_GRANULE - 1;
	return first | last << 8 | ((__u64)entry.sp_offset >> 3 & 0xfff) << 24 |
	       ((__u64)entry.fp_offset >> 3 & 0xfff) << 36 | (__u64)(entry.rule & 0xfff) << 48 |
	       KERNEL_ROW_SET;
}

/* Whether it is code of our programs. A function of its own: it is rare, and stack is scarce. */
UNWIND_GLOBAL int kernel_is_jit(__u64 at)
{
	const volatile struct kernel_jit *c = h_kernel_jit();

	for (__u32 i = 0; i < KERNEL_COMPILED; i++)
		if (at - c->code[i].start < c->code[i].bytes)
			return 1;
	return 0;
}

/* Whether it is code that can be walked. */
UNWIND_INLINE bool kernel_is_code(__u64 at)
{
	const volatile struct kernel_tables *t = h_kernel_tables();

	return (at >= t->text && at < t->text_end) || kernel_is_jit(at) != 0;
}

/* The row of an address: from the cache, else found and remembered there. 0: none. */
UNWIND_INLINE __u64 kernel_row(__u64 at)
{
	const volatile struct kernel_tables *t = h_kernel_tables();
	__u64 distance = at - t->text, high = distance >> 19, byte = at & (KERNEL_GRANULE - 1), row;
	struct kernel_set *set = h_kernel_rows((__u32)(distance >> 8) & (KERNEL_SETS - 1));

	if (at < t->text || at >= t->text_end)
		return kernel_is_jit(at) != 0 ? KERNEL_ROW_FRAME : 0;
	if (!set)
		return 0;
	for (__u32 i = 0; i < KERNEL_WAYS; i++) {
		row = set->rows[i];
		if ((row >> 16 & 0xff) == high && byte >= (row & 0xff) &&
		    byte <= (row >> 8 & 0xff) && row != 0)
			return row;
	}
	row = kernel_find(t, at);
	if (row == 0)
		return 0;
	row |= high << 16;
	set->rows[(h_now() * 0x9e3779b97f4a7c15ull >> 40) & (KERNEL_WAYS - 1)] = row;
	return row;
}

/* The base of the caller's frame, from the registers of this one. Not 0: unknown. */
UNWIND_INLINE int kernel_frame(const struct andiron_walk *w, __u64 row, __u64 *ret)
{
	__u64 sp = w->regs[KERNEL_SP], fp = w->regs[KERNEL_FP];
	__u64 offset = (__u64)kernel_row_sp_offset(row);

	switch (KERNEL_RULE_SP(kernel_row_rule(row))) {
	case KERNEL_BY_SP:
		*ret = sp + offset;
		return *ret < sp || *ret - sp > (__u64)KERNEL_STACK_MAX;
	case KERNEL_BY_FP:
		*ret = fp + offset;
		return *ret < sp || *ret - sp > (__u64)KERNEL_STACK_MAX;
	case KERNEL_BY_SP_INDIRECT:
		if (h_kernel_read(&sp, sizeof(sp), sp) != 0)
			return 1;
		*ret = sp + offset;
		return 0;
	case KERNEL_BY_FP_INDIRECT:
		return h_kernel_read(ret, sizeof(*ret), fp + offset) != 0;
	default:
		return 1;
	}
}

/* The caller's registers where a call's return address stands below `sp`. Not 0: unknown. One read
 * where both stand together, as they mostly do. */
UNWIND_INLINE int kernel_call(struct andiron_walk *w, __u64 row, __u64 sp)
{
	__u64 offset = (__u64)kernel_row_fp_offset(row), pair[2] = {}, fp = w->regs[KERNEL_FP];
	__u32 by = KERNEL_RULE_FP(kernel_row_rule(row));

	if (by == KERNEL_BY_CALLER_SP && offset == (__u64)-16) {
		if (h_kernel_read(pair, sizeof(pair), sp - sizeof(pair)) != 0)
			return 1;
		fp = pair[0];
	} else {
		if (h_kernel_read(&pair[1], sizeof(pair[1]), sp - sizeof(pair[1])) != 0)
			return 1;
		if (by == KERNEL_BY_CALLER_SP || by == KERNEL_BY_FP) {
			offset += by == KERNEL_BY_FP ? fp : sp;
			if (h_kernel_read(&fp, sizeof(fp), offset) != 0)
				return 1;
		} else if (by != KERNEL_BY_NOTHING) {
			return 1;
		}
	}
	w->pc = pair[1];
	w->regs[KERNEL_SP] = sp;
	w->regs[KERNEL_FP] = fp;
	return 0;
}

/* The interrupted registers: all of them, or from pc on. Not 0: unknown. */
UNWIND_INLINE int kernel_interrupted(struct andiron_walk *w, __u64 row, __u64 at)
{
	__u64 saved[4] = {}, fp = w->regs[KERNEL_FP]; /* pc, cs, flags, sp */
	bool all = KERNEL_RULE_TYPE(kernel_row_rule(row)) == KERNEL_TYPE_REGS;

	if (KERNEL_RULE_FP(kernel_row_rule(row)) != KERNEL_BY_NOTHING)
		return 1;
	if (h_kernel_read(saved, sizeof(saved), all ? at + KERNEL_REGS_PC : at) != 0)
		return 1;
	if (all && h_kernel_read(&fp, sizeof(fp), at + KERNEL_REGS_FP) != 0)
		return 1;
	w->pc = saved[0];
	w->regs[KERNEL_SP] = saved[3];
	w->regs[KERNEL_FP] = fp;
	return 0;
}

/* Moves to the caller's frame. Not 0: unknown. */
UNWIND_INLINE int kernel_apply(struct andiron_walk *w, __u64 row)
{
	__u64 before = w->regs[KERNEL_SP], sp = 0;
	int r;

	if (kernel_frame(w, row, &sp) != 0)
		return 1;
	switch (KERNEL_RULE_TYPE(kernel_row_rule(row))) {
	case KERNEL_TYPE_CALL:
		r = kernel_call(w, row, sp);
		break;
	case KERNEL_TYPE_REGS:
	case KERNEL_TYPE_PARTIAL:
		r = kernel_interrupted(w, row, sp);
		break;
	default:
		return 1;
	}
	w->exact = KERNEL_RULE_SIGNAL(kernel_row_rule(row));
	sp = w->regs[KERNEL_SP];
	return r != 0 || (sp <= before && before - sp < (__u64)KERNEL_STACK_MAX);
}

/* Writes the frame at hand down, if it is one. 0, or 1 and the walk has ended. */
UNWIND_INLINE int kernel_write(struct andiron_walk *w)
{
	const volatile struct kernel_tables *t = h_kernel_tables();
	__u64 pc = w->pc;
	__u32 n = w->n_words;

	/* The lower half of all addresses is the process's: it has entered the kernel here. */
	if (pc >> 63 == 0)
		return kernel_end(w, KERNEL_END_WHOLE);
	if (!kernel_is_code(pc) || pc == t->return_hooks[0] || pc == t->return_hooks[1] ||
	    pc == t->return_hooks[2])
		return kernel_end(w, KERNEL_END_UNKNOWN);
	if (n >= ANDIRON_WALK_KERNEL)
		return kernel_end(w, KERNEL_END_WHOLE);
	w->frames[n] = pc;
	w->n_words = n + 1;
	return 0;
}

/* One frame. 0, or 1 when w->end says whether the stack is whole. */
UNWIND_GLOBAL int kernel_step(unwind_env e)
{
	struct andiron_walk *w = h_walk_state(e);
	__u64 row;

	if (!w)
		return 1;
	row = kernel_row(w->exact ? w->pc : w->pc - 1);
	if (row == 0)
		return kernel_end(w, KERNEL_END_UNKNOWN);
	if (KERNEL_RULE_TYPE(kernel_row_rule(row)) <= KERNEL_TYPE_END)
		return kernel_end(w, KERNEL_END_WHOLE);
	if (kernel_apply(w, row) != 0)
		return kernel_end(w, KERNEL_END_UNKNOWN);
	return kernel_write(w);
}

/* The stack of what was interrupted with these registers, in w->frames; how many; 0: unknown. */
UNWIND_INLINE __u32 kernel_walk(unwind_env e, struct andiron_walk *w, __u64 pc, __u64 sp, __u64 fp)
{
	if (h_kernel_tables()->n == 0 || !kernel_is_code(pc))
		return 0;
	w->end = 0;
	w->pc = pc;
	w->exact = 1;
	w->regs[KERNEL_SP] = sp;
	w->regs[KERNEL_FP] = fp;
	w->frames[0] = pc;
	w->n_words = 1;
	for (__u32 i = 0; i < ANDIRON_WALK_KERNEL && kernel_step(e) == 0; i++)
		;
	return w->end == KERNEL_END_WHOLE ? w->n_words : 0;
}
