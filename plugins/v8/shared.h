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
#define V8_FUNCTIONS 16384u
#define V8_RING      (1u << 19)
#define V8_RANGES    8u /* of code without a file, in a process */
#define V8_BLOBS                                                                                   \
	4u /* places of the embedded builtins: the file's, and copies near the heap's code */

/* Kinds of frames: bits 48 … 51 of the first word, whose bits 0 … 47 are a function's number (or
 * for V8_STUB the frame's own marker). */
#define V8_INTERPRETED 1u /* second word: the bytecode offset as the frame has it; V8_NOWHERE */
#define V8_COMPILED    2u /* second word: the address in compiled code, V8_EXACT; V8_NOWHERE */
#define V8_BUILTIN     3u /* a function that V8 itself brings; second word: address in its code */
#define V8_STUB        4u /* code without a function of its own; second word: address in its code */

#define V8_UNKNOWN 5u /* V8 is not known: what was not found */

#define V8_KIND(what)         ((what) >> 48 & 15)
#define V8_NUMBER(what)       ((what)&0xffffffffffffull)
#define V8_WHAT(kind, number) ((__u64)(kind) << 48 | (number))

#define V8_MARKS 64u /* kinds of frames that a marker may name */

#define V8_NOWHERE (~0ull)
#define V8_EXACT   (1ull << 63) /* execution stands at the address; else it is a return address */

/* Offsets of members, in bytes from the object's first. */
struct v8_layout {
	__u32 function_shared;     /* JSFunction → SharedFunctionInfo */
	__u32 shared_data;         /* its code; a small integer where V8 brings it */
	__u32 shared_name;         /* its name or ScopeInfo */
	__u32 shared_script;       /* its Script */
	__u32 shared_counts;       /* eight bytes: number of arguments, place of its token */
	__u32 shared_flags;        /* eight bytes: flags, number of its literal in the script */
	__u32 script_id;           /* a small integer, never used twice in an isolate */
	__u32 map_type;            /* Map → its 16 bits of type */
	__u32 type_bytecode_array; /* such a type */
	__s32 frame_bytecode;      /* from rbp: the bytecode array */
	__s32 frame_offset;        /* from rbp: the offset in it, as a small integer */
	/* Not 0: nothing else holds; frames are left by their chain alone. */
	__u32 unknown;
	/* Bit n: frames with marker n were called by V8's code, never by native code. */
	__u64 inner;
	/* Bit n: frames with marker n show nothing: they only lead from one to another. */
	__u64 quiet;
};

struct v8_range {
	__u64 from, to;
};

/* A process, by pid. */
struct v8_process {
	__u32 layout;     /* which of the layouts */
	__u32 generation; /* another one for each process and program that it runs */
	struct v8_range blobs[V8_BLOBS];
	struct v8_range
		handlers[V8_BLOBS]; /* bytecode handlers in them: they run in another's frame */
	struct v8_range code[V8_RANGES];
	/* Where V8 calls its collector with all registers on the stack: by hand, without a
	 * table. */
	struct v8_range spill;
};

/* A function by content: objects move and their memory is used again, yet what a script's number
 * and its literal's number name stays. */
struct v8_key {
	__u32 generation;
	__u32 pid;
	__u64 shared, name, script, script_id, counts, flags;
};

/* In the ring: a function or compiled code of it has been met. */
struct v8_met {
	__u64 number;
	__u64 code;     /* 0, or an address in compiled code of it */
	__u64 bytecode; /* 0, or its array of bytecodes */
	struct v8_key key;
};

/* Where a function was met last: 2 ** V8_PAGE bytes of compiled code, or its bytecodes. */
#define V8_PAGE 10u
struct v8_place {
	__u64 number, page;
};

/* The same place is told of again after some seconds, since code is replaced. */
#define V8_AGAIN_NS 4000000000ull
