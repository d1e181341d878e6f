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
 * h_read, h_walk, h_scratch, h_process, h_layout, h_number. */
#pragma once

#include <andiron/bpf/walk.h>

#include "shared.h"

#if defined(__TARGET_ARCH_arm64)
#define V8_SP 31
#define V8_FP 29
#else
#define V8_SP 7
#define V8_FP 6
#endif

#define V8_SHARED 9   /* words of a SharedFunctionInfo */
#define V8_STEPS  500 /* frames of one run: 1,024 words are not more than 512 */

#define V8_ON   0u /* there is another frame of V8 */
#define V8_LEFT 1u /* the next frame is native */
#define V8_LOST 2u

#define V8_MARK_ENTRY     1u
#define V8_MARK_CONSTRUCT 2u
#define V8_MARK_SPILL     64u /* none of V8's */

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
	__u64 words[8];   /* fp - 48 … fp + 8 */
	__u64 shared[16]; /* a SharedFunctionInfo, of which V8_SHARED words are read */
	__u64 near[8];    /* of the stack */
	__u8 bytes[64] __attribute__((aligned(8))); /* of code: from pc - 8 on */
	struct v8_met met;
};

/* What v8_function has found. */
#define V8_NO_FUNCTION 0u
#define V8_SCRIPT      1u
#define V8_BROUGHT     2u /* V8 itself brings it */

#define V8_IN_NONE    0u
#define V8_IN_CODE    1u /* compiled, or of a regular expression or Wasm */
#define V8_IN_BLOB    2u /* a builtin */
#define V8_IN_HANDLER 3u /* a builtin that runs in an interpreted function's frame */

/* Without a branch, as all that follows: the verifier looks at each way through a program. The
 * difference of two addresses has its highest bit set if it is negative. */
V8_INLINE __u64 v8_in(const struct v8_range *r, __u32 n, __u64 pc)
{
	__u64 in = 0;

	pc &= ~(1ull << 63);
	for (__u32 i = 0; i < n; i++)
		in |= ~((pc - r[i].from) | (r[i].to - 1 - pc));
	return in >> 63;
}

V8_INLINE __u32 v8_where(const struct v8_process *p, __u64 pc)
{
	__u64 blob = v8_in(p->blobs, V8_BLOBS, pc), handler = v8_in(p->handlers, V8_BLOBS, pc);
	__u64 code = v8_in(p->code, V8_RANGES, pc);

	/* What the file has wins over the region around it. */
	return (__u32)(blob * (V8_IN_BLOB + handler) + (blob ^ 1) * code * V8_IN_CODE);
}

/* 1: the numbers are the same, else 0. */
V8_INLINE __u32 v8_same(__u32 a, __u32 b)
{
	__u32 x = a ^ b;

	return ~(x | -x) >> 31;
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

/* Bytes from an instruction on, and what they mean if those before it fit, too. */
struct v8_pattern {
	__s32 at; /* of the first of four bytes, from pc */
	__u32 bytes, mask, state;
};

/* The last one that fits counts. */
#define V8_PATTERNS                                                                                \
	{                                                                                          \
		{0, 0x000000c3, 0x000000ff, V8_RETURNING},          /* ret */                      \
			{0, 0x000000c2, 0x000000ff, V8_RETURNING},  /* ret $… */                 \
			{-1, 0x0000595d, 0x0000ffff, V8_RETURNING}, /* pop %rbp | pop %rcx */      \
			{-1, 0x648d4859, 0xffffffff, V8_IN_RCX},    /* pop %rcx | lea …,%rsp */  \
			{0, 0x0000c351, 0x0000ffff, V8_IN_RCX},     /* push %rcx; ret */           \
			{-1, 0x005a415d, 0x00ffffff, V8_RETURNING}, /* pop %rbp | pop %r10 */      \
			{-1, 0x648d485a, 0xffffffff, V8_IN_R10},    /* … %r10 | lea …,%rsp */  \
			{0, 0x00c35241, 0x00ffffff, V8_IN_R10},     /* push %r10; ret */           \
			{-4, V8_PROLOGUE, 0xffffffff, V8_BARE},                                    \
			{-1, V8_PROLOGUE, 0xffffffff, V8_PUSHED},                                  \
			{0, V8_PROLOGUE, 0xffffffff, V8_BEFORE},                                   \
	}

/* Which instruction of a prologue or an epilogue execution stands at. */
V8_INLINE void v8_leaf_state(struct v8_scratch *s)
{
	const struct v8_pattern patterns[] = V8_PATTERNS;
	const __u8 *b = s->bytes + 8;
	__u32 state = V8_WHOLE, ahead = 0;

	for (__u32 i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		__u32 fits =
			v8_same(h_u32(b + patterns[i].at) & patterns[i].mask, patterns[i].bytes);

		state = fits * patterns[i].state + (fits ^ 1) * state;
	}
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
	if (s->found != V8_SCRIPT)
		return 0;
	s->kind = V8_COMPILED;
	s->met.code = s->pc;
	return v8_push_function(s, w);
}

V8_INLINE int v8_called_at(struct v8_scratch *s, __u64 pc);

/* A prologue ahead is this function's if what is at sp was put there by a call. In code of regular
 * expressions it may be that of a routine of theirs. */
V8_INLINE void v8_leaf_ahead(struct v8_scratch *s)
{
	s->state = V8_WHOLE;
	if (h_read(s->near, 8, s->sp) == 0 && v8_where(&s->process, s->near[0]) != V8_IN_NONE &&
	    v8_called_at(s, s->near[0]))
		s->state = V8_BEFORE;
}

/* The code around pc; 1: it is not to be read. It may be the first or the last of its region. */
V8_INLINE int v8_leaf_read(struct v8_scratch *s)
{
	__u64 *bytes = (__u64 *)s->bytes;

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
	s->here = v8_where(&s->process, s->pc);
	return s->here == V8_IN_NONE ? V8_LEFT : V8_ON;
}
#endif

/* Reads a function into s->met.key; s->found says what it is. */
V8_INLINE void v8_function(struct v8_scratch *s, __u64 function)
{
	const struct v8_layout *l = &s->layout;
	struct v8_key *k = &s->met.key;
	__u64 shared = 0, id = 0;

	s->found = V8_NO_FUNCTION;
	s->met.code = s->met.bytecode = 0;
	if (!v8_tagged(function) || h_read(&shared, 8, function - 1 + l->function_shared) != 0 ||
	    !v8_tagged(shared) || h_read(s->shared, 8 * V8_SHARED, shared - 1) != 0)
		return;
	k->shared = shared;
	k->name = s->shared[l->shared_name >> 3 & 15];
	k->script = s->shared[l->shared_script >> 3 & 15];
	k->counts = s->shared[l->shared_counts >> 3 & 15];
	k->flags = s->shared[l->shared_flags >> 3 & 15];
	if (v8_tagged(k->script) && h_read(&id, 8, k->script - 1 + l->script_id) != 0)
		return;
	k->script_id = id;
	s->found = s->shared[l->shared_data >> 3 & 15] & 1 ? V8_SCRIPT : V8_BROUGHT;
}

/* Appends the function in s->met, as s->kind, at what s->met.code says. */
V8_INLINE int v8_push_function(struct v8_scratch *s, struct andiron_walk *w)
{
	__u64 number = h_number(&s->met), where = s->met.code, exact = s->exact;

	if (s->kind != V8_INTERPRETED && where != V8_NOWHERE)
		where |= exact << 63;
	return andiron_walk_push(w, V8_WHAT(s->kind, number), where);
}

/* Whether the frame at fp is an interpreted function's: its slot has an array of bytecodes.
 * Compiled code of the baseline compiler keeps it there, too, but no offset. */
V8_INLINE int v8_interpreted(struct v8_scratch *s, __u64 array, __u64 offset)
{
	__u64 map = 0;
	__u16 type = 0;

	if (!v8_tagged(array) || (offset & 1) || h_read(&map, 8, array - 1) != 0 ||
	    !v8_tagged(map) || h_read(&type, 2, map - 1 + s->layout.map_type) != 0)
		return 0;
	return type == s->layout.type_bytecode_array;
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

/* Where compiled code at fp has called a builtin that has no frame: the return address is near
 * sp. */
V8_INLINE void v8_called_from(struct v8_scratch *s)
{
	__u64 pc = 0, none = 1;

	s->met.code = V8_NOWHERE;
	if (s->sp + sizeof(s->near) > s->fp || h_read(s->near, sizeof(s->near), s->sp) != 0)
		return;
	for (__u32 i = 0; i < 8; i++) {
		__u64 in = v8_in(s->process.code, V8_RANGES, s->near[i]) & none;

		pc |= s->near[i] & -in;
		none &= ~in;
	}
	if (pc != 0 && v8_called_at(s, pc))
		s->met.code = pc;
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
		s->met.code = V8_NOWHERE;
	} else if (v8_interpreted(s, array, offset)) {
		s->kind = V8_INTERPRETED;
		s->met.code = offset;
		s->met.bytecode = array;
	} else {
		v8_called_from(s);
		s->exact = 0;
	}
}

/* Appends a JavaScript function's frame. */
V8_INLINE int v8_script_frame(struct v8_scratch *s, struct andiron_walk *w)
{
	v8_function(s, s->words[4]);
	if (s->found == V8_NO_FUNCTION)
		return andiron_walk_push(w, V8_WHAT(V8_STUB, V8_MARKS), s->pc);
	s->kind = s->found == V8_BROUGHT ? V8_BUILTIN : V8_COMPILED;
	s->met.code = s->pc;
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
		mark = 0;
	else if (s->layout.quiet >> mark & 1)
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
	} else if (s->marked == V8_MARK_SPILL) {
		if (h_read(s->near, 40, s->sp - 16 - 48) == 0)
			v8_take_saved(w, s->near[4], s->near);
	}
#endif
}

/* Whether the frame that was left has been called by V8's code for certain. */
V8_INLINE int v8_is_inner(struct v8_scratch *s)
{
	if (s->words[5] & 1)
		return s->found != V8_NO_FUNCTION;
	return s->marked < V8_MARKS && (s->layout.inner >> (s->marked & 63) & 1);
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
	if ((fp & 7) || h_read(s->words, sizeof(s->words), fp - 48) != 0)
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
	s->here = v8_where(&s->process, s->pc);
	if (s->here == V8_IN_NONE) {
		if (!v8_is_inner(s))
			return V8_LEFT;
		s->here = V8_IN_CODE; /* in a region that is not known yet */
	}
	return s->fp > fp ? V8_ON : V8_LOST;
}

V8_INLINE __u32 v8_leave_spill(struct v8_scratch *s)
{
	if (h_read(s->near, 16, s->fp) != 0)
		return V8_LOST;
	s->marked = V8_MARK_SPILL;
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
	s->process = *p;
	l = h_layout(s->process.layout);
	if (!l)
		return V8_LOST;
	s->layout = *l;
	s->marked = 0;
	s->met.key.generation = s->process.generation;
	s->met.key.pid = w->pid;
	s->pc = w->pc;
	s->fp = w->regs[V8_FP];
	s->sp = w->regs[V8_SP];
	s->exact = w->exact;
	if (v8_in(&s->process.spill, 1, s->pc))
		return v8_leave_spill(s);
	s->here = v8_where(&s->process, s->pc);
	if (s->here == V8_IN_NONE || !(w->known >> V8_FP & 1))
		return V8_LOST;
	if (s->layout.unknown && andiron_walk_push(w, V8_WHAT(V8_UNKNOWN, 0), 0) != 0)
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
