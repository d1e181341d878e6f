/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Words that a compiled method, in which the thread stands, has pushed below its frame. No table
 * tells of them. They are counted by the code around pc, by the stack pointer, and by where the
 * frame's return address has a caller. */
#pragma once

#include "jvm/walk/callers.h"

#define JVM_BEHIND      8  /* bytes before pc that are looked at */
#define JVM_CODE        72 /* bytes around pc that are looked at, JVM_BEHIND of them before it */
#define JVM_PUSHED      64 /* bytes that the search of a text pushes, at most: two texts' */
#define JVM_WORK_PUSHED 24 /* what works by the x87, or saves a register for a while */

/* Is there an instruction of the x87's around pc that works on the top of the stack: d8…df, its
 * operand (%rsp)? s->bytes has the code, of which each step looks at eight places. */
JVM_GLOBAL int jvm_x87_near(__u32 cpu)
{
	const __u64 each = 0x0101010101010101ull;
	const struct jvm_state *s = h_state(cpu);
	__u64 found = 0, here, next = 0;

	for (__u32 i = 0; s && i < JVM_CODE; i += 8) {
		here = next;
		next = *(const __u64 *)(const void *)(s->bytes + i);
		here = ((here ^ 0xd8 * each) & 0xf8 * each) |
		       (((here >> 8 | next << 56) ^ 0x04 * each) & 0xc7 * each) |
		       ((here >> 16 | next << 48) ^ 0x24 * each);
		found |= (here - each) & ~here; /* a byte of 0 */
	}
	return (found & 0x80 * each) != 0;
}

/* Does a compiled method that returns at sp - 8, and keeps its caller's frame pointer below, have a
 * caller, and one that was not found yet? The stack is aligned where one is called. For that, an
 * adapter may have copied the return address from above: both lead to the same frame if that has a
 * frame pointer. */
JVM_GLOBAL int jvm_frame_ends(__u32 cpu, __u64 sp)
{
	struct jvm_state *s = h_state(cpu);
	__u64 ret = word_at(sp - 8);

	if (!s || sp & 15 || !jvm_caller_fits(cpu, ret, sp, word_at(sp - 16), JVM_CALLED_NEAR) ||
	    (ret == s->found && (in_interpreter(s, ret) || ret == s->process.call_stub)))
		return 0;
	s->found = ret;
	return 1;
}

/* Has a text's search pushed the stack pointer before last? Before it pushed what it searches for:
 * count, address and the other's address, unless the compiler knows it; and copies of 16 bytes of
 * what is near a page's end, to which its address then leads. A stale word may be as large, but not
 * with these behind it. */
JVM_INLINE int search_keeps(__u64 sp, __u64 before)
{
	__u64 n = before - sp, text, other;

	if (n == 8 || n == 24)
		return 1;
	if (n < 32 || n > JVM_PUSHED || n & 15 || word_at(sp + 24) >> 31 != 0)
		return 0;
	text = word_at(sp + 8) - sp;
	other = word_at(sp + 16) - sp;
	if (n == 64)
		return text == 32 && other == 48;
	if (n == 48)
		return text == 32 || other == 32;
	return (text + sp) >> 31 != 0 && (other + sp) >> 31 != 0;
}

/* Bytes that C1 has handed to a subtype check, at an instruction of theirs but the first: the code
 * at pc is b. */
JVM_INLINE int words_handed_here(__u32 cpu, const __u8 *b, __u64 pc)
{
	int all = b[0] == 0xe8 || b[-5] == 0xe8, end;

	if (all)
		end = b[0] == 0xe8 ? 5 : 0;
	else if (b[1] == 0xe8 || b[2] == 0xe8)
		end = b[1] == 0xe8 ? 6 : 7;
	else if (b[-6] == 0xe8 || b[-7] == 0xe8)
		end = b[-6] == 0xe8 ? -1 : -2;
	else
		return 0;
	return !jvm_words_handed(cpu, pc + (__u64)(__s64)end) ? 0 : all ? 16 : 8;
}

/* Bytes that the method at hand, in which the thread stands, has pushed below its frame; negative:
 * it cannot be told. s->bytes has the code around pc, which shows where C1 hands words to a subtype
 * check and where the x87 is used. The search of a text keeps the stack pointer before in rcx, and
 * pushes that last. That the number of words is odd, the stack pointer says. A word in the frame
 * may be a stale return address: what fits in two places is not believed. */
JVM_GLOBAL int jvm_pushed_bytes(__u32 cpu)
{
	struct jvm_state *s = h_state(cpu);
	struct andiron_walk *w = h_walk(cpu);
	__u64 sp, end, before, ret;
	int x87, odd, n, fits, pushed = 0;
	const __u8 *b;

	if (!s || !w || s->frame_size < 16)
		return 0;
	b = s->bytes + JVM_BEHIND;
	sp = w->regs[JVM_SP];
	end = sp + s->frame_size;
	x87 = jvm_x87_near(cpu);
	pushed = words_handed_here(cpu, b, w->pc);
	if (pushed != 0)
		return pushed;
	before = word_at(sp);
	if (!search_keeps(sp, before))
		before = w->regs[JVM_RCX];
	if (before - sp - 1 >= JVM_PUSHED || before & 7)
		before = sp;
	odd = end & 8 ? 1 : 0;
	if (before == sp && !x87 && !odd)
		return 0;
	s->found = 0;
	n = jvm_frame_ends(cpu, end);
	/* A handler that has taken the return address's place is no stale one. */
	ret = word_at(end - 8);
	n += !odd && heap_of(s, ret) >= 0 && !returns(s, ret);
	for (int i = 8; (x87 || odd) && i <= JVM_WORK_PUSHED; i += 8) {
		fits = jvm_frame_ends(cpu, end + (__u32)i);
		n += fits;
		pushed += fits * i;
	}
	if (before - sp > (x87 || odd ? JVM_WORK_PUSHED : 0)) {
		fits = jvm_frame_ends(cpu, end + before - sp);
		n += fits;
		pushed += fits * (int)(before - sp);
	}
	return n > 1 || (odd && n == 0) ? -1 : pushed;
}
