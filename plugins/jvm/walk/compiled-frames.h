/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Frames of compiled methods and of stubs. A blob says how large its frame is; there is no frame
 * pointer, and the caller's is kept below the return address. The innermost frame may be under
 * construction or gone: what has been done of it, the code itself says, whose entry and end are
 * made of a handful of instructions.
 *
 * Stubs of size 0 are leaves, or keep a frame pointer. They are left by a return address that is
 * proved by the call before it. */
#pragma once

#include "jvm/walk/debug-info.h"
#include "jvm/walk/interpreter-frames.h"
#include "jvm/walk/pushed-words.h"

#define JVM_PROLOGUE   48 /* bytes of an entry that are looked at */
#define JVM_STUB_ENTRY 14 /* bytes of a stub in which it makes its frame */

/* Is it one of the handlers of the method at hand that replace return addresses? */
JVM_INLINE int deoptimizes(const struct jvm_state *s, __u64 pc)
{
	const struct jvm_offsets *at = &s->process.at;
	__u64 handler, other = 0;

	if (at->flags & JVM_DEOPT_POINTER) {
		handler = header64(s, at->nmethod_deopt);
		other = header64(s, at->nmethod_deopt_mh);
	} else {
		handler = s->blob + header32(s, at->nmethod_deopt);
		if (at->nmethod_deopt_mh != JVM_NONE)
			other = s->blob + header32(s, at->nmethod_deopt_mh);
	}
	return pc == handler || pc == other;
}

/* To the caller, by a return address. Where the caller is deoptimized, the address is a handler's.
 * A stub may have been entered at a poll or by a fault, from any place in a method. The blob at
 * hand may be another one behind. */
JVM_GLOBAL int jvm_frame_at(__u32 cpu, __u64 ret, __u64 sp, __u64 fp)
{
	struct jvm_state *s = h_state(cpu);
	struct andiron_walk *w = h_walk(cpu);
	__u32 stub;

	if (!s || !w)
		return JVM_STEP_LOST;
	stub = !s->nmethod;
	if (!returns(s, ret)) {
		if (jvm_blob_find(s->cpu, ret) != 0)
			return JVM_STEP_LOST;
		/* The barrier of a virtual thread is checked where it is left. */
		if (s->nmethod ? !stub && !deoptimizes(s, ret) : !s->process.at.entry_words)
			return JVM_STEP_LOST;
	}
	return step_to(w, ret, sp, fp);
}

JVM_INLINE enum jvm_step frame_at(struct jvm_state *s, struct andiron_walk *w, __u64 ret, __u64 sp,
				  __u64 fp)
{
	return (enum jvm_step)jvm_frame_at(s->cpu, ret, sp, fp);
}

/* Likewise; the address is below sp. */
JVM_INLINE enum jvm_step frame_left(struct jvm_state *s, struct andiron_walk *w, __u64 sp, __u64 fp)
{
	return frame_at(s, w, word_at(sp - 8), sp, fp);
}

/* A frame whose call has been walked. */
JVM_INLINE enum jvm_step frame_leave(struct jvm_state *s, struct andiron_walk *w)
{
	__u64 sp = w->regs[JVM_SP] + s->frame_size, pair[2];

	if (s->nmethod && s->stub_left && jvm_words_handed(s->cpu, w->pc))
		sp += 16;
	else if (s->nmethod && s->no_method_left)
		sp += (__u32)jvm_registers_kept(s->cpu, w->pc) >> 8;
	s->no_method_left = !s->nmethod;
	s->stub_left = 0;
	if (s->frame_size < 16)
		return frame_left(s, w, w->regs[JVM_SP] + 8, w->regs[JVM_FP]);
	if (h_read(pair, sizeof(pair), sp - 16) != 0)
		return JVM_STEP_LOST;
	return frame_at(s, w, pair[1], sp, pair[0]);
}

/* Length of the poll at b, of a safepoint or of an exception, without its jump; 0: it is none. The
 * thread is in r15, and the distance in it has 8 or 32 bits. */
JVM_INLINE __u32 poll_bytes(const __u8 *b)
{
	__u32 displacement = (b[2] & 0xc0) == 0x40 ? 1 : 4;

	if ((b[2] & 7) != 7 || (b[2] & 0x80) == (b[2] & 0x40) << 1)
		return 0;
	if (b[0] == 0x49 && b[1] == 0x3b && (b[2] & 0x38) == 0x20) /* cmp N(%r15), %rsp */
		return 3 + displacement;
	if (b[0] == 0x4d && b[1] == 0x8b && (b[2] & 0x38) == 0x10) /* mov N(%r15), %r10 */
		return 3 + displacement;
	if (b[0] == 0x49 && b[1] == 0x81 && (b[2] & 0x38) == 0x38) /* cmp $0, N(%r15) */
		return 7 + displacement;
	if (b[0] == 0x49 && b[1] == 0x83 && (b[2] & 0x38) == 0x38)
		return 4 + displacement;
	if (b[0] == 0x41 && b[1] == 0xf6 && (b[2] & 0x38) == 0) /* testb $1, N(%r15) */
		return 4 + displacement;
	return 0;
}

/* Where the code goes on behind a poll and its jump at s->bytes[at]. */
JVM_GLOBAL int jvm_poll_skip(__u32 cpu, __u32 at)
{
	const struct jvm_state *s = h_state(cpu);
	const __u8 *b;
	__u32 n;

	if (!s || at > 127)
		return 0;
	n = poll_bytes(s->bytes + at);
	b = s->bytes + at + n;
	if (b[0] == 0x0f && (b[1] == 0x87 || b[1] == 0x85)) /* ja, jne */
		n += 6;
	else if (b[0] == 0x74 && b[1] < 32) /* je, over what is done at a safepoint */
		n += 2u + b[1];
	else if (b[0] == 0x41 && b[1] == 0x85 && b[2] == 0x02) /* test %eax, (%r10) */
		n += 3;
	else if (b[0] == 0x85 && b[1] == 0x05) /* test %eax, N(%rip) */
		n += 6;
	return (int)(at + n);
}

/* Does the instruction at s->bytes[at] give the frame back: add $N, %rsp? */
JVM_INLINE int frame_given_back(const struct jvm_state *s, __u32 at)
{
	const __u8 *b = s->bytes + (at & 15);

	return b[0] == 0x48 && b[2] == 0xc4 && (b[1] == 0x81 || b[1] == 0x83);
}

/* Has the frame been given back before s->bytes[at], and does the code there return, but for polls,
 * or go on as its caller's? */
JVM_GLOBAL int jvm_code_returns(__u32 cpu, __u32 at)
{
	const struct jvm_state *s = h_state(cpu);
	const __u8 *b;

	if (!s)
		return 0;
	b = s->bytes + 8 + (at & 7);
	if (b[0] == 0xe9 && b[-1] == 0x5d) /* jmp, behind pop %rbp */
		return frame_given_back(s, at - 8) || frame_given_back(s, at - 5);

	at = (__u32)jvm_poll_skip(cpu, (__u32)jvm_poll_skip(cpu, 8 + (at & 7)));
	return at < sizeof(s->bytes) && s->bytes[at] == 0xc3;
}

/* Length of the entry's instruction at b, 0: it is none of an entry. */
JVM_INLINE __u32 prologue_instruction(struct jvm_state *s, const __u8 *b)
{
	if (b[0] == 0x55) { /* push %rbp */
		s->pushed = s->saved = 1;
		return 1;
	}
	if (b[0] == 0x52) /* push %rdx: of an exception, where it was thrown */
		return 1;
	if (b[0] == 0x89 && b[1] == 0x84 && b[2] == 0x24) /* mov %eax, -N(%rsp) */
		return 7;
	if (b[0] == 0x0f && b[1] == 0x1f && b[2] == 0x44)
		return 5;
	if (b[0] == 0x66 && b[1] == 0x90)
		return 2;
	if (b[0] != 0x48)
		return 0;
	if (b[1] == 0x8b && b[2] == 0xec) /* mov %rsp, %rbp */
		return 3;
	if ((b[1] == 0x83 || b[1] == 0x81) && b[2] == 0xec) { /* sub $N, %rsp */
		s->framed = 1;
		return b[1] == 0x83 ? 4 : 7;
	}
	if (b[1] == 0x89 && (b[2] == 0x2c || b[2] == 0x6c || b[2] == 0xac) &&
	    b[3] == 0x24) { /* mov %rbp, N(%rsp) */
		s->saved = 1;
		return b[2] == 0x2c ? 4 : b[2] == 0x6c ? 5 : 8;
	}
	return 0;
}

/* Goes over an instruction of an entry, s->prologue_at of whose bytes have been read. Not 0: the
 * end. */
JVM_GLOBAL int jvm_prologue_step(__u32 cpu)
{
	struct jvm_state *s = h_state(cpu);
	__u32 n;

	if (!s || s->prologue_at >= s->prologue_limit || s->prologue_at > 39)
		return 1;
	n = prologue_instruction(s, s->bytes + s->prologue_at);
	s->prologue_at += n;
	return n == 0;
}

/* Where the method's code is entered. */
JVM_INLINE __u64 nmethod_entry(const struct jvm_state *s)
{
	const struct jvm_offsets *at = &s->process.at;

	if (header32(s, at->nmethod_entry_bci) != ~0u)
		return header64(s, at->nmethod_osr_entry);
	return at->flags & JVM_ENTRY_OFFSET ? s->code + header16(s, at->nmethod_entry)
					    : header64(s, at->nmethod_entry);
}

/* What an entry has done before pc; not 0: it cannot be told. */
JVM_INLINE int prologue_read(struct jvm_state *s, __u64 entry, __u64 pc)
{
	s->pushed = s->framed = s->saved = 0;
	if (pc <= entry || s->frame_size == 0) /* what links method handles has no frame */
		return 0;
	if (pc - entry > 256 || h_read(s->bytes, JVM_PROLOGUE, entry) != 0)
		return 1;
	s->prologue_at = 0;
	s->prologue_limit = (__u32)(pc - entry);
	for (int i = 0; i < 8; i++)
		if (jvm_prologue_step(s->cpu) != 0)
			break;
	/* What comes behind the frame is a barrier of the collector's. */
	return s->prologue_at < s->prologue_limit && !s->framed;
}

/* The innermost frame of a method: under construction, whole, or gone. */
JVM_INLINE enum jvm_step leaf_leave(__u32 cpu, struct jvm_state *s, struct andiron_walk *w)
{
	__u64 pc = w->pc, sp = w->regs[JVM_SP], fp = w->regs[JVM_FP], ret;
	__u32 offset = (__u32)(pc - s->code), pop = 0, left = 0, frame_size = s->frame_size;
	int pushed = 0;

	s->pushed = s->framed = s->saved = 1;
	if (offset < s->frame_complete) {
		if (prologue_read(s, nmethod_entry(s), pc) != 0)
			return JVM_STEP_LOST;
		offset = 0;
	} else if (h_read(s->bytes, JVM_CODE, pc - JVM_BEHIND) == 0) {
		pop = s->bytes[JVM_BEHIND] == 0x5d;
		left = jvm_code_returns(cpu, JVM_BEHIND + pop);
	}
	if (compiled_push(cpu, s, w, offset) != 0)
		return JVM_STEP_LOST;
	if (left && pop) {
		fp = word_at(sp);
		sp += 16;
	} else if (left || frame_size < 16 || !(s->pushed || s->framed)) {
		sp += 8;
	} else if (!s->framed) {
		fp = word_at(sp);
		sp += 16;
	} else {
		if (offset != 0 && h_read(s->bytes, JVM_CODE, pc - JVM_BEHIND) == 0)
			pushed = jvm_pushed_bytes(cpu);
		if (pushed < 0)
			return JVM_STEP_LOST;
		sp += frame_size + (__u32)pushed;
		if (s->saved)
			fp = word_at(sp - 16);
	}
	ret = word_at(sp - 8);
	if (returns(s, ret) && !jvm_caller_fits(cpu, ret, sp, fp, JVM_CALLED_WITH))
		return JVM_STEP_LOST;
	return frame_at(s, w, ret, sp, fp);
}

/* Does the thread stand in a method's stub for a call of its own to what is interpreted? That is
 * mov $method, %rbx; jmp, has no frame and no debug information, and the call leads to it. */
JVM_GLOBAL int jvm_call_passes_on(__u32 cpu)
{
	struct jvm_state *s = h_state(cpu);
	struct andiron_walk *w = h_walk(cpu);
	__u64 ret, to, stub;

	if (!s || !w || h_read(s->bytes, 8, w->pc) != 0)
		return 0;
	stub = w->pc - (s->bytes[0] == 0xe9 ? 10 : 0);
	if (stub == w->pc && (s->bytes[0] != 0x48 || s->bytes[1] != 0xbb))
		return 0;
	ret = word_at(w->regs[JVM_SP]);
	if (ret < s->code || ret - s->blob >= s->size || h_read(s->bytes, 8, ret - 8) != 0)
		return 0;
	to = ret + (__u64)(__s64)(__s32)at32(s->bytes, 4);
	return s->bytes[3] == 0xe8 && to == stub;
}

JVM_GLOBAL int jvm_nmethod_step(__u32 cpu)
{
	struct jvm_state *s = h_state(cpu);
	struct andiron_walk *w = h_walk(cpu);
	__u64 pc;

	if (!s || !w)
		return JVM_STEP_LOST;
	pc = w->pc;

	if (w->exact && JVM_ALL_KNOWN(w) && jvm_call_passes_on(cpu))
		return step_to(w, word_at(w->regs[JVM_SP]), w->regs[JVM_SP] + 8, w->regs[JVM_FP]);
	if (w->exact && JVM_ALL_KNOWN(w))
		return leaf_leave(cpu, s, w);
	/* The real address is kept in the frame. */
	if (deoptimizes(s, pc))
		pc = word_at(w->regs[JVM_SP] + header32(s, s->process.at.nmethod_orig_pc));
	if (pc - s->blob >= s->size || pc < s->code ||
	    compiled_push(cpu, s, w, (__u32)(pc - s->code)) != 0)
		return JVM_STEP_LOST;
	return frame_leave(s, w);
}

/* A virtual thread's outermost frame that is on the stack returns to a stub, if there are more in
 * the Java heap. Above it stands a ContinuationEntry, and the frame that has entered it. */
JVM_INLINE enum jvm_step barrier_leave(struct jvm_state *s, struct andiron_walk *w)
{
	__u64 sp = w->regs[JVM_SP] + 8ull * s->process.at.entry_words + 16;
	__u64 ret = word_at(sp - 8);

	if (s->process.at.entry_words == 0 || !returns(s, ret) || ret == s->process.call_stub ||
	    andiron_walk_push(w, JVM_WHAT(JVM_FRAME_MARK, JVM_MARK_FROZEN), 0) != 0)
		return JVM_STEP_LOST;
	return step_to(w, ret, sp, word_at(sp - 16));
}

/* A stub with a frame, in which the thread stands. Of an exception, the stub pushes where it was
 * thrown, as if that had called it. */
JVM_GLOBAL int jvm_framed_stub_leave(__u32 cpu)
{
	struct jvm_state *s = h_state(cpu);
	struct andiron_walk *w = h_walk(cpu);
	__u64 sp, fp, thrown;
	const __u8 *b;
	__u32 offset;

	if (!s || !w)
		return JVM_STEP_LOST;
	sp = w->regs[JVM_SP];
	fp = w->regs[JVM_FP];
	thrown = w->regs[JVM_RDX];
	b = s->bytes + JVM_BEHIND;
	offset = (__u32)(w->pc - s->code);
	if (offset < JVM_STUB_ENTRY) {
		if (prologue_read(s, s->code, w->pc) != 0)
			return JVM_STEP_LOST;
		if (!s->framed && !s->pushed && offset == 0 && s->bytes[0] == 0x52) {
			w->regs[JVM_SP] -= 8; /* it is the caller's already */
			return frame_at(s, w, thrown, sp, fp);
		}
		if (!s->framed)
			return s->pushed ? frame_left(s, w, sp + 16, word_at(sp))
					 : frame_left(s, w, sp + 8, fp);
		if (!s->saved)
			return frame_left(s, w, sp + s->frame_size, fp);
	} else if (h_read(s->bytes, JVM_CODE, w->pc - JVM_BEHIND) == 0) {
		if (b[0] == 0x5d && (frame_given_back(s, 1) || frame_given_back(s, 4)))
			return frame_left(s, w, sp + 16, word_at(sp));
		if (b[-1] == 0x5d || b[-1] == 0xc9 || (b[0] == 0x5a && frame_given_back(s, 4)))
			return frame_left(s, w, sp + 8, fp);
	}
	if (returns(s, word_at(sp + s->frame_size - 8)) ||
	    !jvm_caller_fits(cpu, thrown, sp, fp, JVM_CALLED_NEAR))
		return frame_leave(s, w);
	w->regs[JVM_SP] -= 8;
	return frame_at(s, w, thrown, sp, fp);
}

/* An adapter holds the return address in rax while it moves arguments. It may have moved the stack
 * pointer, and then has the one before in r13. */
JVM_INLINE int adapter_leave(__u32 cpu, struct andiron_walk *w)
{
	__u64 sp = w->regs[JVM_SP], fp = w->regs[JVM_FP], ret = w->regs[JVM_RAX];
	__u64 before = w->regs[JVM_R13];

	if (before - sp < 4096 && jvm_caller_fits(cpu, ret, before, fp, JVM_CALLED_NEAR))
		sp = before;
	else if (!jvm_caller_fits(cpu, ret, sp, fp, JVM_CALLED_NEAR))
		return JVM_STEP_LOST;
	w->regs[JVM_SP] = sp - 8;
	return step_to(w, ret, sp, fp);
}

/* A stub without a frame of known size, in which the thread stands. */
JVM_GLOBAL int jvm_leaf_stub_leave(__u32 cpu)
{
	struct jvm_state *s = h_state(cpu);
	struct andiron_walk *w = h_walk(cpu);
	__u64 sp, fp, ret, top;

	if (!s || !w)
		return JVM_STEP_LOST;
	sp = w->regs[JVM_SP];
	fp = w->regs[JVM_FP];
	top = word_at(sp);
	if (s->adapter && adapter_leave(cpu, w) == JVM_STEP_ON)
		return JVM_STEP_ON;
	if ((s->adapter || jvm_returns_here(cpu, top)) &&
	    jvm_caller_fits(cpu, top, sp + 8, fp, JVM_CALLED_WITH))
		return step_to(w, top, sp + 8, fp);
	/* What it has pushed. */
	for (__u32 i = 1; i < 12; i++) {
		ret = word_at(sp + 8ull * i);
		if (jvm_returns_here(cpu, ret) &&
		    jvm_caller_fits(cpu, ret, sp + 8ull * i + 8, fp, JVM_CALLED_WITH))
			return step_to(w, ret, sp + 8ull * i + 8, fp);
	}
	/* The JVM itself calls some stubs, such as flush_icache_stub. */
	if (user_address(top) && heap_of(s, top) < 0 && jvm_behind_call(cpu, top))
		return step_to(w, top, sp + 8, fp);
	return JVM_STEP_LOST;
}

/* Has native code made an upcall that returns there, or a stub that calls a function's address,
 * which may be that of an upcall? */
JVM_GLOBAL int jvm_upcall_returns(__u32 cpu, __u64 ret)
{
	struct jvm_state *s = h_state(cpu);

	if (!s || !user_address(ret) || !jvm_behind_call(cpu, ret))
		return 0;
	return heap_of(s, ret) < 0 ||
	       (jvm_blob_find(cpu, ret) == 0 && !s->nmethod && s->frame_size >= 16);
}

/* A stub that keeps a frame pointer and has called something. A barrier of the collector's has room
 * for another return address. What native code has called returns to it. */
JVM_INLINE enum jvm_step chained_stub_leave(struct jvm_state *s, struct andiron_walk *w, int leaf)
{
	__u64 sp = w->regs[JVM_SP], fp = w->regs[JVM_FP], ret;

	if (!JVM_FP_KNOWN(w) || fp < sp || fp - sp >= 1u << 16 || fp & 7)
		return JVM_STEP_LOST;
	ret = word_at(fp + 8);
	if (ret == ~0ull) {
		ret = word_at(fp + 16);
		return returns(s, ret) ? step_to(w, ret, fp + 24, word_at(fp)) : JVM_STEP_LOST;
	}
	if (leaf)
		return JVM_STEP_LOST;
	if (s->upcall ? !jvm_upcall_returns(s->cpu, ret) : !returns(s, ret))
		return JVM_STEP_LOST;
	return step_to(w, ret, fp + 16, word_at(fp));
}

/* Has compiled code called native code that returns there? That may have jumped to a stub, as
 * fmod of JDK 25 does. */
JVM_GLOBAL int jvm_native_called(__u32 cpu, __u64 ret)
{
	struct jvm_state *s = h_state(cpu);

	/* movabs $to, %r10; call *%r10 */
	return s && h_read(s->bytes, 16, ret - 16) == 0 && s->bytes[3] == 0x49 &&
	       s->bytes[4] == 0xba && s->bytes[13] == 0x41 && s->bytes[14] == 0xff &&
	       s->bytes[15] == 0xd2 &&
	       heap_of(s, (__u64)at32(s->bytes, 5) | (__u64)at32(s->bytes, 9) << 32) < 0;
}

/* A stub that native code has called or jumped to, or that a stub has called which calls native
 * code, in which the thread stands. Its frame is made and left by
 * push %rbp; mov %rsp, %rbp … leave or pop %rbp; ret. */
JVM_GLOBAL int jvm_called_stub_leave(__u32 cpu)
{
	struct jvm_state *s = h_state(cpu);
	struct andiron_walk *w = h_walk(cpu);
	const __u8 *b;
	__u64 sp, fp, ret;
	int called;

	if (!s || !w || h_read(s->bytes, 8, w->pc - 2) != 0)
		return JVM_STEP_LOST;
	b = s->bytes + 2;
	sp = w->regs[JVM_SP];
	fp = w->regs[JVM_FP];
	if ((b[0] == 0x55 && b[1] == 0x48 && b[2] == 0x8b && b[3] == 0xec) ||
	    (b[0] == 0xc3 && (b[-1] == 0xc9 || b[-1] == 0x5d))) {
		sp += 8;
	} else if (b[-1] == 0x55 && b[0] == 0x48 && b[1] == 0x8b && b[2] == 0xec) {
		fp = word_at(sp);
		sp += 16;
	} else if (fp >= sp && fp - sp < 1u << 16 && !(fp & 7)) {
		sp = fp + 16;
		fp = word_at(fp);
	} else {
		return JVM_STEP_LOST;
	}
	ret = word_at(sp - 8);
	if (s->upcall || in_call_stub(s, w->pc))
		called = (s->upcall || heap_of(s, ret) < 0) && jvm_upcall_returns(cpu, ret);
	else
		called = jvm_native_called(cpu, ret) &&
			 jvm_caller_fits(cpu, ret, sp, fp, JVM_CALLED_WITH);
	return called ? (int)step_to(w, ret, sp, fp) : JVM_STEP_LOST;
}

/* Code that is no method's: stubs, adapters. */
JVM_GLOBAL int jvm_stub_step(__u32 cpu)
{
	struct jvm_state *s = h_state(cpu);
	struct andiron_walk *w = h_walk(cpu);
	int leaf, step = JVM_STEP_LOST;
	__u64 sp, fp, name;

	if (!s || !w)
		return JVM_STEP_LOST;
	leaf = w->exact && JVM_ALL_KNOWN(w);
	s->stub_left = leaf;
	s->no_method_left = 1;
	sp = w->regs[JVM_SP];
	fp = w->regs[JVM_FP];
	if (!leaf && s->process.at.entry_words && s->frame_size < 16 && !returns(s, w->pc))
		return barrier_leave(s, w);
	if (stub_know(s) == 0)
		andiron_walk_push(w, JVM_WHAT(JVM_FRAME_STUB, 0), s->id);
	if (!leaf && s->frame_size >= 16)
		return frame_leave(s, w);
	if (leaf && (s->upcall || in_call_stub(s, w->pc)))
		return jvm_called_stub_leave(cpu);
	name = word_at(header64(s, s->process.at.blob_name));
	s->adapter = name == JVM_NAME_VTABLE || name == JVM_NAME_ADAPTER ||
		     name == JVM_NAME_HANDLES;
	if (leaf && name == JVM_NAME_LOADER)
		return frame_left(s, w, sp + 8, fp);
	/* What a stub has not written yet may look like its return address: a frame that is proved
	 * by the call before it comes first. */
	if (leaf && !s->adapter && frame_pointer_fits(fp, sp, 1u << 16) &&
	    jvm_returns_here(s->cpu, word_at(fp + 8)) &&
	    jvm_caller_fits(cpu, word_at(fp + 8), fp + 16, word_at(fp), JVM_CALLED_WITH))
		return step_to(w, word_at(fp + 8), fp + 16, word_at(fp));
	if (leaf)
		step = s->frame_size >= 16 ? jvm_framed_stub_leave(cpu) : jvm_leaf_stub_leave(cpu);
	if (leaf && step == JVM_STEP_LOST && s->frame_size < 16 && !s->adapter)
		step = jvm_called_stub_leave(cpu);
	return step == JVM_STEP_LOST ? (int)chained_stub_leave(s, w, leaf) : step;
}
