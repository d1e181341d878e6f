/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the BPF program and the plugin hand to each other: where a V8 keeps what a walk reads, whose
 * code is where in a process, and the words that a frame is written down as.
 *
 * Read by C11 and by `-target bpf`. */
#pragma once

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define V8_LAYOUTS   64u   /* different binaries that one session walks */
#define V8_PROCESSES 1024u /* processes at once */
#define V8_PLACES    16384u
#define V8_RECENT    64u /* of the places, on each CPU */
#define V8_RING      (1u << 19)
#define V8_SEGMENTS  128u /* of a process's addresses: 30 threads with a V8 each */

/* Kinds of frames: bits 48 … 51 of the first word. Bits 0 … 47 are a function's id, or for V8_STUB
 * the frame's own marker. */
#define V8_INTERPRETED 1u /* second word: the bytecode offset as the frame has it; V8_NOWHERE */
#define V8_COMPILED    2u /* second word: the address in compiled code, V8_EXACT; V8_NOWHERE */
#define V8_BUILTIN     3u /* a built-in function; second word: address in its code */
#define V8_STUB        4u /* code without a function of its own; second word: address in its code */
#define V8_CALLED      5u /* unknown code; second word: its return address */
#define V8_UNKNOWN     6u /* the marked frame of a V8 that is not known */
#define V8_WASM        7u /* code of Wasm; as V8_COMPILED, its instance in place of a function */

#define V8_KIND(what)     ((what) >> 48 & 15)
#define V8_ID(what)       ((what)&0xffffffffffffull)
#define V8_WHAT(kind, id) ((__u64)(kind) << 48 | (id))

#define V8_MARKS 64u /* kinds of frames that a marker may name */

/* The second word of a frame of V8_COMPILED, V8_BUILTIN, V8_STUB or V8_WASM. */
#define V8_NOWHERE (~0ull)
#define V8_EXACT   (1ull << 63) /* execution stands at the address; else it is a return address */
/* Which compilation stood there (v8_compilation); 0: it had not been read yet. */
#define V8_COMPILATION(where) ((where) >> 48 & 0x7fff)
#define V8_ADDRESS(where)     ((where)&0xffffffffffffull)

/* Offsets of members, in bytes from the object's first. */
struct v8_layout {
	__u32 function_shared;     /* JSFunction → SharedFunctionInfo */
	__u32 shared_data;         /* its code; a small integer where V8 brings it */
	__u32 shared_name;         /* its name or ScopeInfo */
	__u32 shared_script;       /* its Script */
	__u32 shared_counts;       /* eight bytes: number of arguments, place of its token */
	__u32 shared_flags;        /* eight bytes: flags, number of its literal; last of these */
	__u32 script_id;           /* a small integer, never used twice in an isolate */
	__u32 map_type;            /* Map → its 16 bits of type */
	__u32 type_bytecode_array; /* such a type */
	__s32 frame_bytecode;      /* from rbp: the bytecode array */
	__s32 frame_offset;        /* from rbp: the offset in it, as a small integer */
	/* Where in the builtins those are that run in an interpreted function's frame. */
	__u32 handlers_from, handlers_to;
	/* Not 0: nothing else holds; frames are left by their chain alone. */
	__u32 unknown;
	/* Bit n: only V8's code calls what has frames with marker n, never native code. */
	__u64 called_by_v8;
	/* Bit n: frames with marker n are not shown: they only lead from one to another. */
	__u64 hidden;
	/* Bit n: frames with marker n are of Wasm code, and have its instance. */
	__u64 wasm;
};

/* What an address is in. */
#define V8_IN_NONE    0u
#define V8_IN_CODE    1u /* compiled, or of a regular expression or Wasm */
#define V8_IN_BLOB    2u /* the embedded builtins: the file's, or a copy near compiled code */
#define V8_IN_HANDLER 3u /* of them, runs in an interpreted function's frame; never a segment */
/* V8's call of its collector with all registers on the stack (PushAllRegistersAndIterateStack): by
 * hand, without an unwind table. */
#define V8_IN_COLLECTOR_CALL 4u

/* A segment reaches from its address to the next one's. */
#define V8_SEGMENT(from, in) ((__u64)(from) << 8 | (in))
#define V8_SEGMENT_NONE      (~0ull >> 1) /* behind all addresses */

/* A process, by pid. */
struct v8_process {
	__u32 layout;     /* which of the layouts */
	__u32 process_id; /* another one for each process and program that it runs */
	__u64 seed;       /* secret, of this process: what it holds cannot make two ids equal */
	/* Ascending; the first one begins at 0, those that are not used are V8_SEGMENT_NONE. */
	__u64 segments[V8_SEGMENTS];
};

/* A function by what its SharedFunctionInfo holds. Objects move and their memory is used again,
 * but a script's number is never used twice, nor a literal's in a script. */
struct v8_key {
	__u64 process_id;
	__u64 shared, name, script, script_id, counts, flags;
};

/* In the ring: a function was seen on a stack, in a place that was not reported lately. */
struct v8_sighting {
	__u64 function; /* its id */
	__u64 code;     /* 0, or an address in compiled code of it */
	__u64 bytecode; /* 0, or its array of bytecodes */
	__u64 instance; /* 0, or it is no function, but code of Wasm with this instance */
	struct v8_key key;
};

/* Where a function was seen last: 2 ** V8_PAGE bytes of compiled code, or its bytecodes. */
#define V8_PAGE 10u
/* All of an instance's functions have one id, and each begins at a multiple of this. */
#define V8_WASM_PAGE 5u
struct v8_place {
	__u64 function, page;
};

#define V8_HEADER 4u /* words of an object that holds code: its first ones */

/* What is known of a place. The plugin writes it anew when it has read all of it. */
struct v8_place_state {
	__u64 again_ns; /* it is reported again from then on */
	__u64 header;   /* where the object stands that holds the code; 0: not known */
	__u64 compilation;
	__u64 start, end; /* of the code */
};

/* Whether what is known is of the code at an address. A place may have two of one function: V8
 * often puts code beside what it replaces. */
static inline __attribute__((unused)) int v8_place_has(const struct v8_place_state *s, __u64 code)
{
	return s->header == 0 || code - s->start <= s->end - s->start;
}

/* What could not be read may be there some seconds later; what was read may have left the cache. */
#define V8_AGAIN_NS 4000000000ull
#define V8_KNOWN_NS 60000000000ull
/* Two codes of one place may be at work in turn. */
#define V8_OTHER_NS 250000000ull

/* Whether a place was read so short a time ago that its other code is not to be read yet, by either
 * of the times after which it is read again. */
static inline __attribute__((unused)) int v8_place_is_new(const struct v8_place_state *s, __u64 now)
{
	__u64 left = s->again_ns - now - 1;

	return s->header != 0 && (left - (V8_KNOWN_NS - V8_OTHER_NS) < V8_OTHER_NS ||
				  left - (V8_AGAIN_NS - V8_OTHER_NS) < V8_OTHER_NS);
}

static inline __attribute__((unused)) struct v8_place v8_place_of(const struct v8_sighting *s)
{
	__u64 page = s->code >> (s->instance ? V8_WASM_PAGE : V8_PAGE);
	struct v8_place place = {s->function, s->bytecode ? ~0ull : page};

	return place;
}

static inline __u64 v8_mix(__u64 h, __u64 word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 32;
}

/* A function's id, which both sides can tell. Never 0. */
static inline __attribute__((unused)) __u64 v8_function_id(__u64 seed, const struct v8_key *k)
{
	__u64 h = v8_mix(seed, k->process_id);

	h = v8_mix(h, k->shared);
	h = v8_mix(h, k->name);
	h = v8_mix(h, k->script);
	h = v8_mix(h, k->script_id);
	h = v8_mix(h, k->counts);
	h = v8_mix(h, k->flags);
	return (h & 0xffffffffffffull) | 1;
}

/* Tells code from what it replaces, by the first words of its object. From 1 to 0x7ffe. */
static inline __attribute__((unused)) __u64 v8_compilation(__u64 seed, const __u64 *header)
{
	__u64 h = seed;

	for (__u32 i = 0; i < V8_HEADER; i++)
		h = v8_mix(h, header[i]);
	return (h & 0x3fff) + 1;
}
