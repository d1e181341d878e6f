/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the walker works with besides struct andiron_walk, and reads of the process. Ordinary C,
 * compiled into the BPF program and natively for tests. Who includes it defines before:
 *
 *   JVM_INLINE, JVM_GLOBAL    how functions are declared; the verifier walks a global one once
 *   h_walk(cpu)               struct andiron_walk * or NULL
 *   h_state(cpu)              struct jvm_state *, this CPU's own, or NULL
 *   h_read(to, n, address)    memory of the process; not 0: it is not there
 *   h_tables(state, pid)      entries and exits to state->process; not 0: they are not there
 *   h_reported(id)            the plugin has the name or site of this id
 *   h_report(report, n)       hands n bytes of one to the plugin, which h_reported() then knows
 *   h_place_find(place), h_place_put(place, id)    the site of a place, as it was found before
 *
 * (h for helper.)
 *
 * Everything read is untrusted: offsets come from a process's own tables, and its memory may be
 * forged. So offsets are masked to the buffer they index, sizes are bounded, and a frame is
 * believed when the structures it leads to agree with each other. */
#pragma once

#include <andiron/bpf/walk.h>

#include "jvm/walk/jvm-records.h"

#if defined(__TARGET_ARCH_arm64)
#define JVM_X86 0
#else
#define JVM_X86 1
#endif
/* DWARF's numbers of registers. */
#define JVM_SP  7
#define JVM_FP  6
#define JVM_RAX 0
#define JVM_RDX 1
#define JVM_RCX 2
#define JVM_RBX 3
#define JVM_R13 13

#define JVM_HEADER 512 /* of a blob, as much as is read */
#define JVM_MEMOS  8
#define JVM_READS  4000 /* of a walk: some 0.3 ms with interrupts off */

#define JVM_ADDRESSES (1ull << 47)

enum jvm_step {
	JVM_STEP_ON,     /* there may be another frame of the JVM's */
	JVM_STEP_NATIVE, /* pc is native code */
	JVM_STEP_LOST,
};

/* A method that this sample has met. */
struct jvm_memo {
	__u64 method;
	__u64 id;
	__u64 code;
	__u32 code_size;
	__u32 epoch;
};

struct jvm_state {
	struct jvm_process process;
	__u32 has_tables; /* `entries` and `exits` are this process's */
	__u32 epoch;      /* of the sample */
	__u32 cpu;
	__u32 reads; /* of the walk, roughly */
	__u32 switches;
	__u32 mark_at; /* where JVM_MARK_UNKNOWN was pushed last */

	/* The blob at hand. */
	__u64 blob;
	__u64 code;
	__u32 size;
	__u32 frame_complete;
	__u32 frame_size; /* bytes */
	__u32 nmethod;    /* is one */
	__u32 upcall;     /* is a stub by which native code calls Java */
	__u32 adapter;    /* jvm_stub_step(): makes no frame */
	__u32 stub_left;  /* the frame before was a stub's, in which the thread stands */
	__u32 compile_id;
	__u8 header[JVM_HEADER + 8];

	/* What the frames before had; 0: nothing yet. Recursion is frequent. */
	__u64 proved;  /* jvm_returns(): such an address */
	__u64 site_id; /* compiled_push(): the site of `place` */
	__u64 found;   /* jvm_frame_ends(): such a return address */

	/* jvm_prologue_step(): how far the entry has been read, and what it has done so far. */
	__u32 prologue_at, prologue_limit;
	__u32 pushed;         /* the caller's frame pointer */
	__u32 framed;         /* the stack pointer is the frame's */
	__u32 saved;          /* the caller's frame pointer is at its place in the frame */
	__u32 no_method_left; /* the frame before was a stub's or native code's */

	/* jvm_method_know(): asked for, and its answer. */
	__u64 method;
	__u64 id;
	__u64 bytecode;
	__u32 bytecode_size;
	__u64 told[4]; /* bytes_mix() */

	/* jvm_site_learn(): the place at hand. */
	__u32 offset;
	__u32 call;      /* it is a return address */
	__u32 pc_offset; /* of the PcDesc that holds there */
	__u32 index;
	__u64 pcs, scopes, metadata;
	__u32 n_pcs;
	__u32 scope;
	__u32 met, met_whole;

	__u64 words[16];
	__u8 bytes[176];
	__u8 const_method[128];
	struct jvm_memo memos[JVM_MEMOS];
	struct jvm_place place;
	struct jvm_name name;
	struct jvm_site site, other;
};

JVM_INLINE __u16 at16(const __u8 *p, __u32 at)
{
	return (__u16)(p[at] | p[at + 1] << 8);
}

JVM_INLINE __u32 at32(const __u8 *p, __u32 at)
{
	return (__u32)p[at] | (__u32)p[at + 1] << 8 | (__u32)p[at + 2] << 16 |
	       (__u32)p[at + 3] << 24;
}

/* Members of the blob's header. */
JVM_INLINE __u16 header16(const struct jvm_state *s, __u32 at)
{
	return *(const __u16 *)(const void *)(s->header + (at & (JVM_HEADER - 2)));
}

JVM_INLINE __u32 header32(const struct jvm_state *s, __u32 at)
{
	return *(const __u32 *)(const void *)(s->header + (at & (JVM_HEADER - 4)));
}

JVM_INLINE __u64 header64(const struct jvm_state *s, __u32 at)
{
	return *(const __u64 *)(const void *)(s->header + (at & (JVM_HEADER - 8)));
}

JVM_INLINE int user_address(__u64 a)
{
	return a >= 4096 && a < JVM_ADDRESSES;
}

/* A word of the process, 0 if it is not there. */
JVM_INLINE __u64 word_at(__u64 address)
{
	__u64 word = 0;

	if (h_read(&word, sizeof(word), address) != 0)
		return 0;
	return word;
}

JVM_INLINE __u64 mix(__u64 a, __u64 b)
{
	a ^= b;
	a *= 0xff51afd7ed558ccdull;
	a ^= a >> 32;
	return a;
}

/* Moves to the caller. Stacks grow downwards: one that does not shrink is not one. */
JVM_INLINE enum jvm_step step_to(struct andiron_walk *w, __u64 pc, __u64 sp, __u64 fp)
{
	if (sp <= w->regs[JVM_SP] || !user_address(pc))
		return JVM_STEP_LOST;
	w->pc = pc;
	w->regs[JVM_SP] = sp;
	w->regs[JVM_FP] = fp;
	w->known = 1u << JVM_SP | 1u << JVM_FP;
	w->exact = 0;
	return JVM_STEP_ON;
}
