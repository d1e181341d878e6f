/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The state of one walk over the stack of the interrupted thread: what the sampler's native walker
 * and the programs of language runtimes hand to each other. One value for each CPU, in the array
 * map `walks`, by number of CPU; a program on a CPU has it alone while it runs.
 *
 * When the walk reaches code that a runtime claims, the sampler tail-calls the runtime's program.
 * pc, sp and the frame pointer are those of that frame, and nothing has been written down for it
 * yet. The program appends its frames (andiron_walk_push). Then it leaves the frame, in one of two
 * ways: it moves the registers to the native frame that called its own and says in `exact` whether
 * pc is a return address; or it leaves pc and registers as they are and says in `native` that the
 * sampler is to leave the frame by its own unwind tables. At last it tail-calls slot
 * ANDIRON_WALK_RESUME of the map `programs`.
 *
 * A program that cannot go on sets `end` to ANDIRON_WALK_GAVE_UP and resumes as well. The stack
 * then says so: "[truncated]" where frames found no room, else "[runtime]". So only the outer end
 * of a stack is cut. A program that does not resume loses the sample, which is counted.
 *
 * A walk of more than ANDIRON_WALK_SWITCHES round trips goes on in task work where the kernel has
 * it (6.18). The program is called there, too, by another event, so it uses its context for tail
 * calls only.
 *
 * Read by C11 and by `-target bpf`; a program that has the kernel's types from BTF defines
 * __VMLINUX_H__, as generated headers do. */
#ifndef ANDIRON_BPF_WALK_H
#define ANDIRON_BPF_WALK_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

/* Changes when a member moves or its meaning does; a program made for another is refused. */
#define ANDIRON_WALK_VERSION 4u

#define ANDIRON_WALK_RESUME   0u  /* slot of the map `programs` */
#define ANDIRON_WALK_CONTINUE 15u /* the sampler's own, and those behind it */
#define ANDIRON_WALK_ROUND    16u
#define ANDIRON_WALK_SNAPSHOT 17u
#define ANDIRON_WALK_SAMPLE   18u
#define ANDIRON_WALK_SLOTS    19u /* those from 1 on below CONTINUE are the runtimes' */
#define ANDIRON_WALK_SWITCHES 14u /* round trips that one stack may make in one go */

/* Words for frames: the kernel's 127, and 1,024 others. */
#define ANDIRON_WALK_KERNEL 127u
#define ANDIRON_WALK_USER   1024u
#define ANDIRON_WALK_WORDS  (ANDIRON_WALK_KERNEL + ANDIRON_WALK_USER)

#define ANDIRON_WALK_GAVE_UP 11u /* `end` of a program that cannot go on */

/* `native`: the frame at pc is left by the sampler's tables, as if nobody had claimed its code. */
#define ANDIRON_WALK_LEAVE 1u /* and is not shown: the program's frames stand for it */
#define ANDIRON_WALK_SHOW  2u /* and is shown, behind the program's frames */
#define ANDIRON_WALK_REST  3u /* and is shown, and claimed code behind it is walked as others' */

struct andiron_walk {
	__u32 version;
	__u32 end; /* 0 while the walk goes on */
	__u64 pc;
	__u32 exact;    /* 1: execution stands at pc; 0: pc is a return address */
	__u32 n_words;  /* of frames, in use */
	__u32 n_kernel; /* words that are the kernel's, the first ones */
	__u32 slot;     /* of the runtime that is called, or was last */
	__u16 switches; /* runtimes called so far */
	/* 1: no runtime can be called again for this stack. It ends at the next claimed code,
	 * unless the program sets ANDIRON_WALK_REST. */
	__u16 last;
	__u32 known; /* bit n: regs[n] has a value */
	/* The process that `claim` was called for: the current one, or its parent, where it was
	 * only forked and is not known itself yet. What it says of memory holds in both. */
	__u32 pid;
	__u32 native;  /* ANDIRON_WALK_LEAVE, SHOW or REST; 0 when the program is called */
	__u64 space;   /* the sampler's own */
	__u64 own;     /* the sampler's own */
	__u64 row;     /* the sampler's own */
	__u32 chain;   /* the sampler's own */
	__u16 n_chain; /* the sampler's own */
	__u16 careful; /* the sampler's own */
	__u64 mark[5]; /* the sampler's own */
	/* By DWARF number: on x86-64 rbp is 6 and rsp 7, on arm64 x29 is 29 and sp 31. */
	__u64 regs[32];
	__u64 head[9]; /* the sampler's own */
	/* Leaf first. A native frame is its address, already moved back into the call; a runtime's
	 * is two words: slot << 56 | 56 bits of the runtime's, and 64 bits of the runtime's. */
	__u64 frames[ANDIRON_WALK_WORDS];
};

/* Appends a word; 0, or 1 if there is no room. */
static inline int andiron_walk_word(struct andiron_walk *w, __u64 word)
{
	__u32 n = w->n_words;

	if (n >= ANDIRON_WALK_WORDS)
		return 1;
	w->frames[n] = word;
	w->n_words = n + 1;
	return 0;
}

/* Appends a runtime's frame; 0, or 1 if there is no room for the whole of it. */
static inline __attribute__((unused)) int andiron_walk_push(struct andiron_walk *w, __u64 what,
							    __u64 where)
{
	if (w->n_words + 2 > ANDIRON_WALK_WORDS)
		return 1;
	return andiron_walk_word(w, (__u64)w->slot << 56 | (what & 0xffffffffffffffull)) ||
	       andiron_walk_word(w, where);
}

#endif
