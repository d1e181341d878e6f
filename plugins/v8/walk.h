/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Walks V8's frames. They are chained by the frame pointer:
 *
 *   fp + 8   return address
 *   fp       the caller's fp
 *   fp - 8   context of a JavaScript function (a tagged pointer), or the kind of the frame (even)
 *   fp - 16  the JSFunction
 *
 * Past its entry code of V8 keeps fp at its own frame, so the chain is right at every instruction
 * but a few: those of a prologue and of an epilogue, which are told by their bytes (leaf_… below),
 * and builtins without a frame, whose caller's frame is at fp. There the chain is whole; only the
 * address in the caller is to be found, on the stack.
 *
 * Everything that is read may be forged. Reads are bounded, fp only rises, and what a frame is
 * called is decided outside, where every object is looked at before it is believed.
 *
 * Includers define V8_INLINE, V8_GLOBAL (a function that is verified by itself) and the helpers
 * h_read, h_copy, h_walk, h_scratch, h_process, h_layout, h_report. */
#pragma once

#include <andiron/bpf/walk.h>

#include "v8/shared.h"

#if defined(__TARGET_ARCH_arm64)
#define V8_SP 31
#define V8_FP 29
#else
#define V8_SP 7
#define V8_FP 6
#endif

#define V8_STEPS 500 /* frames of one run: 1,024 words are not more than 512 */
#define V8_STACK 128 /* words of the stack that are read at once */

#define V8_ON   0u /* there is another frame of V8 */
#define V8_LEFT 1u /* the next frame is native */
#define V8_LOST 2u

#define V8_MARK_ENTRY     1u
#define V8_MARK_CONSTRUCT 2u
#define V8_MARK_COLLECTOR 64u /* none of V8's */

/* One walk's state, kept apart since functions that are verified by themselves share memory only
 * so. */
struct v8_scratch {
	__u64 pc, fp, sp;
	__u32 exact, here; /* here: what pc is in */
	__u64 marked;      /* the marker of the last frame */
	/* Of one step. In memory, since the verifier then looks once at what follows, not once for
	 * each value. */
	volatile __u32 state, found, kind;
	struct v8_process process;
	struct v8_layout layout;
	__u64 words[8]; /* fp - 48 … fp + 8 */
	/* What the frames before had; 0: nothing yet. Recursion is frequent, scripts are few. */
	__u64 last_function, last_script, last_script_id, last_array, last_compilation;
	struct v8_place last_place;
	__u32 last_found, reserved;
	__u64 stack_at, stack[V8_STACK];            /* words, and where they stand; 0: nowhere */
	__u64 shared[16];                           /* a SharedFunctionInfo up to its flags */
	__u64 near[8];                              /* of the stack */
	__u8 bytes[64] __attribute__((aligned(8))); /* of code: from pc - 8 on */
	struct v8_sighting sighting;
};

/* What v8_function has found. */
#define V8_NO_FUNCTION      0u
#define V8_SCRIPT_FUNCTION  1u
#define V8_BUILTIN_FUNCTION 2u

/* 1: the numbers are the same, else 0. */
V8_INLINE __u32 v8_same(__u32 a, __u32 b)
{
	__u32 x = a ^ b;

	return ~(x | -x) >> 31;
}

/* What an address is in. Without a branch, as all that follows: the verifier looks at each way
 * through a program. The difference of two numbers has its highest bit set if it is negative. */
V8_INLINE __u64 v8_segment(const struct v8_scratch *s, __u32 at)
{
	asm volatile("" : "+r"(at)); /* else the bound that follows is left out, as known */
	return s->process.segments[at & (V8_SEGMENTS - 1)];
}

V8_INLINE __u32 v8_where(const struct v8_scratch *s, __u64 pc)
{
	__u64 key = (pc << 8 | 0xff) & V8_SEGMENT_NONE, segment, offset, handler;
	__u32 at = 0, in;

	for (__u32 step = V8_SEGMENTS / 2; step > 0; step /= 2)
		at += (__u32)((key - v8_segment(s, at + step)) >> 63 ^ 1) * step;
	segment = v8_segment(s, at);
	in = (__u32)(segment & 7);
	offset = pc - (segment >> 8);
	handler = ~((offset - s->layout.handlers_from) | (s->layout.handlers_to - 1ull - offset)) >>
		  63;
	in += (__u32)handler * v8_same(in, V8_IN_BLOB) * (V8_IN_HANDLER - V8_IN_BLOB);
	return in * v8_same((__u32)(pc >> 52), 0);
}

V8_INLINE int v8_tagged(__u64 word)
{
	return (word & 3) == 1;
}

/* Sets the frame behind one whose return address and caller's fp are known. */
V8_INLINE void v8_to(struct v8_scratch *s, __u64 pc, __u64 fp, __u64 sp)
{
	s->pc = pc;
	s->fp = fp;
	s->sp = sp;
	s->exact = 0;
}

#if defined(__TARGET_ARCH_arm64)
/* Leaf states are not told on arm64. */
V8_INLINE __u32 v8_leaf(struct v8_scratch *s, struct andiron_walk *w)
{
	return V8_ON;
}
#else
#define V8_PROLOGUE 0xe5894855u /* push %rbp; mov %rsp,%rbp */

#define V8_WHOLE     0u /* rbp is the frame's own, or its caller's where it has none */
#define V8_BEFORE    1u /* in a prologue: the return address is at sp */
#define V8_PUSHED    2u /* the caller's rbp is at sp, the return address above */
#define V8_BARE      3u /* rbp is set, nothing else is */
#define V8_RETURNING 4u /* after the epilogue: the return address is at sp */
#define V8_IN_RCX    5u /* while it drops arguments: in a register */
#define V8_IN_R10    6u
#define V8_AHEAD     7u /* maybe before a prologue */

/* A state, if some bytes at p are those of an instruction, else the one that was found before. No
 * table of all instructions: it would be read-only data, and Linux 5.10 refuses its BTF and so
 * verifies functions once for each call. */
V8_INLINE __u32 v8_leaf_if(const __u8 *p, __u32 mask, __u32 bytes, __u32 state, __u32 before)
{
	__u32 fits = v8_same(h_u32(p) & mask, bytes);

	return fits * state + (fits ^ 1) * before;
}

/* Which instruction of a prologue or an epilogue execution stands at. */
V8_INLINE void v8_leaf_state(struct v8_scratch *s)
{
	const __u8 *b = s->bytes + 8;
	__u32 state = V8_WHOLE, ahead = 0;

	/* The last one that fits counts. */
	state = v8_leaf_if(b, 0xff, 0xc3, V8_RETURNING, state); /* ret */
	state = v8_leaf_if(b, 0xff, 0xc2, V8_RETURNING, state); /* ret $… */
	/* pop %rbp | pop %rcx */
	state = v8_leaf_if(b - 1, 0xffff, 0x595d, V8_RETURNING, state);
	/* pop %rcx | lea …,%rsp; then push %rcx; ret */
	state = v8_leaf_if(b - 1, 0xffffffff, 0x648d4859, V8_IN_RCX, state);
	state = v8_leaf_if(b, 0xffff, 0xc351, V8_IN_RCX, state);
	/* The same by %r10. */
	state = v8_leaf_if(b - 1, 0xffffff, 0x5a415d, V8_RETURNING, state);
	state = v8_leaf_if(b - 1, 0xffffffff, 0x648d485a, V8_IN_R10, state);
	state = v8_leaf_if(b, 0xffffff, 0xc35241, V8_IN_R10, state);
	state = v8_leaf_if(b - 4, 0xffffffff, V8_PROLOGUE, V8_BARE, state);
	state = v8_leaf_if(b - 1, 0xffffffff, V8_PROLOGUE, V8_PUSHED, state);
	state = v8_leaf_if(b, 0xffffffff, V8_PROLOGUE, V8_BEFORE, state);
	/* Between a function's first instruction and its prologue: is it still to be
	 * deoptimised? Compiled functions lie far enough from each other to see only their own. */
	for (__u32 i = 1; i < 44; i++)
		ahead |= v8_same(h_u32(b + i), V8_PROLOGUE);
	if (s->here == V8_IN_CODE && ahead && state == V8_WHOLE)
		state = V8_AHEAD;
	/* push %rdi, in two encodings: the context is there, the function is not. */
	if (s->sp + 8 == s->fp && (b[0] == 0x57 || (h_u32(b) & 0xffff) == 0x75ff) &&
	    state == V8_WHOLE)
		state = V8_BARE;
	s->state = state;
}

V8_INLINE __u32 v8_leaf_leave(struct v8_scratch *s, struct andiron_walk *w)
{
	__u32 state = s->state;
	__u64 at = state == V8_BARE ? s->fp : s->sp;

	if (state == V8_IN_RCX || state == V8_IN_R10) {
		v8_to(s, w->regs[state == V8_IN_RCX ? 2 : 10], s->fp, s->sp);
		return V8_ON;
	}
	if (h_read(s->near, 16, at) != 0)
		return V8_LOST;
	if (state == V8_PUSHED || state == V8_BARE)
		v8_to(s, s->near[1], s->near[0], at + 16);
	else
		v8_to(s, s->near[0], s->fp, at + 8);
	return V8_ON;
}

V8_INLINE void v8_function(struct v8_scratch *s, __u64 function);
V8_INLINE int v8_push_function(struct v8_scratch *s, struct andiron_walk *w);

/* Appends a leaf that is not whole. On entry rdi is the function by V8's convention of calls. */
V8_INLINE int v8_leaf_push(struct v8_scratch *s, struct andiron_walk *w)
{
	if (s->layout.unknown)
		return 0; /* no frame has a name */
	if (s->here == V8_IN_BLOB)
		return andiron_walk_push(w, V8_WHAT(V8_STUB, 0), s->pc | V8_EXACT);
	if (s->here != V8_IN_CODE || s->state > V8_BARE)
		return 0;
	v8_function(s, w->regs[5]);
	if (s->found != V8_SCRIPT_FUNCTION)
		return 0;
	s->kind = V8_COMPILED;
	s->sighting.code = s->pc;
	return v8_push_function(s, w);
}

V8_INLINE int v8_called_at(struct v8_scratch *s, __u64 pc);

/* A prologue ahead is this function's if what is at sp was put there by a call. In code of regular
 * expressions it may be that of a routine of theirs. */
V8_INLINE void v8_leaf_ahead(struct v8_scratch *s)
{
	s->state = V8_WHOLE;
	if (h_read(s->near, 8, s->sp) == 0 && v8_where(s, s->near[0]) != V8_IN_NONE &&
	    v8_called_at(s, s->near[0]))
		s->state = V8_BEFORE;
}

/* The code around pc; 1: it is not to be read. It may be the first or the last of its region. */
V8_INLINE int v8_leaf_read(struct v8_scratch *s)
{
	__u64 *bytes = (__u64 *)(void *)s->bytes;

	if (h_read(s->bytes, sizeof(s->bytes), s->pc - 8) == 0)
		return 0;
	for (__u32 i = 0; i < sizeof(s->bytes) / 8; i++)
		bytes[i] = 0;
	return h_read(s->bytes + 8, 16, s->pc) != 0 && h_read(s->bytes + 8, 4, s->pc) != 0;
}

/* Leaves a frame that is not whole. */
V8_INLINE __u32 v8_leaf(struct v8_scratch *s, struct andiron_walk *w)
{
	if (v8_leaf_read(s) != 0)
		return V8_ON;
	v8_leaf_state(s);
	if (s->state == V8_AHEAD)
		v8_leaf_ahead(s);
	if (s->state == V8_WHOLE)
		return V8_ON;
	if (v8_leaf_push(s, w) != 0 || v8_leaf_leave(s, w) != V8_ON)
		return V8_LOST;
	s->here = v8_where(s, s->pc);
	return s->here == V8_IN_NONE ? V8_LEFT : V8_ON;
}
#endif

/* The number of the script at hand; 1: it is not to be read. */
V8_INLINE int v8_script(struct v8_scratch *s, __u64 script)
{
	__u64 id = 0;

	if (script == s->last_script)
		return 0;
	if (v8_tagged(script) && h_read(&id, 8, script - 1 + s->layout.script_id) != 0)
		return 1;
	s->last_script = script;
	s->last_script_id = id;
	return 0;
}

V8_INLINE __u32 v8_function_read(struct v8_scratch *s, __u64 function)
{
	const struct v8_layout *l = &s->layout;
	struct v8_key *k = &s->sighting.key;
	__u32 n = l->shared_flags + 8; /* no more: it may be the last object of its page */
	__u64 shared = 0;

	if (n > sizeof(s->shared) || !v8_tagged(function) ||
	    h_read(&shared, 8, function - 1 + l->function_shared) != 0 || !v8_tagged(shared) ||
	    h_read(s->shared, n, shared - 1) != 0)
		return V8_NO_FUNCTION;
	k->shared = shared;
	k->name = s->shared[l->shared_name >> 3 & 15];
	k->script = s->shared[l->shared_script >> 3 & 15];
	k->counts = s->shared[l->shared_counts >> 3 & 15];
	k->flags = s->shared[l->shared_flags >> 3 & 15];
	if (v8_script(s, k->script) != 0)
		return V8_NO_FUNCTION;
	k->script_id = s->last_script_id;
	s->sighting.function = v8_function_id(s->process.seed, k);
	return s->shared[l->shared_data >> 3 & 15] & 1 ? V8_SCRIPT_FUNCTION : V8_BUILTIN_FUNCTION;
}

/* Reads a function into s->sighting; s->found says what it is. */
V8_INLINE void v8_function(struct v8_scratch *s, __u64 function)
{
	s->sighting.code = s->sighting.bytecode = 0;
	if (function != s->last_function) {
		s->last_function = function;
		s->last_place.function = 0;
		s->last_found = v8_function_read(s, function);
	}
	s->found = s->last_found;
}

/* Which compilation has its object at an address; 0: there is none. */
V8_INLINE __u64 v8_compilation_at(struct v8_scratch *s, __u64 header)
{
	if (header == 0 || h_read(s->near, 8 * V8_HEADER, header) != 0)
		return 0;
	return v8_compilation(s->process.seed, s->near);
}

/* Reports where the function in s->sighting is; the compilation that is known there. */
V8_INLINE __u64 v8_report(struct v8_scratch *s)
{
	struct v8_place place = v8_place_of(&s->sighting);

	if (place.function != s->last_place.function || place.page != s->last_place.page) {
		s->last_compilation = h_report(s);
		s->last_place = place;
	}
	return s->last_compilation;
}

/* Appends the function in s->sighting, as s->kind, at what s->sighting.code says. */
V8_INLINE int v8_push_function(struct v8_scratch *s, struct andiron_walk *w)
{
	__u64 where = s->sighting.code, exact = s->exact, compilation;

	if (s->kind == V8_BUILTIN)
		s->sighting.code = 0; /* of no compiler's */
	compilation = v8_report(s);
	if (s->kind != V8_INTERPRETED && where != V8_NOWHERE)
		where = V8_ADDRESS(where) | compilation << 48 | exact << 63;
	return andiron_walk_push(w, V8_WHAT(s->kind, s->sighting.function), where);
}

/* Whether the frame at fp is an interpreted function's: its slot has an array of bytecodes.
 * Compiled code of the baseline compiler keeps it there, too, but no offset. */
V8_INLINE int v8_interpreted(struct v8_scratch *s, __u64 array, __u64 offset)
{
	__u64 map = 0;
	__u16 type = 0;

	if (!v8_tagged(array) || (offset & 1))
		return 0;
	if (array == s->last_array)
		return 1;
	if (h_read(&map, 8, array - 1) != 0 || !v8_tagged(map) ||
	    h_read(&type, 2, map - 1 + s->layout.map_type) != 0 ||
	    type != s->layout.type_bytecode_array)
		return 0;
	s->last_array = array;
	return 1;
}

#if defined(__TARGET_ARCH_arm64)
V8_INLINE int v8_called_at(struct v8_scratch *s, __u64 pc)
{
	return 1;
}
#else
/* Whether a call stands before pc. */
V8_INLINE int v8_called_at(struct v8_scratch *s, __u64 pc)
{
	const __u8 *b = s->bytes;

	if (h_read(s->bytes, 8, pc - 8) != 0)
		return 0;
	return b[3] == 0xe8 || (b[6] == 0xff && (b[7] & 0xf8) == 0xd0) ||
	       (b[2] == 0xff && b[3] == 0x95) || (b[5] == 0xff && (b[6] & 0xf8) == 0x50) ||
	       (b[2] == 0xff && (b[3] & 0xf8) == 0x90);
}
#endif

/* Where compiled code at fp has called a builtin without a frame: its return address is near sp. */
V8_INLINE void v8_called_from(struct v8_scratch *s)
{
	__u64 pc = 0, none = 1;

	s->sighting.code = V8_NOWHERE;
	if (s->sp + sizeof(s->near) > s->fp || h_read(s->near, sizeof(s->near), s->sp) != 0)
		return;
	for (__u32 i = 0; i < 8; i++) {
		__u64 in = v8_same(v8_where(s, s->near[i]), V8_IN_CODE) & none;

		pc |= s->near[i] & -in;
		none &= ~in;
	}
	if (pc != 0 && v8_called_at(s, pc))
		s->sighting.code = pc;
}

/* A function of a script whose address is not in compiled code: an interpreted one, or one that has
 * called a builtin without a frame. */
V8_INLINE void v8_not_in_code(struct v8_scratch *s)
{
	__u64 array = s->words[(__u32)(s->layout.frame_bytecode + 48) >> 3 & 7];
	__u64 offset = s->words[(__u32)(s->layout.frame_offset + 48) >> 3 & 7];

	/* The slots are there once they have been pushed. */
	if (s->exact && s->sp > s->fp + (__u64)(__s64)s->layout.frame_offset) {
		s->kind = V8_INTERPRETED;
		s->sighting.code = V8_NOWHERE;
	} else if (v8_interpreted(s, array, offset)) {
		s->kind = V8_INTERPRETED;
		s->sighting.code = offset;
		s->sighting.bytecode = array;
	} else {
		v8_called_from(s);
		s->exact = 0;
	}
}

/* Appends a frame that has neither a function nor a kind: by its caller it may have a name. */
V8_INLINE int v8_other_frame(struct v8_scratch *s, struct andiron_walk *w)
{
	return andiron_walk_push(w, V8_WHAT(V8_CALLED, 0), s->words[7]);
}

/* Appends a JavaScript function's frame. */
V8_INLINE int v8_script_frame(struct v8_scratch *s, struct andiron_walk *w)
{
	v8_function(s, s->words[4]);
	if (s->found == V8_NO_FUNCTION)
		return v8_other_frame(s, w);
	s->kind = s->found == V8_BUILTIN_FUNCTION ? V8_BUILTIN : V8_COMPILED;
	s->sighting.code = s->pc;
	if (s->kind == V8_COMPILED && s->here != V8_IN_CODE) {
		if (s->here == V8_IN_BLOB && s->exact &&
		    andiron_walk_push(w, V8_WHAT(V8_STUB, 0), s->pc | V8_EXACT) != 0)
			return 1;
		v8_not_in_code(s);
	}
	return v8_push_function(s, w);
}

/* Appends the frame of code without a function: a builtin, a regular expression, Wasm. */
V8_INLINE int v8_stub_frame(struct v8_scratch *s, struct andiron_walk *w)
{
	__u64 mark = s->words[5] >> 1, exact = s->exact;

	if (s->here == V8_IN_HANDLER)
		return 0;
	if (mark >= V8_MARKS)
		return v8_other_frame(s, w);
	if (s->layout.hidden >> mark & 1)
		return 0;
	return andiron_walk_push(w, V8_WHAT(V8_STUB, mark), s->pc | exact << 63);
}

/* rbx, and r15 … r12. */
V8_INLINE void v8_take_saved(struct andiron_walk *w, __u64 rbx, const __u64 *others)
{
	w->regs[3] = rbx;
	for (__u32 i = 0; i < 4; i++)
		w->regs[15 - i] = others[i];
	w->known |= 1u << 3 | 0xf000;
}

/* To the native code that has entered V8. What it keeps in registers is in V8's entry frame. */
V8_INLINE void v8_leave(struct v8_scratch *s, struct andiron_walk *w)
{
	w->pc = s->pc;
	w->exact = s->exact;
	w->regs[V8_FP] = s->fp;
	w->regs[V8_SP] = s->sp;
	w->known = 1u << V8_SP | 1u << V8_FP;
#if !defined(__TARGET_ARCH_arm64)
	/* Five registers that V8's entry has saved for its caller, and its call of the
	 * collector. */
	if (s->marked == V8_MARK_ENTRY || s->marked == V8_MARK_CONSTRUCT) {
		if (h_read(s->near, 40, s->sp - 16 - 56) == 0)
			v8_take_saved(w, s->near[0], s->near + 1);
	} else if (s->marked == V8_MARK_COLLECTOR) {
		if (h_read(s->near, 40, s->sp - 16 - 48) == 0)
			v8_take_saved(w, s->near[4], s->near);
	}
#endif
}

/* Whether the frame that was left has been called by V8's code for certain. */
V8_INLINE int v8_is_called_by_v8(struct v8_scratch *s)
{
	if (s->words[5] & 1)
		return s->found != V8_NO_FUNCTION;
	return s->marked < V8_MARKS && (s->layout.called_by_v8 >> (s->marked & 63) & 1);
}

V8_INLINE int v8_words(struct v8_scratch *s)
{
	__u64 from = s->fp - 48, at = from - s->stack_at;

	if (s->stack_at == 0 || at > sizeof(s->stack) - sizeof(s->words)) {
		at = 0;
		s->stack_at = h_read(s->stack, sizeof(s->stack), from) == 0 ? from : 0;
		if (s->stack_at == 0) /* near the outer end of the stack */
			return h_read(s->words, sizeof(s->words), from) != 0;
	}
	for (__u32 i = 0; i < 8; i++)
		s->words[i] = s->stack[(at / 8 + i) & (V8_STACK - 1)];
	return 0;
}

/* Appends the frame at hand and moves to the next: V8_ON, V8_LEFT or V8_LOST. */
V8_GLOBAL __u32 v8_step(__u32 cpu)
{
	struct andiron_walk *w = h_walk(cpu);
	struct v8_scratch *s = h_scratch(cpu);
	__u64 fp;
	int full;

	if (!w || !s)
		return V8_LOST;
	fp = s->fp;
	if ((fp & 7) || v8_words(s) != 0)
		return V8_LOST;
	if (s->layout.unknown)
		full = 0; /* the chain holds, and what its frames are called was said once */
	else if (s->words[5] & 1)
		full = v8_script_frame(s, w);
	else
		full = v8_stub_frame(s, w);
	if (full)
		return V8_LOST;
	s->marked = s->words[5] >> 1;
	v8_to(s, s->words[7], s->words[6], fp + 16);
	s->here = v8_where(s, s->pc);
	if (s->here == V8_IN_NONE) {
		if (!v8_is_called_by_v8(s))
			return V8_LEFT;
		s->here = V8_IN_CODE; /* in a region that is not known yet */
	}
	return s->fp > fp ? V8_ON : V8_LOST;
}

V8_INLINE __u32 v8_leave_collector_call(struct v8_scratch *s)
{
	if (h_read(s->near, 16, s->fp) != 0)
		return V8_LOST;
	s->marked = V8_MARK_COLLECTOR;
	v8_to(s, s->near[1], s->near[0], s->fp + 16);
	return V8_LEFT;
}

/* The first frame: what the walk has called us for. */
V8_GLOBAL __u32 v8_begin(__u32 cpu)
{
	struct andiron_walk *w = h_walk(cpu);
	struct v8_scratch *s = h_scratch(cpu);
	const struct v8_process *p;
	const struct v8_layout *l;

	if (!w || !s)
		return V8_LOST;
	p = h_process(w->pid);
	if (!p)
		return V8_LOST;
	h_copy(&s->process, sizeof(s->process), p);
	l = h_layout(s->process.layout);
	if (!l)
		return V8_LOST;
	s->layout = *l;
	s->marked = 0;
	s->found = s->last_found = V8_NO_FUNCTION;
	s->last_function = s->last_script = s->last_script_id = s->last_array = s->stack_at = 0;
	s->last_place.function = 0;
	s->sighting.key.process_id = s->process.process_id;
	s->pc = w->pc;
	s->fp = w->regs[V8_FP];
	s->sp = w->regs[V8_SP];
	s->exact = w->exact;
	s->here = v8_where(s, s->pc);
	if (s->here == V8_IN_COLLECTOR_CALL)
		return v8_leave_collector_call(s);
	if (s->here == V8_IN_NONE || !(w->known >> V8_FP & 1))
		return V8_LOST;
	/* Once in a stack. */
	if (s->layout.unknown && w->switches <= 1 &&
	    andiron_walk_push(w, V8_WHAT(V8_UNKNOWN, 0), 0) != 0)
		return V8_LOST;
	return s->exact ? v8_leaf(s, w) : V8_ON;
}

/* All frames up to the native one. */
V8_INLINE void v8_walk(__u32 cpu, struct andiron_walk *w)
{
	struct v8_scratch *s = h_scratch(cpu);
	__u32 r = v8_begin(cpu);

	for (int i = 0; i < V8_STEPS && r == V8_ON; i++)
		r = v8_step(cpu);
	if (r == V8_LEFT && s)
		v8_leave(s, w);
	else
		w->end = ANDIRON_WALK_GAVE_UP;
}
