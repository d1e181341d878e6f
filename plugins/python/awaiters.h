/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The chain of tasks that await the one that is executed. Included once, as frames.h is.
 *
 * A task's coroutine is called by the event loop, so the machine stack does not say what it is done
 * for. From 3.14 on each task and future keeps who awaits it. Behind the outermost coroutine of the
 * executed task stand, for each task that awaits: a mark with its name, and its coroutines as they
 * are suspended, innermost first. The event loop's own frames follow, as they do on the stack.
 *
 * The thread itself is what changes these structures, and it is stopped here. A word may still be
 * on its way, and all of it may be forged. So a coroutine has the type of one, is suspended, and
 * has the frame of one; a task has a coroutine, and a name; a future's type is a type. Where one of
 * them does not, a mark says so, and the chain ends. It ends as well where several tasks await one
 * thing, since a stack has one way only.
 *
 * A future that is no task (that of gather()) is passed: it has no frames. */
#pragma once

#include "python/frames.h"

#define P_AWAITERS 16u /* tasks and futures of a chain */

/* Of what was read to the beginning of `stack`. */
P_INLINE __u64 object_word(const struct python_scratch *s, __u32 at)
{
	return s->stack[opaque(at) / 8 & (P_STACK - 1)];
}

P_INLINE __u32 object_byte(const struct python_scratch *s, __u32 at)
{
	return (__u32)(object_word(s, at) >> (at & 7) * 8) & 0xff;
}

/* 0, or not. What was read there before is gone. */
P_INLINE int read_object(struct python_scratch *s, __u64 at, __u32 n)
{
	s->run.stack_bytes = 0;
	s->run.base = 0;
	n = opaque(n);
	return at == 0 || (at & 7) != 0 || n > P_STACK * 8 || h_read(s->stack, n, at) != 0;
}

/* Whether a type is called so: the first eight bytes of its name, its end among them. */
P_INLINE int is_called(const struct python_layout *l, __u64 type, __u64 name, __u64 mask)
{
	__u64 at = type ? read_word(type + l->type_name) : 0, had = 0;

	return at != 0 && h_read(&had, sizeof(had), at) == 0 && (had & mask) == name;
}

#define P_NAME_SET  0x746573ull           /* "set" */
#define P_MASK_SET  0xffffffffull         /* and its end */
#define P_NAME_GEN  0x6f746172656e6567ull /* "generato", as no other type begins */
#define P_NAME_CORO 0x6e6974756f726f63ull /* "coroutin" */

/* Whether it is the type of coroutines or of generators. */
P_GLOBAL int python_is_coro_type(__u64 type)
{
	struct python_scratch *s = h_scratch();
	const struct python_layout *l;

	if (!s || type == 0)
		return 0;
	if (type == s->run.coro_type)
		return 1;
	l = h_layout(s->run.layout);
	if (!l ||
	    (!is_called(l, type, P_NAME_CORO, ~0ull) && !is_called(l, type, P_NAME_GEN, ~0ull)))
		return 0;
	s->run.coro_type = type;
	return 1;
}

/* The coroutine at `at` to `stack`, with its frame as the one at hand; 0, or not. */
P_INLINE int read_coro(const struct python_tasks *k, struct python_scratch *s, __u64 at)
{
	if (read_object(s, at, k->gen_span) != 0)
		return 1;
	s->run.base = k->gen_frame / 8;
	return 0;
}

#define P_CUT      1u /* too many coroutines, or one that is not suspended */
#define P_EXECUTES 2u /* one that is executed */

/* From s->run.coro to what it awaits; 1: it is none, or awaits nothing that is one. */
P_GLOBAL int python_step_coro(void)
{
	struct python_scratch *s = h_scratch();
	const struct python_layout *l;
	const struct python_tasks *k;
	__u64 at, end;
	__u32 state, n;

	if (!s)
		return 1;
	l = h_layout(s->run.layout);
	k = h_tasks(s->run.layout);
	n = opaque(s->run.n_coros);
	at = s->run.coro;
	if (!l || !k || at == 0)
		return 1;
	if (read_coro(k, s, at) != 0 || !python_is_coro_type(object_word(s, l->object_type)))
		return 1;
	state = object_byte(s, k->gen_state);
	if (n >= P_COROS || (state != k->suspended && state != k->awaiting) ||
	    frame_byte(s, l->frame_owner) != P_OWNER_COROUTINE) {
		s->run.cut = state == k->executing ? P_EXECUTES : P_CUT;
		return 1;
	}
	s->coros[n] = at;
	s->run.n_coros = n + 1;
	s->run.coro = 0;
	if (state != k->awaiting)
		return 1;
	end = frame_word(s, k->frame_stack) - 8;
	if (end - at < 1u << 20)
		s->run.coro = read_word(end) & ~3ull;
	return 0;
}

P_GLOBAL int python_push_coro(__u32 cpu, __u32 index)
{
	struct python_scratch *s = h_scratch();
	struct andiron_walk *w = h_walk(cpu);
	const struct python_layout *l;
	const struct python_tasks *k;

	if (!s || !w)
		return 1;
	l = h_layout(s->run.layout);
	k = h_tasks(s->run.layout);
	if (!l || !k || read_coro(k, s, s->coros[opaque(index) & (P_COROS - 1)]) != 0)
		return 1;
	return push_frame(w, l, s);
}

P_INLINE int is_digit(__u8 c)
{
	return c >= '0' && c <= '9';
}

/* Adds the byte of the text in s->bytes to the record's id; 1: it was the last one. */
P_GLOBAL int python_step_text(__u32 at)
{
	struct python_scratch *s = h_scratch();

	if (!s || at >= s->record.n_name)
		return 1;
	s->record.id = (s->record.id ^ s->bytes[opaque(at) & (P_TEXTS - 1)]) * 0x100000001b3ull;
	return 0;
}

/* The mark before the task's coroutines. A task has a number for a name unless it was given one:
 * then the mark is the same for all, else no two stacks would be equal. */
P_GLOBAL int python_push_task(__u32 cpu)
{
	struct python_scratch *s = h_scratch();
	struct andiron_walk *w = h_walk(cpu);
	const struct python_layout *l;
	__u8 width = 0;
	__u32 n;

	if (!s || !w)
		return 1;
	l = h_layout(s->run.layout);
	if (!l)
		return 1;
	if (has_type(l, s->run.name, P_TYPE_INT))
		return andiron_walk_push(w, PYTHON_WHAT_MARKER, PYTHON_MARKER_TASK);
	n = copy_text(l, s, s->run.name, 0, &width);
	if (n == 0)
		return 1;
	if (width == 0 && n > 5 && s->bytes[0] == 'T' && s->bytes[1] == 'a' && s->bytes[2] == 's' &&
	    s->bytes[3] == 'k' && s->bytes[4] == '-' && is_digit(s->bytes[5]))
		return andiron_walk_push(w, PYTHON_WHAT_MARKER, PYTHON_MARKER_TASK);
	s->record = (struct python_record){
		.id = mix(s->run.salt, (__u64)n << 8 | width),
		.pid = s->run.pid,
		.lines_kind = PYTHON_LINES_TASK,
		.n_name = (__u16)n,
		.name_width = width,
	};
	for (__u32 i = 0; i < PYTHON_TEXT_MAX && python_step_text(i) == 0; i++)
		;
	s->record.id = mix(s->run.salt, s->record.id) & PYTHON_ID_MASK;
	if (s->record.id < PYTHON_ID_MIN)
		s->record.id += PYTHON_ID_MIN;
	if (!h_is_reported(s->record.id))
		h_report(s, (__u32)sizeof(s->record) + n);
	return andiron_walk_push(w, s->record.id, 0);
}

/* The coroutines of the task at hand; 1: the chain ends. A task that runs itself, and has begun the
 * one that it awaits, stands on the machine stack. */
P_GLOBAL int python_show_task(__u32 cpu)
{
	struct python_scratch *s = h_scratch();
	struct andiron_walk *w = h_walk(cpu);

	if (!s || !w)
		return 1;
	s->run.n_coros = s->run.cut = 0;
	for (__u32 i = 0; i <= P_COROS && python_step_coro() == 0; i++)
		;
	if (s->run.n_coros == 0 && s->run.cut == P_EXECUTES)
		return 1;
	if (s->run.n_coros == 0 || python_push_task(cpu) != 0) {
		andiron_walk_push(w, PYTHON_WHAT_MARKER, PYTHON_MARKER_AWAITER);
		return 1;
	}
	if (s->run.cut)
		andiron_walk_push(w, PYTHON_WHAT_MARKER, PYTHON_MARKER_DEEPER);
	for (__u32 i = 0; i < P_COROS && i < s->run.n_coros; i++)
		if (python_push_coro(cpu, s->run.n_coros - 1 - i) != 0)
			return 1;
	return 0;
}

/* The task or future at `at` becomes the one at hand; 0, or 1 if it is none. */
P_GLOBAL int python_take_task(__u64 at)
{
	struct python_scratch *s = h_scratch();
	const struct python_layout *l;
	const struct python_tasks *k;

	if (!s)
		return 1;
	l = h_layout(s->run.layout);
	k = h_tasks(s->run.layout);
	if (!l || !k || !has_type(l, at, P_TYPE_READY) || read_object(s, at, k->task_span) != 0)
		return 1;
	s->run.name = object_word(s, k->task_name);
	s->run.coro = object_word(s, k->task_coro);
	s->run.awaiter = object_word(s, k->task_awaiter);
	s->run.is_task = object_byte(s, k->task_is_task);
	s->run.awaiter_is_set = object_byte(s, k->task_is_set);
	return s->run.is_task > 1 || s->run.awaiter_is_set > 1;
}

/* Counts an entry of the set's table, which is in `stack`, if it is a member. */
P_GLOBAL int python_step_member(__u32 at)
{
	struct python_scratch *s = h_scratch();
	__u64 key;

	if (!s)
		return 1;
	at = opaque(at) & (P_STACK / 2 - 1);
	key = s->stack[2 * at];
	if (key == 0 || s->stack[2 * at + 1] == ~0ull)
		return 0;
	s->run.awaiter = key;
	s->run.n_members++;
	return 0;
}

/* The only member of the set that is the awaiter to s->run.awaiter, 0 if it is empty. 0, or the
 * mark that says why not. */
P_INLINE __u32 take_member(const struct python_layout *l, const struct python_tasks *k,
			   struct python_scratch *s)
{
	__u64 set = s->run.awaiter, used = read_word(set + k->set_used);
	__u64 mask = read_word(set + k->set_mask);

	s->run.awaiter = 0;
	if (!is_called(l, read_word(set + l->object_type), P_NAME_SET, P_MASK_SET) || used > mask)
		return PYTHON_MARKER_AWAITER;
	if (used != 1)
		return used > 1 ? PYTHON_MARKER_SEVERAL : 0;
	if (mask >= P_STACK / 2 ||
	    read_object(s, read_word(set + k->set_table), (__u32)(mask + 1) * 16) != 0)
		return PYTHON_MARKER_AWAITER;
	s->run.n_members = 0;
	for (__u32 i = 0; i < P_STACK / 2 && i <= mask; i++)
		python_step_member(i);
	return s->run.n_members == 1 ? 0 : PYTHON_MARKER_AWAITER;
}

/* From the task or future at hand to what awaits it: 0; or 1, with a mark where that is unknown. */
P_GLOBAL int python_step_awaiter(__u32 cpu)
{
	struct python_scratch *s = h_scratch();
	struct andiron_walk *w = h_walk(cpu);
	const struct python_layout *l;
	const struct python_tasks *k;
	__u32 marker = 0;

	if (!s || !w || s->run.awaiter == 0)
		return 1;
	l = h_layout(s->run.layout);
	k = h_tasks(s->run.layout);
	if (!l || !k)
		return 1;
	if (s->run.awaiter_is_set)
		marker = take_member(l, k, s);
	if (marker == 0 && s->run.awaiter == 0)
		return 1;
	if (marker == 0 && python_take_task(s->run.awaiter) == 0)
		return 0;
	andiron_walk_push(w, PYTHON_WHAT_MARKER, marker ? marker : PYTHON_MARKER_AWAITER);
	return 1;
}

/* The chain, where the coroutine whose frame was written last is that of the thread's task. */
P_GLOBAL int python_await(__u32 cpu, __u64 state)
{
	struct python_scratch *s = h_scratch();
	struct andiron_walk *w = h_walk(cpu);
	const struct python_tasks *k;
	__u64 task;

	if (!s || !w)
		return 0;
	k = h_tasks(s->run.layout);
	task = k ? read_word(state + k->thread_task) : 0;
	if (!k || task == 0 || python_take_task(task) != 0 || !s->run.is_task ||
	    s->run.coro + k->gen_frame != s->run.coroutine)
		return 0;
	for (__u32 i = 0; i < P_AWAITERS; i++) {
		if (python_step_awaiter(cpu) != 0)
			return 0;
		if (s->run.is_task && python_show_task(cpu) != 0)
			return 0;
	}
	if (s->run.awaiter != 0)
		andiron_walk_push(w, PYTHON_WHAT_MARKER, PYTHON_MARKER_OTHERS);
	return 0;
}
