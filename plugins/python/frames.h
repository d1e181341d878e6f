/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Walks the frames of one activation of CPython's loop. The body of the BPF program, and of the
 * tests that replay recorded states natively.
 *
 * An activation is one machine frame of `_PyEval_EvalFrameDefault`. From 3.10 on CPython keeps a
 * small structure in that machine frame. Its address therefore says which activation it belongs to,
 * and nothing is counted: frames belong to the activation whose machine frame [sp, CFA) holds that
 * structure, their anchor. Before 3.10 the n-th activation has the n-th frame.
 *
 * All memory may be forged or torn. Each structure is checked before it is believed: a frame's code
 * must be of the type "code", a name of a subclass of `str`. What fails ends this activation's
 * frames by a marked one, and native frames go on.
 *
 * Who includes this defines before:
 *   P_GLOBAL                      a function that is verified by itself
 *   h_read(dst, bytes, address)   the thread's memory; 0, or not
 *   h_walk(cpu) h_scratch()       the walk; memory of our own
 *   h_proc(pid) h_layout(index) h_tasks(index)   what user space has said
 *   h_thread()                    what is known of the thread; NULL if there is no room
 *   h_thread_pointer()            its TCB
 *   h_is_reported(id)             whether the code object is known
 *   h_report(scratch, bytes)      0 once it is
 *
 * Loops are plain ones, whose step is such a global function: the verifier follows it once, and the
 * loop itself costs some ten instructions a turn. So no kernel needs bpf_loop. */
#pragma once

#include "python/wire.h"

#include <andiron/bpf/walk.h>

#if defined(__TARGET_ARCH_arm64)
#define P_SP 31
#define P_FP 29
#else
#define P_SP 7
#define P_FP 6
#endif

#define P_TEXTS   1024u /* both texts and more: a power of two, as the verifier likes it */
#define P_FRAMES  512u
#define P_STEP    4u /* frames of a step */
#define P_ANCHORS 256u
#define P_SEARCH  256u
#define P_STACK   128u   /* words of frames that are read at once */
#define P_CHUNK   16384u /* bytes of a chunk of frames; the first one of a thread's */
#define P_COROS   32u    /* coroutines of a task */
#define P_TLS_BELOW                                                                                \
	4096u /* on arm64 pthread_self() is below the thread pointer, by less than this */

/* The activation at hand. */
struct python_run {
	__u64 sp, cfa;
	__u64 pointer;                  /* of the thread */
	__u64 frame, anchor;            /* the next ones */
	__u64 interp, thread;           /* of the search */
	__u64 salt, runtime, code_type; /* of the process */
	__u64 last_code, last_id;       /* of the frame before: recursion is frequent */
	__u64 last_file, last_hash;     /* of the code object before */
	__u32 n_words;                  /* when the program was called */
	__u32 found;                    /* frames of the activation were found */
	__u32 unreadable;
	__u32 layout, pid;
	__u32 base;      /* word of `stack` where the frame at hand begins */
	__u64 last, low; /* the frame read last; where what is in `stack` stands */
	__u32 stack_bytes;
	__u32 n_coros;
	__u64 coroutine;       /* the outermost frame where it is a coroutine's; else 0 */
	__u64 coro, coro_type; /* of a task: the next one; the type that the last one had */
	__u64 name, awaiter;   /* of the task or future at hand */
	__u32 is_task, awaiter_is_set, n_members;
	__u32 deep;     /* the activation has more frames than a call reads */
	__u32 n_frames; /* of it, that were read and are not the last one */
	__u32 reserved;
	__u32 asyncio, cut; /* whether tasks can be read; the coroutines end too early */
};

struct python_scratch {
	struct python_run run;
	struct python_thread thread; /* as it stands in the map, for the time of a call */
	__u64 coros[P_COROS];
	__u64 stack[P_STACK];
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
	return s->stack[(s->run.base + (opaque(at) & (PYTHON_FRAME_SPAN - 1)) / 8) & (P_STACK - 1)];
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

/* The frame at s->run.frame, and what is in so many bytes below it; 0, or not. */
P_INLINE int read_stack(struct python_scratch *s, __u32 below, __u32 span)
{
	__u32 n = opaque(below + span);

	s->run.low = s->run.frame - below;
	s->run.base = below / 8;
	s->run.stack_bytes = n;
	if (n <= P_STACK * 8 && h_read(s->stack, n, s->run.low) == 0)
		return 0;
	s->run.stack_bytes = 0;
	return 1;
}

/* Reads the frame at s->run.frame; 0, or not. From 3.11 on frames of a thread lie one behind the
 * other, the innermost one highest. So where a frame is near the one before, or where the thread
 * has had such frames, what is below it in its page is read with it, and the next ones are there
 * already. */
P_INLINE int read_frame(const struct python_layout *l, struct python_scratch *s)
{
	__u64 at = s->run.frame, in = at - s->run.low;
	__u32 span = l->frame_span, below = at & (4096 - 8);
	bool near = s->run.last - at < P_STACK * 4 || at - s->thread.stack + P_CHUNK < 2 * P_CHUNK;

	if (span > PYTHON_FRAME_SPAN)
		return 1;
	s->run.last = at;
	if ((in & 7) == 0 && in < P_STACK * 8 && in + span <= s->run.stack_bytes) {
		s->run.base = (__u32)in / 8;
		return 0;
	}
	if (below > P_STACK * 8 - PYTHON_FRAME_SPAN)
		below = P_STACK * 8 - PYTHON_FRAME_SPAN;
	if (near && read_stack(s, below, span) == 0) {
		s->thread.stack = at;
		return 0;
	}
	return read_stack(s, 0, span);
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

#define P_OWNER_COROUTINE 1u /* `frame_owner` of coroutines and generators */

#define P_TYPE_READY (1ull << 12)
#define P_TYPE_INT   (1ull << 24)
#define P_TYPE_BYTES (1ull << 27)
#define P_TYPE_TEXT  (1ull << 28)

/* Characters of a `str` to s->bytes from `used` on, the first of them, or the last ones where
 * `used` is not 0: of a path; bytes, and in *width how wide each is. */
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
	if (used > 0)
		at += n * kind - bytes;
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

/* Reports the code object in s->code: its names and its line table. */
P_GLOBAL int python_report(__u64 id)
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
	return h_report(s, (__u32)sizeof(*r) + name + file + lines);
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

/* Where the instructions begin that the frame in s->stack executes. */
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

/* The frame that the interpreter itself puts around a call of `__init__` (its "shim"): it has run
 * no instruction of its own, and its file's name is a constant of the runtime. */
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

/* Hash of the file's name. Most frames of a stack have few files. */
P_INLINE __u64 file_hash(const struct python_layout *l, struct python_scratch *s)
{
	__u64 file = code_word(s, l->code_file);

	if (file != s->run.last_file) {
		s->run.last_file = file;
		s->run.last_hash = read_word(file + l->text_hash);
	}
	return s->run.last_hash;
}

/* The id of the code object in s->code: of the process, its address, and all that it has from its
 * size to its line table. Addresses alone do not do: the next code object gets those of one that
 * was freed, and from 3.12 on another number. Before, its names are asked for their hashes. Two
 * words a turn, since each step waits for the one before. */
P_INLINE __u64 identify(const struct python_layout *l, struct python_scratch *s, __u64 code)
{
	__u64 id = mix(s->run.salt, code), other = s->run.salt;
	__u32 end = opaque(l->code_lines / 8);

	if (l->code_changes != PYTHON_NO_FIELD)
		s->code[(opaque(l->code_changes) & (PYTHON_CODE_SPAN - 1)) / 8] &= 0xffffffff;
	for (__u32 i = l->object_type / 8 + 1; i < PYTHON_CODE_SPAN / 8 - 1 && i <= end; i += 2) {
		id = mix(id, s->code[i]);
		other = mix(other, i < end ? s->code[i + 1] : 0);
	}
	if (l->text_hash != PYTHON_NO_FIELD) {
		id = mix(id, read_word(code_word(s, l->code_name) + l->text_hash));
		other = mix(other, file_hash(l, s));
	}
	id = mix(id, other) & PYTHON_ID_MASK;
	return id < PYTHON_ID_MIN ? id + PYTHON_ID_MIN : id;
}

/* Reads the code object at `code`, which becomes the last one; 0, or 1 if it is none. It is
 * reported if it is not known. */
P_GLOBAL int python_take_code(__u64 code)
{
	struct python_scratch *s = h_scratch();
	const struct python_layout *l;
	__u32 span;

	if (!s)
		return 1;
	s->run.last_code = 0;
	l = h_layout(s->run.layout);
	if (!l)
		return 1;
	span = l->code_span;
	if (span > PYTHON_CODE_SPAN || h_read(s->code, span, code) != 0 || !is_code(l, s))
		return 1;
	s->run.last_code = code;
	s->run.last_id = identify(l, s, code);
	if (!h_is_reported(s->run.last_id))
		python_report(s->run.last_id);
	return 0;
}

/* Appends the frame in s->stack; 0, or 1 if it is none or finds no room. */
P_INLINE int push_frame(struct andiron_walk *w, const struct python_layout *l,
			struct python_scratch *s)
{
	__u64 code = frame_word(s, l->frame_code) & ~3ull, position;

	if ((code != s->run.last_code || code == 0) && python_take_code(code) != 0) {
		s->run.unreadable = 1;
		return 1;
	}
	position = position_of(l, s, code);
	if (is_shim(l, s, code, position))
		return 0;
	return andiron_walk_push(w, s->run.last_id, position);
}

/* The frame in s->stack, of a version that enters the loop once for several frames; 1: it was the
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
	s->run.coroutine = frame_byte(s, l->frame_owner) == P_OWNER_COROUTINE ? at : 0;
	if (l->frame_entry != PYTHON_NO_FIELD && frame_byte(s, l->frame_entry) != 0) {
		s->run.found = 1;
		return 1;
	}
	return 0;
}

/* Some frames; 1: there is no other. The verifier follows each of a step, so they are few. */
P_GLOBAL int python_step_frames(__u32 cpu)
{
	struct python_scratch *s = h_scratch();
	struct andiron_walk *w = h_walk(cpu);
	const struct python_layout *l;

	if (!s || !w)
		return 1;
	l = h_layout(s->run.layout);
	if (!l)
		return 1;
	for (__u32 i = 0; i < P_STEP; i++) {
		if (s->run.frame == 0)
			return 1;
		if (read_frame(l, s) != 0) {
			s->run.found = s->run.unreadable = 1;
			return 1;
		}
		if (take_frame(w, l, s) != 0)
			return 1;
		s->run.n_frames++;
	}
	return 0;
}

/* The frames of all outer activations, one a step. */
P_GLOBAL int python_step_rest(__u32 cpu)
{
	struct python_scratch *s = h_scratch();
	struct andiron_walk *w = h_walk(cpu);
	const struct python_layout *l;

	if (!s || !w || s->run.frame == 0)
		return 1;
	l = h_layout(s->run.layout);
	if (!l)
		return 1;
	if (read_frame(l, s) != 0) {
		s->run.unreadable = 1;
		return 1;
	}
	s->run.frame = frame_word(s, l->frame_previous);
	if (l->kind >= PYTHON_CFRAMES && l->frame_entry == PYTHON_NO_FIELD &&
	    frame_byte(s, l->frame_owner) >= 3)
		return 0;
	return push_frame(w, l, s);
}

/* To the first CFrame that is not below the activation. */
P_GLOBAL int python_step_anchor(__u32 cpu)
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
