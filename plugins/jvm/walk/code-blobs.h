/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From an address to the CodeBlob that it is in, as the JVM itself finds it: a code heap has a byte
 * for each segment, which says how many segments to go back to the start of its block; 255 is free.
 * A byte holds at most 254, so large blocks take several hops. */
#pragma once

#include "jvm/walk/state.h"

#define JVM_HOPS 32 /* of 254 segments: 1 MB of code with the smallest segments */

JVM_GLOBAL int jvm_heap_of(__u32 cpu, __u64 pc)
{
	const struct jvm_state *s = h_state(cpu);

	for (int i = 0; s && i < JVM_HEAPS; i++)
		if (pc - s->process.heaps[i].low <
		    s->process.heaps[i].high - s->process.heaps[i].low)
			return i;
	return -1;
}

/* Negative: in none. */
JVM_INLINE int heap_of(const struct jvm_state *s, __u64 pc)
{
	return jvm_heap_of(s->cpu, pc);
}

JVM_INLINE int in_interpreter(const struct jvm_state *s, __u64 pc)
{
	return pc - s->process.interpreter < s->process.interpreter_limit - s->process.interpreter;
}

JVM_INLINE int in_call_stub(const struct jvm_state *s, __u64 pc)
{
	__u32 before = s->process.call_stub_before;

	return pc - (s->process.call_stub - before) < before + s->process.call_stub_behind;
}

/* The blob's address, or 0. */
JVM_INLINE __u64 block_find(const struct jvm_state *s, int i, __u64 pc)
{
	const struct jvm_heap *heap = &s->process.heaps[i & (JVM_HEAPS - 1)];
	__u64 segment = (pc - heap->low) >> (heap->shift & 31), start;
	__u8 hop = 0, used = 0;
	int found = 0;

	for (int n = 0; n < JVM_HOPS; n++) {
		if (h_read(&hop, 1, heap->segments + segment) != 0 || hop == 255)
			return 0;
		if (hop == 0) {
			found = 1;
			break;
		}
		if (hop > segment)
			return 0;
		segment -= hop;
	}
	start = heap->low + (segment << (heap->shift & 31));
	if (!found || h_read(&used, 1, start + s->process.at.heap_used) != 0 || used != 1)
		return 0;
	return start + s->process.at.heap_header;
}

/* "nmethod" and "native nmethod"; the upcall stubs of a foreign function interface. */
#define JVM_NAME_NMETHOD 0x00646f6874656d6eull /* "nmethod\0" */
#define JVM_NAME_NATIVE  0x6e2065766974616eull /* "native n" */
#define JVM_NAME_UPCALL  0x735f6c6c61637075ull /* "upcall_s" */
/* Code that is called in another's place makes no frame: the stubs of vtables, the adapters between
 * interpreted and compiled code, and those of method handles. */
#define JVM_NAME_VTABLE  0x6320656c62617476ull /* "vtable c" */
#define JVM_NAME_ADAPTER 0x204932432f433249ull /* "I2C/C2I " */
#define JVM_NAME_HANDLES 0x6148646f6874654dull /* "MethodHa" */
/* What the interpreter calls to load a native method's arguments leaves the stack alone. */
#define JVM_NAME_LOADER 0x732065766974616eull /* "native s": signature handlers */

JVM_INLINE void blob_kind(struct jvm_state *s)
{
	const struct jvm_offsets *at = &s->process.at;
	__u64 name;

	if (at->blob_kind != JVM_NONE) {
		__u8 kind = s->header[at->blob_kind & (JVM_HEADER - 1)];

		s->nmethod = kind == at->kind_nmethod;
		s->upcall = kind == at->kind_upcall;
		return;
	}
	name = word_at(header64(s, at->blob_name));
	s->upcall = name == JVM_NAME_UPCALL;
	s->nmethod = name == JVM_NAME_NMETHOD || name == JVM_NAME_NATIVE;
}

/* The blob that pc is in becomes the one at hand. Not 0: there is none. */
JVM_GLOBAL int jvm_blob_find(__u32 cpu, __u64 pc)
{
	struct jvm_state *s = h_state(cpu);
	const struct jvm_offsets *at;
	__u64 blob;
	__u32 n;
	int heap;

	if (!s)
		return 1;
	if (s->blob && pc >= s->code && pc - s->blob < s->size)
		return 0;
	at = &s->process.at;
	n = at->nmethod_bytes < JVM_HEADER ? at->nmethod_bytes : JVM_HEADER;
	heap = heap_of(s, pc);
	blob = heap < 0 ? 0 : block_find(s, heap, pc);
	if (!blob)
		return 1;
	s->blob = 0;
	if (h_read(s->header, n, blob) != 0) {
		/* What is behind the shorter header is not the last blob's. */
		__builtin_memset(s->header, 0, sizeof(s->header));
		n = at->blob_bytes < JVM_HEADER ? at->blob_bytes : JVM_HEADER;
		if (h_read(s->header, n, blob) != 0)
			return 1;
	}
	s->size = header32(s, at->blob_size);
	s->code = at->flags & JVM_CODE_POINTER ? header64(s, at->blob_code)
					       : blob + header32(s, at->blob_code);
	s->frame_size = header32(s, at->blob_frame_size);
	s->frame_complete = at->flags & JVM_SHORT_COMPLETE
				    ? (__u32)(__s32)(__s16)header16(s, at->blob_frame_complete)
				    : header32(s, at->blob_frame_complete);
	if (s->code - blob >= s->size || pc - blob >= s->size || pc < s->code)
		return 1;
	s->blob = blob;
	s->frame_size = (__s32)s->frame_size < 0 || s->frame_size > 1u << 20 ? 0
									     : s->frame_size * 8;
	blob_kind(s);
	s->compile_id = s->nmethod ? header32(s, at->nmethod_compile_id) : 0;
	return 0;
}

/* Stands an address behind a call: one by its distance, or one through a register or memory (ff /2,
 * whose length is its operand's)? */
JVM_GLOBAL int jvm_behind_call(__u32 cpu, __u64 pc)
{
	struct jvm_state *s = h_state(cpu);
	int is;

	if (!s || h_read(s->bytes, 8, pc - 8) != 0)
		return 0;
	is = s->bytes[3] == 0xe8;
	for (int i = 1; i < 7; i++)
		is |= i != 3 && s->bytes[i] == 0xff && (s->bytes[i + 1] & 0x38) == 0x10;
	return is;
}

/* Is it where a call in Java code returns to? Every such address stands behind a call. */
JVM_GLOBAL int jvm_returns(__u32 cpu, __u64 pc)
{
	struct jvm_state *s = h_state(cpu);

	if (!s || pc == 0)
		return 0;
	if (pc == s->process.call_stub || in_interpreter(s, pc) || pc == s->proved)
		return 1;
	if (heap_of(s, pc) < 0 || !jvm_behind_call(cpu, pc))
		return 0;
	s->proved = pc;
	return 1;
}

/* Is it where a call of the blob at hand returns to? */
JVM_GLOBAL int jvm_returns_here(__u32 cpu, __u64 pc)
{
	struct jvm_state *s = h_state(cpu);
	__u64 to;

	if (!s || heap_of(s, pc) < 0 || h_read(s->bytes, 16, pc - 16) != 0)
		return 0;
	if (s->bytes[11] == 0xe8) {
		to = pc + (__u64)(__s64)(__s32)at32(s->bytes, 12);
		return to - s->blob < s->size;
	}
	/* movabs $to, %r10; call *%r10 */
	if (s->bytes[3] == 0x49 && s->bytes[4] == 0xba && s->bytes[13] == 0x41 &&
	    s->bytes[14] == 0xff && s->bytes[15] == 0xd2) {
		to = (__u64)at32(s->bytes, 5) | (__u64)at32(s->bytes, 9) << 32;
		return to - s->blob < s->size;
	}
	return 0;
}

JVM_INLINE int returns(const struct jvm_state *s, __u64 pc)
{
	return jvm_returns(s->cpu, pc);
}
