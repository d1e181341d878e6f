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

#define JVM_PROLOGUE 48 /* bytes of an entry that are looked at */

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

/* To the caller, whose return address is below sp. Where the caller is deoptimized, the address is
 * a handler's. A stub may have been entered at a poll or by a fault, from any place in a method.
 * The blob at hand may be another one behind. */
JVM_INLINE enum jvm_step frame_left(struct jvm_state *s, struct andiron_walk *w, __u64 sp, __u64 fp)
{
	__u64 ret = word_at(sp - 8);
	__u32 stub = !s->nmethod;

	if (!returns(s, ret)) {
		if (jvm_blob_find(s->cpu, ret) != 0)
			return JVM_STEP_LOST;
		/* The barrier of a virtual thread is checked where it is left. */
		if (s->nmethod ? !stub && !deoptimizes(s, ret) : !s->process.at.entry_words)
			return JVM_STEP_LOST;
	}
	return step_to(w, ret, sp, fp);
}

/* A frame whose call has been walked. */
JVM_INLINE enum jvm_step frame_leave(struct jvm_state *s, struct andiron_walk *w)
{
	__u64 sp = w->regs[JVM_SP] + (s->frame_size < 16 ? 8 : s->frame_size);

	return frame_left(s, w, sp, s->frame_size < 16 ? w->regs[JVM_FP] : word_at(sp - 16));
}

#if !JVM_ARM
/* Does the code at s->bytes[at] return, but for a poll of the safepoint? */
JVM_INLINE int code_returns(const struct jvm_state *s, __u32 at)
{
	const __u8 *b = s->bytes + (at & 15);

	if (b[0] == 0x49 && b[1] == 0x3b && b[2] == 0xa7) { /* cmp N(%r15), %rsp; ja … */
		b += 7;
		if (b[0] != 0x0f || b[1] != 0x87)
			return 0;
		b += 6;
	} else if (b[0] == 0x4d && b[1] == 0x8b && b[2] == 0x97) { /* mov N(%r15), %r10 */
		b += 7;
	}
	if (b[0] == 0x0f && b[1] == 0x87)
		b += 6;
	else if (b[0] == 0x41 && b[1] == 0x85 && b[2] == 0x02) /* test %eax, (%r10) */
		b += 3;
	else if (b[0] == 0x85 && b[1] == 0x05) /* test %eax, N(%rip) */
		b += 6;
	return b[0] == 0xc3;
}

/* Length of the entry's instruction at b, 0: it is none of an entry. */
JVM_INLINE __u32 prologue_instruction(struct jvm_state *s, const __u8 *b)
{
	if (b[0] == 0x55) { /* push %rbp */
		s->pushed = s->saved = 1;
		return 1;
	}
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
	if (b[1] == 0x89 && (b[2] == 0x6c || b[2] == 0xac) &&
	    b[3] == 0x24) { /* mov %rbp, N(%rsp) */
		s->saved = 1;
		return b[2] == 0x6c ? 5 : 8;
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
JVM_INLINE int prologue_read(struct jvm_state *s, __u64 pc)
{
	__u64 entry = nmethod_entry(s);

	s->pushed = s->framed = s->saved = 0;
	if (pc <= entry)
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
	__u64 pc = w->pc, sp = w->regs[JVM_SP], fp = w->regs[JVM_FP];
	__u32 offset = (__u32)(pc - s->code), pop = 0, left = 0;

	s->pushed = s->framed = s->saved = 1;
	if (offset < s->frame_complete) {
		if (prologue_read(s, pc) != 0)
			return JVM_STEP_LOST;
		offset = 0;
	} else if (h_read(s->bytes, 40, pc) == 0) {
		pop = s->bytes[0] == 0x5d;
		left = code_returns(s, pop);
	}
	if (compiled_push(cpu, s, w, offset) != 0)
		return JVM_STEP_LOST;
	if (left && pop) {
		fp = word_at(sp);
		sp += 16;
	} else if (left || s->frame_size < 16 || !(s->pushed || s->framed)) {
		sp += 8;
	} else if (!s->framed) {
		fp = word_at(sp);
		sp += 16;
	} else {
		sp += s->frame_size;
		/* JDK 8 pushes what its x87 instructions work on. */
		for (int i = 0; i < 3 && !returns(s, word_at(sp - 8)); i++)
			sp += 8;
		if (s->saved)
			fp = word_at(sp - 16);
	}
	return frame_left(s, w, sp, fp);
}
#endif

JVM_INLINE enum jvm_step nmethod_step(__u32 cpu, struct jvm_state *s, struct andiron_walk *w)
{
	__u64 pc = w->pc;

#if !JVM_ARM
	if (w->exact && JVM_ALL_KNOWN(w))
		return leaf_leave(cpu, s, w);
#endif
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

/* Code that is no method's: stubs, adapters. */
JVM_INLINE enum jvm_step stub_step(struct jvm_state *s, struct andiron_walk *w)
{
	__u64 sp = w->regs[JVM_SP], fp = w->regs[JVM_FP], ret;
	int leaf = w->exact && JVM_ALL_KNOWN(w);

	if (!leaf && s->process.at.entry_words && s->frame_size < 16 && !returns(s, w->pc))
		return barrier_leave(s, w);
	if (stub_know(s) == 0)
		andiron_walk_push(w, JVM_WHAT(JVM_FRAME_STUB, s->blob), s->identity);
	if (s->frame_size >= 16) {
		ret = word_at(sp + s->frame_size - 8);
		if (!leaf || (w->pc - s->code >= s->frame_complete && returns(s, ret)))
			return frame_leave(s, w);
	}
	/* What a stub has not written yet may look like its return address: its frame comes
	 * first. */
	if (leaf && fp >= sp && fp - sp < 1u << 16 && !(fp & 7) &&
	    jvm_returns_here(s->cpu, word_at(fp + 8)))
		return step_to(w, word_at(fp + 8), fp + 16, word_at(fp));
	ret = word_at(sp);
	if (leaf && (jvm_returns_here(s->cpu, ret) || ((s->frame_size < 16) && returns(s, ret))))
		return step_to(w, ret, sp + 8, fp);
#if !JVM_ARM
	/* An adapter between interpreted and compiled code holds it in rax while it moves
	 * arguments. */
	if (leaf && returns(s, w->regs[JVM_RAX])) {
		ret = w->regs[JVM_RAX];
		if (w->regs[JVM_R13] - sp < 4096)
			sp = w->regs[JVM_R13];
		w->regs[JVM_SP] = sp - 8;
		return step_to(w, ret, sp, fp);
	}
#endif
	if (fp >= sp && fp - sp < 1u << 16 && !(fp & 7)) {
		ret = word_at(fp + 8);
		sp = fp + 16;
		if (ret == ~0ull) { /* a barrier of the collector's has room for another one */
			ret = word_at(fp + 16);
			sp += 8;
		}
		if (returns(s, ret))
			return step_to(w, ret, sp, word_at(fp));
		if (s->process.at.kind_upcall != JVM_NONE && user_address(ret) &&
		    heap_of(s, ret) < 0)
			return step_to(w, ret, sp, word_at(fp));
	}
	for (int i = 1; leaf && i < 12; i++) {
		ret = word_at(w->regs[JVM_SP] + 8ull * (__u32)i);
		if (jvm_returns_here(s->cpu, ret))
			return step_to(w, ret, w->regs[JVM_SP] + 8ull * (__u32)i + 8, fp);
	}
	return JVM_STEP_LOST;
}
