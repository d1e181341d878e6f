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

/* Frames of one run: words run out first, so a deep recursion ends in [truncated]. */
#define V8_STEPS (ANDIRON_WALK_WORDS / 2 + 1)
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
	__u64 last_function, last_data, last_script, last_script_id, last_array, last_compilation;
	__u64 last_start, last_size; /* of the code that has this compilation */
	struct v8_place last_place;
	__u32 last_found, reserved;
	__u64 now_ns; /* of this walk, 0: nobody has asked */
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

#include "v8/leaf.h"

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
	s->last_data = s->shared[l->shared_data >> 3 & 15];
	return s->last_data & 1 ? V8_SCRIPT_FUNCTION : V8_BUILTIN_FUNCTION;
}

/* Reads a function into s->sighting; s->found says what it is. */
V8_INLINE void v8_function(struct v8_scratch *s, __u64 function)
{
	s->sighting.code = s->sighting.bytecode = s->sighting.instance = 0;
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

/* The compilation of what is known of a place: of all of it, where no code is known. */
V8_INLINE __u64 v8_known(struct v8_scratch *s, const struct v8_place_state *state)
{
	s->last_start = state->start;
	s->last_size = (state->end - state->start) | -(__u64)(state->header == 0);
	return state->compilation;
}

/* Reports where the function in s->sighting is; the compilation that is known there. A recursion
 * may run in both codes of a place. */
V8_INLINE __u64 v8_report(struct v8_scratch *s)
{
	struct v8_place place = v8_place_of(&s->sighting);

	if (place.function != s->last_place.function || place.page != s->last_place.page ||
	    s->sighting.code - s->last_start > s->last_size) {
		s->last_start = s->sighting.code;
		s->last_size = 0;
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

/* Whether the frame at fp is an interpreted function's: its slot has an array of bytecodes. Mostly
 * it is what the function has as its code, and need not be read. Compiled code of the baseline
 * compiler keeps it there, too, but no offset. */
V8_INLINE int v8_interpreted(struct v8_scratch *s, __u64 array, __u64 offset)
{
	__u64 map = 0;
	__u16 type = 0;

	if (!v8_tagged(array) || (offset & 1))
		return 0;
	if (array == s->last_data || array == s->last_array)
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

/* Appends a frame of Wasm code. Its slot behind the kind has the instance. */
V8_INLINE int v8_wasm_frame(struct v8_scratch *s, struct andiron_walk *w)
{
	struct v8_key *k = &s->sighting.key;

	s->last_function = 0; /* the key is another's now */
	k->shared = s->sighting.instance = s->words[4];
	k->name = k->script = k->script_id = k->counts = k->flags = 0;
	s->sighting.function = v8_function_id(s->process.seed, k);
	s->sighting.code = s->pc;
	s->sighting.bytecode = 0;
	s->kind = V8_WASM;
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
	if ((s->layout.wasm >> mark & 1) && s->here == V8_IN_CODE && v8_tagged(s->words[4]))
		return v8_wasm_frame(s, w);
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
	s->last_place.function = s->now_ns = 0;
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

	for (__u32 i = 0; i < V8_STEPS && r == V8_ON; i++)
		r = v8_step(cpu);
	if (r == V8_LEFT && s)
		v8_leave(s, w);
	else
		w->end = ANDIRON_WALK_GAVE_UP;
}
