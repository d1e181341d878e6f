/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The instructions at which a leaf has no whole frame: those of a prologue and of an epilogue. They
 * are told by their bytes, since V8 has no unwind tables for them. A part of walk.h, which includes
 * it. */
#pragma once

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
