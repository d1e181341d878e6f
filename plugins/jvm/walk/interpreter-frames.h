/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Frames of the interpreter. They keep a frame pointer; below it stand the caller's stack pointer,
 * the Method and the bytecode pointer. The innermost one may be under construction, or gone
 * already: where the thread stands in a method's entry or end, the plugin's tables say (jvm_entry,
 * jvm_exit). */
#pragma once

#include "jvm/walk/callers.h"

/* Words read: from the frame pointer - 8 to + 1. */
#define JVM_FRAME_WORDS 10
#define JVM_FRAME_BELOW 8

#define JVM_ALL_KNOWN(w) (((w)->known & 0xffff) == 0xffff)
#define JVM_FP_KNOWN(w)  ((w)->known >> JVM_FP & 1)

/* Appends a frame of s->method, at a bytecode pointer. Not 0: it is no method's. */
JVM_INLINE int interpreted_push(__u32 cpu, struct jvm_state *s, struct andiron_walk *w, __u64 bcp)
{
	__u64 bci = bcp - s->bytecode;

	if (bcp == 0 || s->bytecode_size == 0)
		bci = JVM_BCI_NONE;
	else if (bci >= s->bytecode_size)
		return 1;
	return andiron_walk_push(w, JVM_WHAT(JVM_FRAME_METHOD, bci & 0xffff), s->id);
}

/* A frame whose entry is under way: it has no frame pointer yet. */
JVM_INLINE enum jvm_step entry_leave(__u32 cpu, struct jvm_state *s, struct andiron_walk *w,
				     const struct jvm_entry *e, __u32 at)
{
	__u64 sp = w->regs[JVM_SP], ret;

	if (e->popped == 0 || at < e->popped || at == e->pushed + 1) {
		ret = word_at(sp);
		/* What computes without a frame may have put more on the stack. */
		if (e->popped == 0 && !returns(s, ret))
			ret = word_at(w->regs[JVM_R13] - 8);
	} else if (at <= e->pushed) {
		ret = w->regs[JVM_RAX];
	} else {
		ret = word_at(sp + 8);
	}
	/* It may be the caller's already, or a word above: a method handle's last argument. */
	w->regs[JVM_SP] -= 16;
	s->method = w->regs[JVM_RBX];
	if (!returns(s, ret) || jvm_method_know(cpu) != 0 ||
	    interpreted_push(cpu, s, w, s->bytecode_size ? s->bytecode : 0) != 0)
		return JVM_STEP_LOST;
	return step_to(w, ret, w->regs[JVM_R13], w->regs[JVM_FP]);
}

/* An entry that has called a stub, and makes no frame. It may have aligned the stack. */
JVM_INLINE enum jvm_step frameless_leave(struct jvm_state *s, struct andiron_walk *w)
{
	__u64 sp = w->regs[JVM_SP], ret = word_at(sp);

	if (!returns(s, ret)) {
		sp += 8;
		ret = word_at(sp);
	}
	if (!returns(s, ret))
		return JVM_STEP_LOST;
	return step_to(w, ret, sp + 8, w->regs[JVM_FP]);
}

/* A frame that is gone: the thread is about to return. */
JVM_INLINE enum jvm_step exit_leave(struct jvm_state *s, struct andiron_walk *w,
				    const struct jvm_exit *e, __u32 at)
{
	__u64 sp = w->regs[e->sp & 15];
	__u64 ret = at < e->popped ? word_at(w->regs[JVM_SP]) : w->regs[e->ret & 15];

	if (!returns(s, ret))
		return JVM_STEP_LOST;
	if (at >= e->moved)
		sp = w->regs[JVM_SP];
	w->regs[JVM_SP] -= 8; /* it may be the caller's already */
	return step_to(w, ret, sp, w->regs[JVM_FP]);
}

/* The frame that the frame pointer leads to. */
JVM_INLINE enum jvm_step interpreted_leave(__u32 cpu, struct jvm_state *s, struct andiron_walk *w)
{
	__u64 fp = w->regs[JVM_FP], sp = w->regs[JVM_SP], bcp, sender, ret, caller_fp;
	int leaf = w->exact && JVM_ALL_KNOWN(w);
	__u32 method = JVM_FRAME_BELOW + s->process.at.frame_method;
	__u32 bytecode = JVM_FRAME_BELOW + s->process.at.frame_bcp;

	if (!JVM_FP_KNOWN(w) || fp < sp || fp - sp > 1u << 24 || fp & 7 ||
	    h_read(s->words, 8 * JVM_FRAME_WORDS, fp - 8 * JVM_FRAME_BELOW) != 0)
		return JVM_STEP_LOST;
	caller_fp = s->words[JVM_FRAME_BELOW];
	ret = s->words[JVM_FRAME_BELOW + 1];
	sender = s->words[JVM_FRAME_BELOW - 1];
	s->method = s->words[method & 15];
	bcp = s->words[bytecode & 15];
	/* What is not pushed yet is in registers. */
	if (leaf && sp > fp - 8)
		sender = w->regs[JVM_R13];
	if (leaf && sp > fp - 8ull * (JVM_FRAME_BELOW - (method & 15)))
		s->method = w->regs[JVM_RBX];
	if (jvm_method_know(cpu) != 0)
		return JVM_STEP_LOST;
	if (leaf && sp > fp - 8ull * (JVM_FRAME_BELOW - (bytecode & 15)))
		bcp = s->bytecode_size ? s->bytecode : 0;
	if (leaf && w->regs[JVM_R13] - s->bytecode < s->bytecode_size)
		bcp = w->regs[JVM_R13];
	/* A method handle takes its last argument off the stack: then it is one word lower. */
	if (sender < fp + 8 || sender - fp > 1u << 20 || interpreted_push(cpu, s, w, bcp) != 0)
		return JVM_STEP_LOST;
	return step_to(w, ret, sender, caller_fp);
}

/* Which entry, or which exit, an offset in the interpreter is in; JVM_ENTRIES or JVM_EXITS:
 * none. */
JVM_GLOBAL int jvm_entry_find(__u32 cpu, __u32 at)
{
	const struct jvm_state *s = h_state(cpu);

	for (__u32 i = 0; s && i < JVM_ENTRIES; i++)
		if (at >= s->process.entries[i].start && at < s->process.entries[i].limit)
			return (int)i;
	return JVM_ENTRIES;
}

JVM_GLOBAL int jvm_exit_find(__u32 cpu, __u32 at)
{
	const struct jvm_state *s = h_state(cpu);

	for (__u32 i = 0; s && i < JVM_EXITS; i++)
		if (at >= s->process.exits[i].left && at < s->process.exits[i].limit)
			return (int)i;
	return JVM_EXITS;
}

/* Few walks need the tables of the interpreter, which are nine tenths of what is known of a
 * process. */
JVM_GLOBAL int jvm_tables_read(__u32 cpu)
{
	struct jvm_state *s = h_state(cpu);
	struct andiron_walk *w = h_walk(cpu);

	if (!s || !w)
		return 1;
	if (!s->has_tables && h_tables(s, w->pid) == 0)
		s->has_tables = 1;
	return !s->has_tables;
}

JVM_GLOBAL int jvm_interpreter_step(__u32 cpu)
{
	struct jvm_state *s = h_state(cpu);
	struct andiron_walk *w = h_walk(cpu);
	__u32 at, i = JVM_ENTRIES;
	int leaf, inside;

	if (!s || !w)
		return JVM_STEP_LOST;
	at = (__u32)(w->pc - s->process.interpreter);
	leaf = w->exact && JVM_ALL_KNOWN(w);
	inside = at >= s->process.entries_start && at < s->process.entries_limit;
	if ((leaf || inside) && jvm_tables_read(cpu) != 0)
		return JVM_STEP_LOST;
	if (inside)
		i = (__u32)jvm_entry_find(cpu, at);
	if (i < JVM_ENTRIES) {
		const struct jvm_entry *e = &s->process.entries[i];

		if (leaf && (e->popped == 0 || at < e->pushed + 5))
			return entry_leave(cpu, s, w, e, at);
		if (e->popped == 0)
			return frameless_leave(s, w);
	}
	i = leaf ? (__u32)jvm_exit_find(cpu, at) : JVM_EXITS;
	if (i < JVM_EXITS)
		return exit_leave(s, w, &s->process.exits[i], at);
	return interpreted_leave(cpu, s, w);
}
