/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Callers of the innermost frame. Its return address may be looked for in several places, of which
 * some hold what calls have left there that are over: real return addresses, but stale ones. So the
 * address alone proves nothing. What its caller needs must be there, too: the return address of a
 * compiled frame is where its size says, and an interpreted one has a method, and has kept the
 * stack pointer that it called with. */
#pragma once

#include "jvm/walk/code-blobs.h"
#include "jvm/walk/methods.h"

/* Bytes of arguments that a compiled method may have on the stack, and of what aligns it: a call
 * has 255 words. Where the place of the return address is not certain there are no arguments, so
 * that hardly another place fits. */
#define JVM_CALLED_WITH 2048
#define JVM_CALLED_NEAR 16

JVM_INLINE int frame_pointer_fits(__u64 fp, __u64 sp, __u64 limit)
{
	return fp >= sp && fp - sp < limit && !(fp & 7);
}

/* Does the interpreter go on at pc behind a call of Java code? No call stands before such code: its
 * address is pushed, and the method jumped to. It takes the stack pointer from the frame (as a
 * distance from JDK 22 on), or clears it there, where a compiled frame has become this one. */
JVM_INLINE int interpreter_resumes(const struct jvm_state *s, __u64 pc)
{
	__u64 code = word_at(pc), at = (__u64)(8 * (s->process.at.frame_method + 1)) & 0xff;
	__u32 first = (__u32)code, place = (__u32)at << 24;

	return first == (0x658b48 | place) || /* mov N(%rbp), %rsp */
	       first == (0x4d8b48 | place) || /* mov N(%rbp), %rcx */
	       code == (0x45c748 | place);    /* movq $0, N(%rbp) */
}

/* An interpreted frame that has called what returns to sp. A method handle takes its last argument
 * off. */
JVM_INLINE int interpreted_fits(__u32 cpu, struct jvm_state *s, __u64 sp, __u64 fp, __u64 limit)
{
	__u64 at = fp + 8ull * (__u64)(__s64)s->process.at.frame_method, called_with;

	if (!frame_pointer_fits(fp, sp, 1u << 24))
		return 0;
	called_with = word_at(at + 8);
	if ((__s64)called_with < 0)
		called_with = fp + 8 * called_with;
	if (called_with + 8 - sp > limit)
		return 0;
	s->method = word_at(at);
	return jvm_method_know(cpu) == 0;
}

/* Length of the pop of a register at b, 0: it is none. */
JVM_INLINE __u32 pop_bytes(const __u8 *b)
{
	if ((b[0] & 0xf8) == 0x58)
		return 1;
	return b[0] == 0x41 && (b[1] & 0xf8) == 0x58 ? 2 : 0;
}

/* C1 hands two words to the check of a subtype on the stack: push, push, call, pop, pop. Do they
 * lie above the frame of a call that returns to pc? */
JVM_GLOBAL int jvm_words_handed(__u32 cpu, __u64 pc)
{
	struct jvm_state *s = h_state(cpu);
	__u32 first;

	if (!s || h_read(s->bytes, 16, pc - 8) != 0 || s->bytes[3] != 0xe8 ||
	    (s->bytes[2] & 0xf8) != 0x50)
		return 0;
	first = pop_bytes(s->bytes + 8);
	return first && pop_bytes(s->bytes + 8 + first);
}

/* Length of the instruction at b: mov reg, reg; a load of any register from N(%rsp); vzeroupper. 0:
 * it is another. */
JVM_INLINE __u32 reload_bytes(const __u8 *b)
{
	__u32 at = b[0] == 0x62 ? 5 : b[0] == 0xc4 ? 4 : b[0] == 0xc5 ? 3 : 2; /* where ModRM is */

	if (b[0] == 0xc5 && b[1] == 0xf8 && b[2] == 0x77)
		return 3;
	if (b[0] == 0xf2 || b[0] == 0xf3 || b[0] == 0x66)
		at = (b[1] & 0xf0) == 0x40 ? 4 : 3;
	else if (at == 2 && ((b[0] & 0xf8) != 0x48 || b[1] != 0x8b))
		return 0;
	if (at == 2 && b[2] >= 0xc0)
		return 3;
	if ((b[at] & 7) != 4 || b[at + 1] != 0x24 || b[at] >= 0xc0)
		return 0;
	return at + 2 + (b[at] >> 6 == 1 ? 1 : b[at] >> 6 == 2 ? 4 : 0);
}

/* Goes over one instruction of s->bytes that gives a register back: where the next one is. */
JVM_GLOBAL int jvm_reload_skip(__u32 cpu, __u32 at)
{
	const struct jvm_state *s = h_state(cpu);

	return s && at <= 128 ? (int)(at + reload_bytes(s->bytes + at)) : (int)at;
}

/* A barrier's rare path, which compilers put behind the method, keeps registers and arguments below
 * the frame while it calls native code or a stub, which returns to pc:
 * [push %rax]; sub $N, %rsp; …; call; …; add $N, %rsp; [mov]; [pop %rax]; jmp.
 * Those bytes << 8, and how far behind pc that jump is; 0: the code is another. */
JVM_GLOBAL int jvm_registers_kept(__u32 cpu, __u64 pc)
{
	struct jvm_state *s = h_state(cpu);
	__u32 at = 0, before = ~0u, n, pop;
	const __u8 *b;

	if (!s || h_read(s->bytes, 144, pc) != 0)
		return 0;
	for (int i = 0; i < 24 && before != at; i++) {
		before = at;
		at = (__u32)jvm_reload_skip(cpu, at);
	}
	if (at > 128)
		return 0;
	b = s->bytes + at;
	n = b[1] == 0x83 ? b[3] : at32(b, 3);
	if (b[0] != 0x48 || (b[1] != 0x83 && b[1] != 0x81) || b[2] != 0xc4 ||
	    n > (b[1] == 0x83 ? 0x7f : 2048) || n & 15)
		return 0;
	at += b[1] == 0x83 ? 4 : 7;
	b = s->bytes + at;
	if ((b[0] & 0xf8) == 0x48 && b[1] == 0x8b && b[2] >= 0xc0)
		at += 3;
	pop = s->bytes[at] == 0x58;
	at += pop;
	if (s->bytes[at] != 0xe9 && s->bytes[at] != 0xeb)
		return 0;
	return (int)((n + 8 * pop) << 8 | at);
}

JVM_INLINE int compiled_fits(__u32 cpu, struct jvm_state *s, __u64 ret, __u64 sp, __u64 fp)
{
	if (jvm_blob_find(cpu, ret) != 0)
		return 0;
	if (!s->nmethod && s->frame_size < 16)
		return frame_pointer_fits(fp, sp, 1u << 16);
	if (s->nmethod && s->stub_left)
		sp += jvm_words_handed(cpu, ret) ? 16 : (__u32)jvm_registers_kept(cpu, ret) >> 8;
	if (s->frame_size >= 16)
		sp += s->frame_size - 8;
	return heap_of(s, word_at(sp)) >= 0;
}

/* Does a frame that returns to `ret`, with these sp and fp behind the return, have a caller there?
 * Then the blob at hand may be the caller's, else it is that of w->pc. `limit`: JVM_CALLED_WITH or
 * JVM_CALLED_NEAR. */
JVM_GLOBAL int jvm_caller_fits(__u32 cpu, __u64 ret, __u64 sp, __u64 fp, __u32 limit)
{
	struct jvm_state *s = h_state(cpu);
	struct andiron_walk *w = h_walk(cpu);
	int fits;

	if (!s || !w || !returns(s, ret))
		return 0;
	if (ret == s->process.call_stub) {
		__u64 native = word_at(fp + 8);

		return frame_pointer_fits(fp, sp, 4096) && user_address(native) &&
		       heap_of(s, native) < 0;
	}
	if (in_interpreter(s, ret))
		return (limit == JVM_CALLED_WITH || interpreter_resumes(s, ret)) &&
		       interpreted_fits(cpu, s, sp, fp, limit + 8);
	fits = compiled_fits(cpu, s, ret, sp, fp);
	if (!fits)
		jvm_blob_find(cpu, w->pc);
	return fits;
}
