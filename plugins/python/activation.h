/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One activation of the loop: which state of the thread it belongs to, where its frames begin and
 * end, and how its machine frame is left. Included once, as frames.h is, whose head says what must
 * be defined before. */
#pragma once

#include "python/awaiters.h"
#include "python/frames.h"

/* The frame in s->stack, of a version that has one for each activation. */
P_INLINE void take_object(struct andiron_walk *w, const struct python_layout *l,
			  struct python_scratch *s)
{
	s->run.found = 1;
	if (read_frame(l, s) != 0) {
		s->run.unreadable = 1;
		return;
	}
	s->run.frame = frame_word(s, l->frame_previous);
	push_frame(w, l, s);
}

/* Whether the thread's current frame belongs to an activation further in, which has given up its
 * CFrame, or its mark of being executed, and is about to return. */
P_INLINE int is_leaving(const struct python_layout *l, struct python_scratch *s)
{
	__u8 state = 0;

	if (s->run.frame == 0)
		return 0;
	return h_read(&state, 1, s->run.frame + l->frame_state) == 0 && state != l->running;
}

/* To the activation's CFrame, and to its innermost frame; 0: it has none. */
P_INLINE int find_cframe(__u32 cpu, const struct python_layout *l, struct python_scratch *s)
{
	__u64 words[2];

	for (__u32 i = 0; i < P_ANCHORS && python_step_anchor(cpu) == 0; i++)
		;
	if (s->run.anchor == 0 || s->run.anchor >= s->run.cfa || s->run.anchor < s->run.sp)
		return 0;
	if (l->kind != PYTHON_CFRAMES) {
		s->run.anchor = read_word(s->run.anchor + l->cframe_previous);
		return 1;
	}
	/* Its frame, and behind that the CFrame before. */
	if (h_read(words, sizeof(words), s->run.anchor + l->cframe_frame) != 0)
		return 0;
	s->run.frame = words[0];
	s->run.anchor = words[1];
	return 1;
}

/* The outermost frame of the activation was not met: it has more frames than a call reads, or none
 * of its own. To 3.12 its CFrame has proved whose it is. From 3.13 on that frame would have, so the
 * innermost activation's frames are taken if the thread has no other state, and others' are not. */
P_INLINE void leave_open(const struct python_layout *l, struct python_scratch *s,
			 const struct python_thread *t)
{
	if (s->run.n_frames >= P_FRAMES)
		s->run.deep = l->kind == PYTHON_CFRAMES || t->cursor.n_words == 0;
	else if (l->kind == PYTHON_CFRAMES)
		s->run.unreadable = 1;
	s->run.found = l->kind == PYTHON_CFRAMES;
}

/* The frames of the activation, if they are those of this state of the thread. 0 with `deep`: they
 * have been written, and are if there is no other state. */
P_GLOBAL int python_try(__u32 cpu, __u64 state)
{
	struct python_scratch *s = h_scratch();
	struct andiron_walk *w = h_walk(cpu);
	struct python_thread *t;
	const struct python_layout *l;

	if (!s || !w)
		return 0;
	t = &s->thread;
	l = h_layout(s->run.layout);
	if (!l)
		return 0;
	w->n_words = s->run.n_words;
	s->run.anchor = s->run.frame = s->run.coroutine = 0;
	s->run.deep = s->run.n_frames = 0;
	if (t->cursor.n_words != 0 && t->cursor.state == state) {
		s->run.frame = t->cursor.next;
		s->run.anchor = t->cursor.anchor;
	} else {
		if (l->kind != PYTHON_CFRAMES)
			s->run.frame = read_word(state + l->thread_frame);
		if (l->thread_top != PYTHON_NO_FIELD)
			s->run.anchor = read_word(state + l->thread_top);
		if (l->kind <= PYTHON_COUNTED && w->switches > 1 && is_leaving(l, s))
			s->run.frame = read_word(s->run.frame + l->frame_previous);
	}
	if ((l->kind == PYTHON_CFRAMES || l->kind == PYTHON_COUNTED) && !find_cframe(cpu, l, s))
		return 0;
	if (l->kind <= PYTHON_COUNTED) {
		if (s->run.frame != 0)
			take_object(w, l, s);
	} else {
		for (__u32 i = 0; i < P_FRAMES / P_STEP && python_step_frames(cpu) == 0; i++)
			;
		if (!s->run.found)
			leave_open(l, s, t);
	}
	if (!s->run.found && !s->run.deep) {
		w->n_words = s->run.n_words;
		return 0;
	}
	t->cursor.state = state;
	t->cursor.next = s->run.frame;
	t->cursor.anchor = s->run.anchor;
	return s->run.found != 0;
}

P_INLINE int is_own(__u64 id, __u64 pointer)
{
#if defined(__TARGET_ARCH_arm64)
	return pointer - id < P_TLS_BELOW;
#else
	return id == pointer;
#endif
}

/* One thread of an interpreter's list, until one is the current thread's and has not been tried. */
P_GLOBAL int python_step_thread(__u32 cpu)
{
	struct python_scratch *s = h_scratch();
	struct python_thread *t;
	const struct python_layout *l;
	__u64 thread;

	if (!s)
		return 1;
	t = &s->thread;
	l = h_layout(s->run.layout);
	if (!l || s->run.interp == 0)
		return 1;
	thread = s->run.thread;
	if (thread == 0) {
		s->run.interp = read_word(s->run.interp + l->interp_next);
		if (s->run.interp != 0)
			s->run.thread = read_word(s->run.interp + l->interp_threads);
		return 0;
	}
	if (is_own(read_word(thread + l->thread_id), s->run.pointer) && thread != t->states[0] &&
	    thread != t->states[1])
		return 1;
	s->run.thread = read_word(thread + l->thread_next);
	return 0;
}

/* From where the last search ended, or from the start. */
P_INLINE void search_from(const struct python_layout *l, struct python_scratch *s,
			  const struct python_thread *t)
{
	s->run.interp = t->interp;
	s->run.thread = t->next;
	if (s->run.interp != 0)
		return;
	s->run.interp = read_word(s->run.runtime + l->runtime_head);
	if (l->runtime_current && s->run.interp != 0)
		s->run.interp = read_word(s->run.interp + l->thread_interp);
	if (s->run.interp != 0)
		s->run.thread = read_word(s->run.interp + l->interp_threads);
}

/* Searches a state of this thread that has the activation's frames. A long list is searched in
 * parts, one a call, so that the cost of a call is bounded. */
P_GLOBAL int python_search(void)
{
	struct python_scratch *s = h_scratch();
	struct python_thread *t;
	const struct python_layout *l;
	__u64 found;

	if (!s)
		return 0;
	t = &s->thread;
	l = h_layout(s->run.layout);
	if (!l)
		return 0;
	search_from(l, s, t);
	for (__u32 i = 0; i < P_SEARCH && python_step_thread(0) == 0; i++)
		;
	found = s->run.thread;
	t->interp = s->run.interp;
	t->next = found;
	if (s->run.interp == 0 || found == 0 ||
	    !is_own(read_word(found + l->thread_id), s->run.pointer))
		return 0;
	t->interp = t->next = 0;
	t->states[1] = t->states[0];
	t->states[0] = found;
	s->run.deep = 0;
	return 1;
}

P_INLINE void put_first(struct python_thread *t, __u64 state)
{
	if (state == t->states[0])
		return;
	t->states[1] = t->states[0];
	t->states[0] = state;
}

/* A thread may have several states, one in each interpreter. Before there were anchors, order alone
 * tells whose an activation is: the innermost one's is the state that holds the GIL, if any does,
 * and the others' is the one before until it has no more frames. */
P_INLINE void order_states(const struct python_layout *l, const struct python_scratch *s,
			   struct python_thread *t)
{
	__u64 state;

	if (l->kind != PYTHON_OBJECTS)
		return;
	if (t->cursor.n_words != 0) {
		put_first(t, t->cursor.state);
		return;
	}
	state = l->runtime_gil_state ? read_word(s->run.runtime + l->runtime_gil_state) : 0;
	if (state != 0 && is_own(read_word(state + l->thread_id), s->run.pointer))
		put_first(t, state);
}

/* Forgets a state that is the thread's no longer, and tries the others. */
P_GLOBAL int python_known(__u32 cpu)
{
	struct python_scratch *s = h_scratch();
	struct python_thread *t;
	const struct python_layout *l;

	if (!s)
		return 0;
	t = &s->thread;
	l = h_layout(s->run.layout);
	if (!l)
		return 0;
	for (__u32 i = 0; i < 2; i++)
		if (t->states[i] != 0 &&
		    !is_own(read_word(t->states[i] + l->thread_id), s->run.pointer))
			t->states[i] = 0;
	order_states(l, s, t);
	if (t->states[0] != 0 && python_try(cpu, t->states[0]))
		return 1;
	if (t->states[1] == 0 || !python_try(cpu, t->states[1]))
		return 0;
	put_first(t, t->states[1]);
	return 1;
}

P_INLINE int is_whole(const struct python_layout *l, __u64 at)
{
	for (__u32 i = 0; i < PYTHON_BODIES && i < l->n_bodies; i++)
		if (at >= l->bodies[i].from && at < l->bodies[i].to)
			return 1;
	return 0;
}

/* Reads the pair of words that ends at `n`; 0: there is none. */
P_INLINE int pair_before(const struct andiron_walk *w, __u32 n, __u64 *ret)
{
	__u32 at = opaque(n - 2);

	if (at > ANDIRON_WALK_WORDS - 2)
		return 0;
	ret[0] = w->frames[at];
	ret[1] = w->frames[at + 1];
	return 1;
}

/* Whether frames have been written in this walk, where the last call for this thread ended. */
P_INLINE void check_cursor(const struct andiron_walk *w, struct python_thread *t)
{
	__u32 n = t->cursor.n_words;
	__u64 last[2];

	if (n > w->n_words || w->regs[P_SP] <= t->cursor.sp || !pair_before(w, n, last) ||
	    last[0] != t->cursor.words[0] || last[1] != t->cursor.words[1])
		t->cursor.n_words = 0;
}

/* For the next call of this walk. */
P_INLINE void save_cursor(const struct andiron_walk *w, struct python_thread *t)
{
	__u32 n = w->n_words;

	t->cursor.n_words = pair_before(w, n, t->cursor.words) ? n : 0;
	t->cursor.sp = w->regs[P_SP];
}

/* One marker in a stack; then the loop's own frame is shown. */
P_INLINE void mark(struct andiron_walk *w, struct python_thread *t, __u64 marker)
{
	w->native = ANDIRON_WALK_SHOW;
	if (t && t->cursor.n_words != 0)
		return;
	if (andiron_walk_push(w, PYTHON_WHAT_MARKER, marker) != 0)
		w->end = ANDIRON_WALK_GAVE_UP;
	else if (t)
		save_cursor(w, t);
}

/* The frames of the activation, and how its machine frame is left. */
P_INLINE void walk_activation(__u32 cpu, struct andiron_walk *w, struct python_thread *t,
			      struct python_scratch *s)
{
	__u32 had = t->cursor.n_words, lacks = PYTHON_MARKER_FRAME;

	if (!python_known(cpu) && !python_search() && !s->run.deep) {
		if (t->states[0] == 0 && t->states[1] == 0)
			mark(w, t, PYTHON_MARKER_THREAD);
		else if (!w->exact)
			w->native = ANDIRON_WALK_SHOW;
		return;
	}
	if (!s->run.found && !s->run.deep && !python_try(cpu, t->states[0]) && !s->run.deep) {
		if (!w->exact)
			w->native = ANDIRON_WALK_SHOW;
		return;
	}
	if (s->run.deep)
		lacks = PYTHON_MARKER_DEPTH;
	if (s->run.asyncio && s->run.coroutine != 0 && !s->run.unreadable && !s->run.deep)
		python_await(cpu, t->cursor.state);
	if ((s->run.unreadable || s->run.deep) &&
	    andiron_walk_push(w, PYTHON_WHAT_MARKER, lacks) != 0)
		w->end = ANDIRON_WALK_GAVE_UP;
	if (w->n_words + 2 > ANDIRON_WALK_WORDS)
		w->end = ANDIRON_WALK_GAVE_UP;
	if (w->n_words > s->run.n_words || had)
		save_cursor(w, t);
}

/* The last call for this stack: the frames of all outer activations stand together, then a mark,
 * and native frames follow to the thread's entry, the loop's own among them. To 3.10 each call is
 * an activation. */
P_GLOBAL int python_rest(__u32 cpu)
{
	struct python_scratch *s = h_scratch();
	struct andiron_walk *w = h_walk(cpu);

	if (!s || !w)
		return 0;
	w->native = ANDIRON_WALK_REST;
	if (!s->run.found || s->run.unreadable || s->run.deep || s->run.frame == 0)
		return 0;
	for (__u32 i = 0; i < P_FRAMES && python_step_rest(cpu) == 0; i++)
		;
	if (andiron_walk_push(w, PYTHON_WHAT_MARKER,
			      s->run.unreadable ? PYTHON_MARKER_FRAME : PYTHON_MARKER_ORDER) != 0)
		w->end = ANDIRON_WALK_GAVE_UP;
	return 0;
}

#if defined(__TARGET_ARCH_arm64)
P_INLINE void leave_other(struct andiron_walk *w)
{
	(void)w;
}
#else
#define P_CALL_ADD 0x00c308c48348d1ffull /* call *%rcx; add $8,%rsp; ret */
#define P_CALL_POP 0xc35dd1ffull         /* call *%rcx; pop %rbp; ret */
#define P_SUB_CALL 0xd1ff08ec8348ull     /* sub $8,%rsp; call *%rcx */
#define P_PUSH_MOV 0xe5894855ull         /* push %rbp; mov %rsp,%rbp */
#define P_ENDBR    0xfa1e0ff3ull         /* endbr64, at the beginning of some */

/* Code that no activation stands in: a trampoline (trampolines.h), or an end of the loop. A
 * trampoline has one word on the stack from its second instruction on, in some versions the frame
 * pointer. Its last instructions mean the same in any function. */
P_INLINE void leave_other(struct andiron_walk *w)
{
	__u64 code = read_word(w->pc - (w->exact ? 0 : 2)), sp = w->regs[P_SP];
	bool pops = (__u32)code == P_CALL_POP ||
		    (w->exact && ((code & 0xffff) == P_CALL_POP >> 16 ||
				  code << 8 == (P_CALL_POP << 24 | P_PUSH_MOV >> 8) << 8));
	bool adds = code << 8 == P_CALL_ADD << 8 ||
		    (w->exact && code << 24 == P_CALL_ADD >> 16 << 24);
	bool begins = w->exact && (code << 16 == P_SUB_CALL << 16 || (__u32)code == P_PUSH_MOV ||
				   code == (P_SUB_CALL << 32 | P_ENDBR) ||
				   code == (P_PUSH_MOV << 32 | P_ENDBR) || (code & 0xff) == 0xc3);
	__u64 back;

	if (pops || adds)
		sp += 8;
	else if (!begins)
		return;
	back = read_word(sp);
	if (back == 0)
		return;
	if (pops) {
		w->regs[P_FP] = read_word(sp - 8);
		w->known |= 1u << P_FP;
	}
	w->regs[P_SP] = sp + 8;
	w->pc = back;
	w->exact = w->native = 0;
}
#endif

/* `known`: there is room for what is known of the thread. */
P_INLINE void walk_thread(__u32 cpu, struct andiron_walk *w, struct python_scratch *s, bool known)
{
	struct python_thread *t = known ? &s->thread : NULL;
	struct python_proc *p = h_proc(w->pid);
	const struct python_layout *l = p ? h_layout(p->layout) : NULL;

	if (!p || !l)
		return;
	if (t)
		check_cursor(w, t);
	if (!t || l->kind == PYTHON_UNKNOWN) {
		mark(w, t, PYTHON_MARKER_VERSION);
		w->native = w->last ? ANDIRON_WALK_REST : ANDIRON_WALK_SHOW;
		return;
	}
	if (l->cfa_fp && !(w->known >> P_FP & 1)) {
		mark(w, t, PYTHON_MARKER_FRAME);
		return;
	}
	w->native = ANDIRON_WALK_LEAVE;
	if (!is_whole(l, (w->exact ? w->pc : w->pc - 1) - p->bias)) {
		leave_other(w);
		return;
	}
	s->run = (struct python_run){
		.sp = w->regs[P_SP],
		.cfa = w->regs[l->cfa_fp ? P_FP : P_SP] + l->cfa_offset,
		.pointer = h_thread_pointer(),
		.n_words = w->n_words,
		.layout = p->layout,
		.pid = w->pid,
		.salt = p->salt,
		.runtime = p->runtime,
		.code_type = p->code_type,
		.asyncio = p->asyncio,
	};
	walk_activation(cpu, w, t, s);
	if (w->last && w->end == 0)
		python_rest(cpu);
}

P_INLINE void walk_python(__u32 cpu, struct andiron_walk *w)
{
	struct python_thread *t = h_thread();
	struct python_scratch *s = h_scratch();

	w->native = ANDIRON_WALK_SHOW;
	if (!s)
		return;
	if (t)
		s->thread = *t;
	walk_thread(cpu, w, s, t != NULL);
	if (t)
		*t = s->thread;
}
