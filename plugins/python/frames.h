/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Walks the frames of one activation of CPython's loop. The body of the BPF program, and of the
 * tests that replay recorded states natively.
 *
 * An activation is one machine frame of `_PyEval_EvalFrameDefault`. From 3.10 on CPython keeps a
 * small structure in that machine frame. Its address therefore says which activation it belongs to,
 * and nothing is counted: frames belong to the activation whose machine frame [sp, CFA) holds their
 * anchor. Before 3.10 the n-th activation has the n-th frame.
 *
 * All memory may be forged or torn. Each structure is checked before it is believed: a frame's code
 * must be of the type "code", a name of a subclass of `str`. What fails ends this activation's
 * frames by a marked one, and native frames go on.
 *
 * Who includes this defines before:
 *   P_GLOBAL                        a function that is verified by itself
 *   h_read(dst, bytes, address)     the thread's memory; 0, or not
 *   h_walk(cpu) h_scratch()      the walk; memory of our own
 *   h_proc(pid) h_layout(index)     what user space has said
 *   h_thread()                      what is known of the thread; NULL if there is no room
 *   h_thread_pointer()              its TCB
 *   h_thread_key()                  tgid << 32 | tid
 *   h_is_told(id) h_tell(scratch, bytes)  whether the code object is known; 0 once it is told
 *   h_loop(n, step, cpu)            step(i, &cpu) until it returns 1 */
#pragma once

#include "wire.h"

#include <andiron/bpf/walk.h>

#if defined(__TARGET_ARCH_arm64)
#define P_SP 31
#define P_FP 29
#else
#define P_SP 7
#define P_FP 6
#endif

#define P_TEXTS     1024u /* both texts and more: a power of two, as the verifier likes it */
#define P_FRAMES    512u
#define P_ANCHORS   256u
#define P_SEARCH    256u
#define P_TLS_BELOW 4096u /* on arm64 pthread_self() is below the thread pointer, by less than this */

/* The activation at hand. */
struct python_run {
	__u64 sp, cfa;
	__u64 pointer;        /* of the thread */
	__u64 frame, anchor;  /* the next ones */
	__u64 interp, thread; /* of the search */
	__u64 salt, runtime, code_type; /* of the process */
	__u32 n_words;        /* when the program was called */
	__u32 found;          /* frames of the activation were found */
	__u32 unreadable;
	__u32 layout, pid;
	__u32 reserved;
};

struct python_scratch {
	struct python_run run;
	__u64 frame[PYTHON_FRAME_SPAN / 8];
	__u64 code[PYTHON_CODE_SPAN / 8];
	struct python_record record;
	__u8 bytes[P_TEXTS + PYTHON_LINES_MAX];
};

/* Keeps the compiler from proving a bound that the verifier does not see. */
P_INLINE __u32 opaque(__u32 value)
{
	__asm__ volatile("" : "+r"(value));
	return value;
}

/* Fields of what was read. User space has checked that they are inside. */
P_INLINE __u64 frame_word(const struct python_scratch *s, __u32 at)
{
	return s->frame[(opaque(at) & (PYTHON_FRAME_SPAN - 1)) / 8];
}

P_INLINE __u32 frame_half(const struct python_scratch *s, __u32 at)
{
	return (__u32)(frame_word(s, at) >> (at & 4) * 8);
}

P_INLINE __u32 frame_byte(const struct python_scratch *s, __u32 at)
{
	return (__u32)(frame_word(s, at) >> (at & 7) * 8) & 0xff;
}

P_INLINE __u64 code_word(const struct python_scratch *s, __u32 at)
{
	return s->code[(opaque(at) & (PYTHON_CODE_SPAN - 1)) / 8];
}

P_INLINE __u32 code_half(const struct python_scratch *s, __u32 at)
{
	return (__u32)(code_word(s, at) >> (at & 4) * 8);
}

P_INLINE __u64 read_word(__u64 at)
{
	__u64 ret = 0;

	if (h_read(&ret, sizeof(ret), at) != 0)
		return 0;
	return ret;
}

P_INLINE __u64 mix(__u64 a, __u64 b)
{
	a = (a ^ b) * 0x9e3779b97f4a7c15ull;
	return a ^ a >> 29;
}

/* Whether the object at `at` is of a type with one of these bits in tp_flags. */
P_INLINE int has_type(const struct python_layout *l, __u64 at, __u64 flag)
{
	__u64 type = read_word(at + l->object_type);

	return type != 0 && (read_word(type + l->type_flags) & flag) != 0;
}

#define P_TYPE_BYTES (1ull << 27)
#define P_TYPE_TEXT  (1ull << 28)

/* Characters of a `str` to s->bytes from `used` on; bytes, and in *width how wide each is. */
P_INLINE __u32 copy_text(const struct python_layout *l, struct python_scratch *s, __u64 at,
			 __u32 used, __u8 *width)
{
	__u64 n = read_word(at + l->text_length);
	__u32 state = 0, kind, bytes;

	if (!has_type(l, at, P_TYPE_TEXT) || h_read(&state, sizeof(state), at + l->text_state) != 0)
		return 0;
	state >>= l->text_shift & 31;
	kind = state & 7;
	if ((state >> 3 & 1) == 0 || (kind != 1 && kind != 2 && kind != 4) || n == 0)
		return 0;
	*width = state >> 4 & 1 ? 0 : (__u8)kind;
	at += state >> 4 & 1 ? l->text_ascii : l->text_compact;
	bytes = n > PYTHON_TEXT_MAX ? PYTHON_TEXT_MAX : (__u32)n * kind;
	bytes = opaque(bytes);
	if (bytes > PYTHON_TEXT_MAX)
		bytes = PYTHON_TEXT_MAX;
	if (h_read(&s->bytes[opaque(used) & (P_TEXTS - 1)], bytes, at) != 0)
		return 0;
	return bytes;
}

/* The line table, to s->bytes from `used` on; its bytes. */
P_INLINE __u32 copy_lines(const struct python_layout *l, struct python_scratch *s, __u32 used)
{
	__u64 at = code_word(s, l->code_lines), n = read_word(at + l->var_size);
	__u32 bytes;

	if (!has_type(l, at, P_TYPE_BYTES) || n == 0)
		return 0;
	s->record.all_lines = n > 0xffffffff ? 0xffffffff : (__u32)n;
	bytes = opaque(s->record.all_lines);
	if (bytes > PYTHON_LINES_MAX)
		bytes = PYTHON_LINES_MAX;
	if (h_read(&s->bytes[opaque(used) & (P_TEXTS - 1)], bytes, at + l->bytes_data) != 0)
		return 0;
	return bytes;
}

/* Tells user space what the code object in s->code is called. */
P_GLOBAL int python_tell(__u64 id)
{
	struct python_scratch *s = h_scratch();
	const struct python_layout *l;
	struct python_record *r;
	__u32 name, file, lines;

	if (!s)
		return 1;
	l = h_layout(s->run.layout);
	if (!l)
		return 1;
	r = &s->record;
	r->id = id;
	r->table = code_word(s, l->code_lines) + l->bytes_data;
	r->pid = s->run.pid;
	r->first_line = code_half(s, l->code_first_line);
	r->lines_kind = l->kind >= PYTHON_CFRAMES   ? PYTHON_LINES_LOCATIONS
			: l->kind == PYTHON_COUNTED ? PYTHON_LINES_RANGES
						    : PYTHON_LINES_LNOTAB;
	r->all_lines = 0;
	name = copy_text(l, s, code_word(s, l->code_name), 0, &r->name_width);
	if (name == 0)
		return 1;
	file = copy_text(l, s, code_word(s, l->code_file), name, &r->file_width);
	lines = copy_lines(l, s, name + file);
	r->n_name = (__u16)name;
	r->n_file = (__u16)file;
	r->n_lines = lines;
	return h_tell(s, (__u32)sizeof(*r) + name + file + lines);
}

/* Learns what the type of code objects is, once for a process: it is called "code". */
P_GLOBAL int python_learn(__u64 type)
{
	struct python_scratch *s = h_scratch();
	const struct python_layout *l;
	struct python_proc *p;
	char name[8] = {0};
	__u64 at;

	if (!s || s->run.code_type != 0)
		return 0;
	l = h_layout(s->run.layout);
	p = h_proc(s->run.pid);
	if (!l || !p)
		return 0;
	at = read_word(type + l->type_name);
	if (at == 0 || h_read(name, 5, at) != 0 || name[0] != 'c' || name[1] != 'o' ||
	    name[2] != 'd' || name[3] != 'e' || name[4] != '\0')
		return 0;
	p->code_type = s->run.code_type = type;
	return 1;
}

/* Whether s->code begins a code object. */
P_INLINE int is_code(const struct python_layout *l, const struct python_scratch *s)
{
	__u64 type = code_word(s, l->object_type);

	return type != 0 && (type == s->run.code_type || python_learn(type));
}

/* Where the instructions begin that the frame in s->frame executes. */
P_INLINE __u64 bytecode_of(const struct python_layout *l, const struct python_scratch *s,
			   __u64 code)
{
	__u32 index;
	__u64 copies;

	if (l->frame_tlbc == PYTHON_NO_FIELD)
		return code + l->code_bytes;
	index = frame_half(s, l->frame_tlbc);
	if (index == 0 || index > 0xffff)
		return code + l->code_bytes;
	copies = code_word(s, l->code_tlbc);
	return copies ? read_word(copies + 8 + (__u64)index * 8) : 0;
}

/* The executed instruction, as lines are looked up by. */
P_INLINE __u64 position_of(const struct python_layout *l, const struct python_scratch *s,
			   __u64 code)
{
	__u64 at;

	if (l->kind <= PYTHON_COUNTED)
		return frame_half(s, l->frame_instruction);
	at = frame_word(s, l->frame_instruction) - bytecode_of(l, s, code);
	return at < 1u << 30 ? at : PYTHON_NO_LINE;
}

/* The frame of a shim that the interpreter puts around `__init__`: it has run no instruction of its
 * own, and its file's name is a constant of the runtime. */
P_INLINE int is_shim(const struct python_layout *l, const struct python_scratch *s, __u64 code,
		     __u64 position)
{
	__u64 file = code_word(s, l->code_file) - s->run.runtime;
	__u32 first = 0;

	if (l->code_traceable == PYTHON_NO_FIELD || file >= l->runtime_size ||
	    h_read(&first, sizeof(first), code + l->code_traceable) != 0)
		return 0;
	return position == PYTHON_NO_LINE || position / 2 < first;
}

/* Appends the frame in s->frame; 0, or 1 if it is none or finds no room. */
P_INLINE int push_frame(struct andiron_walk *w, const struct python_layout *l,
			struct python_scratch *s)
{
	__u64 code = frame_word(s, l->frame_code) & ~3ull, id, position;
	__u32 span = l->code_span;

	if (span > PYTHON_CODE_SPAN || h_read(s->code, span, code) != 0 || !is_code(l, s)) {
		s->run.unreadable = 1;
		return 1;
	}
	position = position_of(l, s, code);
	if (is_shim(l, s, code, position))
		return 0;
	id = mix(mix(s->run.salt, code), code_word(s, l->code_name));
	id = mix(mix(id, code_word(s, l->code_file)), code_word(s, l->code_lines));
	id = mix(id, code_half(s, l->code_first_line)) & PYTHON_ID_MASK;
	if (id < PYTHON_ID_MIN)
		id += PYTHON_ID_MIN;
	if (!h_is_told(id))
		python_tell(id);
	return andiron_walk_push(w, id, position);
}

/* The frame in s->frame, of a version that enters the loop once for several frames; 1: it was the
 * last one of the activation. */
P_INLINE int take_frame(struct andiron_walk *w, const struct python_layout *l,
			struct python_scratch *s)
{
	__u64 at = s->run.frame;

	s->run.frame = frame_word(s, l->frame_previous);
	if (l->frame_entry == PYTHON_NO_FIELD && frame_byte(s, l->frame_owner) >= 3) {
		if (l->kind == PYTHON_ENTRIES && at < s->run.sp) {
			w->n_words = s->run.n_words;
			return 0;
		}
		if (l->kind == PYTHON_ENTRIES && at >= s->run.cfa) {
			w->n_words = s->run.n_words;
			return 1;
		}
		s->run.found = 1;
		return 1;
	}
	if (push_frame(w, l, s) != 0) {
		s->run.found = 1;
		return 1;
	}
	if (l->frame_entry != PYTHON_NO_FIELD && frame_byte(s, l->frame_entry) != 0) {
		s->run.found = 1;
		return 1;
	}
	return 0;
}

P_STEP(step_frame)
{
	struct python_scratch *s = h_scratch();
	struct andiron_walk *w = h_walk(*cpu);
	const struct python_layout *l;
	__u32 span;

	if (!s || !w || s->run.frame == 0)
		return 1;
	l = h_layout(s->run.layout);
	if (!l)
		return 1;
	span = l->frame_span;
	if (span > PYTHON_FRAME_SPAN || h_read(s->frame, span, s->run.frame) != 0) {
		s->run.found = s->run.unreadable = 1;
		return 1;
	}
	return take_frame(w, l, s);
}

/* To the first CFrame that is not below the activation. */
P_STEP(step_anchor)
{
	struct python_scratch *s = h_scratch();
	const struct python_layout *l;

	if (!s || s->run.anchor == 0 || s->run.anchor >= s->run.sp)
		return 1;
	l = h_layout(s->run.layout);
	if (!l)
		return 1;
	s->run.anchor = read_word(s->run.anchor + l->cframe_previous);
	if (l->kind == PYTHON_COUNTED && s->run.frame != 0)
		s->run.frame = read_word(s->run.frame + l->frame_previous);
	return 0;
}

/* The frame in s->frame, of a version that has one for each activation. */
P_INLINE void take_object(struct andiron_walk *w, const struct python_layout *l,
			  struct python_scratch *s)
{
	__u32 span = l->frame_span;

	s->run.found = 1;
	if (span > PYTHON_FRAME_SPAN || h_read(s->frame, span, s->run.frame) != 0) {
		s->run.unreadable = 1;
		return;
	}
	s->run.frame = frame_word(s, l->frame_previous);
	push_frame(w, l, s);
}

/* Whether the thread's current frame is no longer that of an activation: its loop is about to
 * return and has given up its CFrame, or its mark of being executed. */
P_INLINE int is_leaving(const struct python_layout *l, struct python_scratch *s)
{
	__u8 state = 0;

	if (s->run.frame == 0)
		return 0;
	return h_read(&state, 1, s->run.frame + l->frame_state) == 0 && state != l->executing;
}

/* From 3.11 on: all frames of the activation, found by its CFrame. */
P_INLINE void walk_by_cframe(__u32 cpu, const struct python_layout *l, struct python_scratch *s)
{
	h_loop(P_ANCHORS, step_anchor, cpu);
	if (s->run.anchor == 0 || s->run.anchor >= s->run.cfa || s->run.anchor < s->run.sp)
		return;
	s->run.frame = read_word(s->run.anchor + l->cframe_frame);
	s->run.anchor = read_word(s->run.anchor + l->cframe_previous);
	h_loop(P_FRAMES, step_frame, cpu);
	s->run.found = 1;
}

P_INLINE void walk_by_object(__u32 cpu, struct andiron_walk *w, const struct python_layout *l,
			     struct python_scratch *s)
{
	if (l->kind == PYTHON_COUNTED) {
		h_loop(P_ANCHORS, step_anchor, cpu);
		if (s->run.anchor == 0 || s->run.anchor >= s->run.cfa)
			return;
		s->run.anchor = read_word(s->run.anchor + l->cframe_previous);
	}
	if (s->run.frame != 0)
		take_object(w, l, s);
}

/* The frames of the activation, if they are those of this state of the thread. */
P_GLOBAL int python_try(__u32 cpu, __u64 state)
{
	struct python_scratch *s = h_scratch();
	struct andiron_walk *w = h_walk(cpu);
	struct python_thread *t = h_thread();
	const struct python_layout *l;

	if (!s || !w || !t)
		return 0;
	l = h_layout(s->run.layout);
	if (!l)
		return 0;
	s->run.anchor = s->run.frame = 0;
	if (t->cursor.n_words != 0 && t->cursor.state == state) {
		s->run.frame = t->cursor.next;
		s->run.anchor = t->cursor.anchor;
	} else {
		s->run.frame = read_word(state + l->thread_frame);
		if (l->thread_top != PYTHON_NO_FIELD)
			s->run.anchor = read_word(state + l->thread_top);
		if (l->kind <= PYTHON_COUNTED && is_leaving(l, s))
			s->run.frame = read_word(s->run.frame + l->frame_previous);
	}
	if (l->kind == PYTHON_CFRAMES)
		walk_by_cframe(cpu, l, s);
	else if (l->kind == PYTHON_ENTRIES)
		h_loop(P_FRAMES, step_frame, cpu);
	else
		walk_by_object(cpu, w, l, s);
	if (!s->run.found)
		return 0;
	t->cursor.state = state;
	t->cursor.next = s->run.frame;
	t->cursor.anchor = s->run.anchor;
	return 1;
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
P_STEP(step_thread)
{
	struct python_scratch *s = h_scratch();
	struct python_thread *t = h_thread();
	const struct python_layout *l;
	__u64 thread;

	if (!s || !t)
		return 1;
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
	struct python_thread *t = h_thread();
	const struct python_layout *l;
	__u64 found;

	if (!s || !t)
		return 0;
	l = h_layout(s->run.layout);
	if (!l)
		return 0;
	search_from(l, s, t);
	h_loop(P_SEARCH, step_thread, 0);
	found = s->run.thread;
	t->interp = s->run.interp;
	t->next = found;
	if (s->run.interp == 0 || found == 0 ||
	    !is_own(read_word(found + l->thread_id), s->run.pointer))
		return 0;
	t->interp = t->next = 0;
	t->states[1] = t->states[0];
	t->states[0] = found;
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
	state = l->runtime_holder ? read_word(s->run.runtime + l->runtime_holder) : 0;
	if (state != 0 && is_own(read_word(state + l->thread_id), s->run.pointer))
		put_first(t, state);
}

/* Forgets a state that is the thread's no longer, and tries the others. */
P_GLOBAL int python_known(__u32 cpu)
{
	struct python_scratch *s = h_scratch();
	struct python_thread *t = h_thread();
	const struct python_layout *l;

	if (!s || !t)
		return 0;
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

/* Whether frames have been written in this walk, where the last call for this thread ended. */
P_INLINE void check_cursor(const struct andiron_walk *w, struct python_thread *t)
{
	__u32 n = t->cursor.n_words;

	if (n < 2 || n > w->n_words || n > ANDIRON_WALK_WORDS || w->regs[P_SP] <= t->cursor.sp ||
	    w->frames[n - 2] != t->cursor.words[0] || w->frames[n - 1] != t->cursor.words[1])
		t->cursor.n_words = 0;
}

/* For the next call of this walk. */
P_INLINE void save_cursor(const struct andiron_walk *w, struct python_thread *t)
{
	__u32 n = w->n_words;

	t->cursor.n_words = 0;
	if (n < 2 || n > ANDIRON_WALK_WORDS)
		return;
	t->cursor.words[0] = w->frames[n - 2];
	t->cursor.words[1] = w->frames[n - 1];
	t->cursor.sp = w->regs[P_SP];
	t->cursor.n_words = n;
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
	__u32 had = t->cursor.n_words;

	if (!python_known(cpu) && !python_search()) {
		if (t->states[0] == 0 && t->states[1] == 0)
			mark(w, t, PYTHON_MARKER_THREAD);
		else if (!w->exact)
			w->native = ANDIRON_WALK_SHOW;
		return;
	}
	if (!s->run.found && !python_try(cpu, t->states[0])) {
		if (!w->exact)
			w->native = ANDIRON_WALK_SHOW;
		return;
	}
	if (s->run.unreadable && andiron_walk_push(w, PYTHON_WHAT_MARKER, PYTHON_MARKER_FRAME) != 0)
		w->end = ANDIRON_WALK_GAVE_UP;
	if (w->n_words + 2 > ANDIRON_WALK_WORDS)
		w->end = ANDIRON_WALK_GAVE_UP;
	if (w->n_words > s->run.n_words || had)
		save_cursor(w, t);
}

P_INLINE void walk_python(__u32 cpu, struct andiron_walk *w)
{
	struct python_proc *p = h_proc(w->pid);
	struct python_scratch *s = h_scratch();
	struct python_thread *t = h_thread();
	const struct python_layout *l = p ? h_layout(p->layout) : NULL;

	w->native = ANDIRON_WALK_SHOW;
	if (!p || !s || !l)
		return;
	if (t)
		check_cursor(w, t);
	if (!t || l->kind == PYTHON_UNKNOWN) {
		mark(w, t, PYTHON_MARKER_VERSION);
		return;
	}
	w->native = ANDIRON_WALK_LEAVE;
	if (!is_whole(l, (w->exact ? w->pc : w->pc - 1) - p->bias))
		return;
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
	};
	walk_activation(cpu, w, t, s);
}
