/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One frame of the JVM's after the other, until native code or nothing is found. On x86-64 only:
 * elsewhere no JVM is known (session.c), and its frames are walked as native ones. */
#pragma once

#include "jvm/walk/state.h"

#if JVM_X86
#include "jvm/walk/compiled-frames.h"

#define JVM_FRAMES 96 /* in one go; a deeper stack is continued by another call of the program */

/* Where native code called Java: a frame with a frame pointer. */
JVM_INLINE enum jvm_step call_stub_leave(struct andiron_walk *w)
{
	__u64 fp = w->regs[JVM_FP], pair[2];

	if (!JVM_FP_KNOWN(w) || fp < w->regs[JVM_SP] || fp - w->regs[JVM_SP] > 4096 ||
	    h_read(pair, sizeof(pair), fp) != 0)
		return JVM_STEP_LOST;
	return step_to(w, pair[1], fp + 16, pair[0]);
}

/* enum jvm_step. */
JVM_GLOBAL int jvm_frame(__u32 cpu)
{
	struct jvm_state *s = h_state(cpu);
	struct andiron_walk *w = h_walk(cpu);

	if (!s || !w || s->reads > JVM_READS)
		return JVM_STEP_LOST;
	if (heap_of(s, w->pc) < 0)
		return JVM_STEP_NATIVE;
	if (in_interpreter(s, w->pc)) {
		s->no_method_left = 0;
		return jvm_interpreter_step(cpu);
	}
	if (w->pc == s->process.call_stub)
		return call_stub_leave(w);
	if (jvm_blob_find(cpu, w->pc) != 0)
		return JVM_STEP_LOST;
	return s->nmethod ? jvm_nmethod_step(cpu) : jvm_stub_step(cpu);
}
#endif

/* One mark in a stack; then its frames are walked as native ones. */
JVM_INLINE void unknown_mark(struct jvm_state *s, struct andiron_walk *w)
{
	__u64 mark = (__u64)w->slot << 56 | JVM_WHAT(JVM_FRAME_MARK, JVM_MARK_UNKNOWN);
	__u32 at = s->mark_at, n = w->n_words;

	w->native = w->last ? ANDIRON_WALK_REST : ANDIRON_WALK_SHOW;
	if (at < ANDIRON_WALK_WORDS && at < n && w->frames[at] == mark)
		return;
	if (andiron_walk_push(w, mark, 0) != 0)
		w->end = ANDIRON_WALK_GAVE_UP;
	else
		s->mark_at = n;
}

/* The walk from where it stands. s->process is set. */
JVM_INLINE void jvm_walk(__u32 cpu, struct jvm_state *s, struct andiron_walk *w)
{
	s->epoch++;
	s->cpu = cpu;
	s->blob = s->proved = s->site_id = 0;
	s->stub_left = 0;
	s->no_method_left = !w->exact;
	if (w->switches <= s->switches) /* another stack */
		s->reads = 0;
	s->switches = w->switches;
	if (!s->process.known) {
		unknown_mark(s, w);
		return;
	}
#if JVM_X86
	int step = JVM_STEP_ON;
	__u64 sp = w->regs[JVM_SP];

	for (int i = 0; i < JVM_FRAMES && step == JVM_STEP_ON; i++)
		step = jvm_frame(cpu);
	if (step == JVM_STEP_LOST || w->regs[JVM_SP] == sp)
		w->end = ANDIRON_WALK_GAVE_UP;
	else if (w->last)
		w->native = ANDIRON_WALK_REST;
#endif
}
