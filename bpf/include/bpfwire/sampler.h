/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The wire between the sampling programs and user space: keys and values of maps, and the records
 * of logs and ring.
 *
 * Each CPU writes its samples into a log of its own, which user space has mapped; into the ring
 * where the log is full or there is none. A log has two buffers, of which one is active. The reader
 * makes the other one active, waits until no program runs that saw the former, reads the former,
 * and clears it. A sample takes no lock and searches nothing; user space adds up what is equal. For
 * each buffer, once it is quiet:
 *
 *     taken = samples in logs and ring + ring_full + unfinished
 *
 * A sample of waiting (off-CPU) has its stack walked when the thread leaves its CPU. It is kept in
 * the map `waits`, and is taken when the thread is back, with the time that has passed.
 *
 * A process whose mappings are not known cannot be walked, nor a stack with a page that is not in
 * memory. Of such a sample a snapshot is sent, which is registers and stack; user space walks it
 * when it has read the mappings. An id joins the sample and its snapshot. */
#pragma once

#ifndef KERNEL_TYPES_H
#include <linux/types.h>
#endif

#include <andiron/bpf/walk.h>

#define SAMPLER_COMM_SIZE 16
#define SAMPLER_BUFFERS   2

/* What is sampled. */
#define SAMPLER_ALL     0 /* everything */
#define SAMPLER_PIDS    1 /* the processes in `selected` */
#define SAMPLER_CGROUPS 2 /* these, and those in a cgroup of `cgroups`; unknown cgroups are taken */

/* A process: tgid, and its leader's start since boot, because pids are reused. */
struct sampler_process_key {
	__u64 start_ns;
	__u32 tgid;
	__u32 zero;
};

/* Whose a sample is. comm and tid are zero unless they were asked for. */
struct sampler_key {
	struct sampler_process_key process;
	__u64 cgroup;
	char comm[SAMPLER_COMM_SIZE];
	__u32 tid;
	__u32 zero;
};

/* Per CPU and buffer. */
struct sampler_counters {
	__u64 taken;
	__u64 idle;
	__u64 unselected;
	__u64 ring_full;  /* the ring, and the log before it; or `waits` */
	__u64 unfinished; /* a runtime's program did not come back */
};

/* What a CPU keeps for each buffer; one cache line. */
struct sampler_counts {
	struct sampler_counters counters;
	__u32 n_words; /* of the log, in use */
	__u32 n_open;  /* samples that waited for a snapshot, ever: a serial number for ids */
	__u64 zero[2];
};

/* A process as a CPU saw it last; one cache line. */
struct sampler_known {
	struct sampler_process_key key;
	__u64 groups;        /* the kernel's css_set, by address */
	__u64 cgroup;        /* the cgroup id that was found by it */
	__u64 exec, exec_vm; /* sampler_task.exec; executable pages */
	__u32 reported;      /* the config's epoch + 1 when it was known to be reported, else 0 */
	__u32 space;         /* slot of its address space + 1; 0: none */
	__u64 generation;    /* of its mappings */
};

#define SAMPLER_KNOWN 32 /* a power of two */

#define SAMPLER_BUSY_NOT    0
#define SAMPLER_BUSY_SAMPLE 1
#define SAMPLER_BUSY_ROUND  2 /* in task work; plus the slot of the walk (continuation.bpf.c) */

#define SAMPLER_OFF_CPU_NOT   0
#define SAMPLER_OFF_CPU_ASKED 1 /* of the sample that begins next */
#define SAMPLER_OFF_CPU_TAKEN 2

/* The sample that is being walked; one cache line. */
struct sampler_pending {
	struct sampler_key key;
	__u16 buffer;
	__u16 busy;  /* SAMPLER_BUSY_*: a walk is under way */
	__u32 stale; /* its mappings are no longer those of its address space */
	__u32 off_cpu; /* SAMPLER_OFF_CPU_*: the thread leaves its CPU */
	__u32 zero;
};

struct sampler_cpu {
	struct sampler_counts counts[SAMPLER_BUFFERS];
	struct sampler_pending pending;
	struct sampler_known known[SAMPLER_KNOWN];
};

static inline __attribute__((always_inline)) struct sampler_known *
sampler_known_of(struct sampler_cpu *state, const struct sampler_process_key *key)
{
	return &state->known[key->tgid & (SAMPLER_KNOWN - 1)];
}

/* Read by the programs on every run, written by user space at any time. */
struct sampler_config {
	__u32 active; /* buffer */
	__u32 mode;
	__u32 with_comm;
	__u32 with_tid;
	__u32 with_kernel;
	__u32 epoch;        /* changes when a reported process is forgotten */
	__u32 continuation; /* walks with too many entries into runtimes go on in task work */
	/* How many of 2^32 - 1 switches away from a thread are sampled; 0: none. */
	__u32 off_cpu;
};

/* `selected`, by tgid: root is the process it descends from. */
struct sampler_selected {
	__u32 root;
	__u32 follow;
};

/* `processes`: what the last SAMPLER_RECORD_PROCESS was sent for. asked_ns bounds the rate of
 * snapshots for unknown addresses: each moves it on by an interval. */
struct sampler_process_state {
	__u64 exec;
	__u64 exec_vm;
	__u64 sent_ns, asked_ns;
};

#define SAMPLER_RECORD_STACK    1
#define SAMPLER_RECORD_PROCESS  2
#define SAMPLER_RECORD_SNAPSHOT 3
#define SAMPLER_RECORD_MAPPED   4
#define SAMPLER_RECORD_MORE     5

#define SAMPLER_STACK_OFF_CPU    1 /* of a wait, which has ended */
#define SAMPLER_STACK_KERNEL_CUT 2 /* the kernel's walk ended for lack of room */
#define SAMPLER_STACK_EXEC       0xfffcu

/* The part of `flags` that tells program images of a process apart, by unwind_generation: before
 * and after an exec, one address may be two functions. 0: not known. */
static inline __u16 sampler_stack_exec(__u64 generation)
{
	return (__u16)(generation >> 48) & SAMPLER_STACK_EXEC;
}

/* A sample. Frames follow: the kernel's, then the process's, leaf first. Kernel frames are
 * addresses; all but the first are return addresses. The process's are words as in
 * andiron_walk.frames. */
struct sampler_stack {
	__u32 type;
	__u16 n_kernel;
	__u16 n_user; /* words */
	__u16 buffer;
	__u16 flags; /* SAMPLER_STACK_* */
	__u32 end;   /* UNWIND_END_*: of the process's frames */
	__u64 id;    /* 0: nothing will complete it. SAMPLER_STACK_OFF_CPU: ns of the wait */
	struct sampler_key key;
};

static inline int sampler_is_wait(const struct sampler_stack *stack)
{
	return (stack->flags & SAMPLER_STACK_OFF_CPU) != 0;
}

#define SAMPLER_STACK_WORDS ((__u32)(sizeof(struct sampler_stack) / sizeof(__u64)))

/* Room for the largest record behind the end of a log. */
#define SAMPLER_LOG_SPARE (SAMPLER_STACK_WORDS + ANDIRON_WALK_WORDS)

/* A wait: `waits`, by thread. Its stack record, with the time at which it began for an id. What of
 * a stack finds no room there is cut off at its outer end. */
#define SAMPLER_WAITS      4096
#define SAMPLER_WAIT_WORDS 256u

struct sampler_wait {
	__u64 words[SAMPLER_WAIT_WORDS];
};

/* Set in the id of a completed stack's record, which replaces the sample's if it comes in time. */
#define SAMPLER_STACK_COMPLETED (1ull << 63)

#define SAMPLER_PROCESS_KTHREAD  1
#define SAMPLER_PROCESS_LAUNCHED 2 /* reported by exec (launch.bpf.c): it goes on mapping code */

/* A process was sampled for the first time, or with other mappings than before. Wakes the
 * reader. */
struct sampler_process {
	__u32 type;
	__u32 flags;
	struct sampler_process_key key, parent;
	__u64 cgroup;
	__u32 root; /* from `selected`, else 0 */
	__u32 zero;
	__u64 generation;             /* unwind_generation, 0 without memory */
	char comm[SAMPLER_COMM_SIZE]; /* of the leader */
};

/* The stack of a snapshot is copied in pieces, up to the first that is not present. Pieces are
 * aligned, so the last one ends with the stack's last page. */
#define SAMPLER_SNAPSHOT_BYTES 16384
#define SAMPLER_SNAPSHOT_PIECE 512

static inline __u64 sampler_snapshot_start(__u64 stack_pointer)
{
	return stack_pointer & ~(__u64)(SAMPLER_SNAPSHOT_PIECE - 1);
}

/* Task work takes more than one part of SAMPLER_SNAPSHOT_BYTES: all of a stack up to
 * SAMPLER_SNAPSHOT_PARTS; of a deeper one, which is mostly one huge frame, SAMPLER_SNAPSHOT_INNER
 * parts and SAMPLER_SNAPSHOT_OUTER of its outer end. It takes the stack on which the walk may
 * continue, too: Go's other one (bpf/task-work/go-stacks.h), or the one that a signal interrupted
 * (bpf/task-work/signal-stack.h).
 *
 * Each further part is a record SAMPLER_RECORD_MORE with the snapshot's id. All come before the
 * snapshot, whose own part is the first of the sampled stack. The parts of a copy are numbered from
 * SAMPLER_SNAPSHOT_PARTS times its sampler_snapshot_copy on, upwards. */
enum sampler_snapshot_copy {
	SAMPLER_COPY_STACK, /* the sampled one, upwards from the stack pointer */
	SAMPLER_COPY_OUTER, /* its outer end */
	SAMPLER_COPY_OTHER, /* the thread's other one */
	SAMPLER_COPIES,
};

#define SAMPLER_SNAPSHOT_PARTS 24
#define SAMPLER_SNAPSHOT_INNER 8
#define SAMPLER_SNAPSHOT_OUTER 4

/* Most memory for deferred snapshots, the kernel's share included. */
#define SAMPLER_DEFERRED_BYTES (1u << 20)

/* All but `stack`, of which only the first n bytes are sent. */
#define SAMPLER_SNAPSHOT_HEAD ((__u32) __builtin_offsetof(struct sampler_snapshot, stack))

/* What continues the walk of the stack record `id` of buffer `buffer` from its last frame on. Sent
 * where sampler_is_open (bpf/sampler/sample.h) says so. Wakes the reader. */
struct sampler_snapshot {
	__u32 type;
	__u32 buffer;
	__u64 id;
	struct sampler_process_key key;
	__u64 generation;
	__u64 pc;
	__u64 regs[32]; /* regs, known and exact as in andiron_walk */
	__u32 known;
	__u32 exact;
	__u32 n;   /* bytes of the stack */
	__u32 end; /* why the walk ended: UNWIND_END_* */
	__u64 part;
	__u64 at; /* address of `stack` */
	__u8 stack[SAMPLER_SNAPSHOT_BYTES];
};

/* The executable mappings of a process, listed by the process itself on its way back to user mode.
 * Sent before the snapshot of an unknown process, which may be gone when its record is read. */
#define SAMPLER_MAPPED_MAX      128
#define SAMPLER_MAPPED_VDSO     1
#define SAMPLER_MAPPED_WRITABLE 2

struct sampler_mapping {
	__u64 start, end, offset;
	__u64 inode;     /* 0: no file */
	__s64 change_ns; /* of the inode */
	__u32 device;    /* major << 20 | minor */
	__u32 inode_generation;
	__u64 flags;
};

struct sampler_mapped {
	__u32 type;
	__u32 n;
	struct sampler_process_key key;
	__u64 generation;
	__u64 total; /* mappings; those above SAMPLER_MAPPED_MAX are not here */
	struct sampler_mapping list[SAMPLER_MAPPED_MAX];
};

/* All but the list, of which only the first n are sent. */
#define SAMPLER_MAPPED_HEAD ((__u32) __builtin_offsetof(struct sampler_mapped, list))

_Static_assert((SAMPLER_KNOWN & (SAMPLER_KNOWN - 1)) == 0, "sampler_known_of masks");
_Static_assert(SAMPLER_SNAPSHOT_BYTES % SAMPLER_SNAPSHOT_PIECE == 0, "whole pieces");
_Static_assert(SAMPLER_SNAPSHOT_INNER + SAMPLER_SNAPSHOT_OUTER <= SAMPLER_SNAPSHOT_PARTS, "fit");
_Static_assert(sizeof(struct sampler_process_key) == 16, "no padding in a key");
_Static_assert(sizeof(struct sampler_key) == 48, "no padding in a key");
_Static_assert(sizeof(struct sampler_counts) == 64, "one cache line");
_Static_assert(sizeof(struct sampler_known) == 64, "one cache line");
_Static_assert(sizeof(struct sampler_stack) == 72, "no padding");
_Static_assert(sizeof(struct sampler_stack) == sizeof(((struct andiron_walk *)0)->head),
	       "stands before the frames");
_Static_assert(sizeof(struct sampler_pending) == 64, "one cache line");
_Static_assert(sizeof(struct sampler_process) == 80, "fixed");
