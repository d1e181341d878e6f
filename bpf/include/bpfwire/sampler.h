/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The wire between the sampling program and user space: the keys and values of its maps and the
 * records of its ring.
 *
 * Every CPU writes its samples down by itself, one behind the other, in a log that user space has mapped, of
 * two buffers of which one is active; where it is full, in the ring. So a sample takes no lock and searches
 * nothing: six of seven are of a stack that was not met before in an interval, and what is equal is for user space to add up.
 * Who reads makes the other buffer active, waits until no program runs any more that saw the old
 * one, has it for itself, and clears it. For each buffer, once it is quiet:
 *
 *     taken = samples in logs and ring + ring_full + new_cpu + unfinished
 *
 * A process whose mappings are not known yet cannot be walked. Of its samples the registers and
 * what is on the stack are sent (a snapshot), for user space to walk when it has read them; such a
 * sample has an id. */
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

/* Whose a sample is. comm is zero unless it was asked for. */
struct sampler_key {
	struct sampler_process_key process;
	__u64 cgroup;
	char comm[SAMPLER_COMM_SIZE];
};

/* Per CPU and buffer. */
struct sampler_counters {
	__u64 taken;
	__u64 idle;
	__u64 unselected;
	__u64 ring_full;  /* and the log */
	__u64 new_cpu;    /* the CPU has no log: it came online after the start */
	__u64 unfinished; /* a runtime's program did not come back */
};

/* What a CPU keeps for each buffer; one cache line. */
struct sampler_counts {
	struct sampler_counters counters;
	__u32 n_words; /* of the log, in use */
	__u32 n_open;  /* samples with an id, ever */
	__u64 zero;
};

/* Tells a program image of a process from the ones before, by address and start_stack of its
 * mm_struct: the address alone may be that of one which an exec has given up, and the one after
 * that got. */
static inline __u64 sampler_exec_generation(__u64 mm, __u64 start_stack)
{
	return (mm ^ start_stack << 16) | 1;
}

/* A process as a CPU saw it last; one cache line. */
struct sampler_known {
	struct sampler_process_key key;
	__u64 groups; /* identity of its set of cgroups */
	__u64 cgroup; /* what that led to */
	__u64 exec, exec_vm;
	__u32 reported;   /* the config's epoch + 1 when it was known to be reported, else 0 */
	__u32 space;      /* its place in `spaces` + 1, 0: has none */
	__u64 generation; /* of its mappings */
};

#define SAMPLER_KNOWN 32 /* a power of two */

#define SAMPLER_BUSY_NOT    0
#define SAMPLER_BUSY_SAMPLE 1
#define SAMPLER_BUSY_ROUND  2 /* and the place of the walk: continuation.h */

/* The sample that is being walked; one cache line. */
struct sampler_pending {
	struct sampler_key key;
	__u16 buffer;
	__u16 busy;  /* SAMPLER_BUSY_*: a walk is under way */
	__u32 stale; /* its mappings are not those of its space any more */
	__u64 zero[2];
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
	__u32 with_kernel;
	__u32 epoch;        /* changes when a reported process is forgotten */
	__u32 continuation; /* walks of too many round trips go on in task work */
};

/* `selected`, by tgid: root is the process it descends from. */
struct sampler_selected {
	__u32 root;
	__u32 follow;
};

/* `processes`: what the last SAMPLER_RECORD_PROCESS was sent for, and up to when it has been looked at for
 * addresses that nobody knows, each time counted as an interval. */
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

#define SAMPLER_STACK_KERNEL_CUT 2 /* the kernel's walk ended for lack of room */
#define SAMPLER_STACK_EXEC       0xfffcu

/* What of `flags` tells of which exec of its process a stack was taken, by unwind_generation:
 * before an exec and after it, one address may be two functions. 0: not known. */
static inline __u16 sampler_stack_exec(__u64 generation)
{
	return (__u16)(generation >> 48) & SAMPLER_STACK_EXEC;
}

/* A sample. Behind it stand the frames: the kernel's, then the process's, leaf first. Kernel frames
 * are addresses as the kernel gives them: all but the first are return addresses. The process's are
 * words as andiron_walk.frames has them. */
struct sampler_stack {
	__u32 type;
	__u16 n_kernel;
	__u16 n_user; /* words */
	__u16 buffer;
	__u16 flags; /* SAMPLER_STACK_* */
	__u32 end;   /* UNWIND_END_*: of the process's frames */
	__u64 id;    /* what completes it is told by; 0: nothing will */
	struct sampler_key key;
};

#define SAMPLER_STACK_WORDS ((__u32)(sizeof(struct sampler_stack) / sizeof(__u64)))

/* Behind the end of a log is room for the largest record, since a stack is walked before it is
 * known whether it fits. */
#define SAMPLER_LOG_SPARE (SAMPLER_STACK_WORDS + ANDIRON_WALK_WORDS)

/* Under this bit of an id stands the record of a stack that was completed after its sample: it is
 * the one that counts, where it comes in time. */
#define SAMPLER_STACK_COMPLETED (1ull << 63)

static inline __u64 sampler_stack_id(__u32 n, __u32 cpu)
{
	return (__u64)n << 16 | cpu;
}

#define SAMPLER_PROCESS_KTHREAD 1

/* A process was sampled for the first time, or with other mappings than the last time. Wakes the
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

/* What is needed to walk on later, from the last frame of the stack record `id` of buffer `buffer`
 * on. Sent where sampler_is_open. Wakes the reader. */
#define SAMPLER_SNAPSHOT_BYTES 16384
/* the stack is copied by so many bytes, up to the first that are not there */
#define SAMPLER_SNAPSHOT_PIECE 512

/* Where the copy begins: pieces are aligned, so that the last one ends where the stack's last page does. */
static inline __u64 sampler_snapshot_start(__u64 stack_pointer)
{
	return stack_pointer & ~(__u64)(SAMPLER_SNAPSHOT_PIECE - 1);
}

/* A deeper stack comes in parts of SAMPLER_SNAPSHOT_BYTES where there is time to take them, in task
 * work: those above the first as records of their own (SAMPLER_RECORD_MORE), upwards, before the
 * snapshot, whose id they have. So deep is no stack of ANDIRON_WALK_USER frames that are of common
 * size.
 *
 * Where a stack is deeper than that it is mostly one frame that is so large, as rustc's
 * run_compiler is (540 KB): of such a stack come SAMPLER_SNAPSHOT_INNER parts, and
 * SAMPLER_SNAPSHOT_OUTER of its outer end.
 *
 * Where the walk may go on on another stack of the thread, as Go's does (bpf/task-work/go-stacks.h)
 * or a signal's handler that has one of its own (bpf/task-work/signal-stack.h), that comes too, in
 * SAMPLER_SNAPSHOT_PARTS at most. Parts are numbered by what they are of, from
 * SAMPLER_SNAPSHOT_PARTS times sampler_snapshot_copy on, and all come before the snapshot. */
enum sampler_snapshot_copy {
	SAMPLER_COPY_STACK, /* the sampled one, upwards from the stack pointer */
	SAMPLER_COPY_OUTER, /* its outer end */
	SAMPLER_COPY_OTHER, /* the thread's other one */
	SAMPLER_COPIES,
};

#define SAMPLER_SNAPSHOT_PARTS 24
#define SAMPLER_SNAPSHOT_INNER 8
#define SAMPLER_SNAPSHOT_OUTER 4

/* What the places of snapshots that are taken later need at most, with what the kernel adds (bpf/task-work/deferred-snapshot.h). */
#define SAMPLER_DEFERRED_BYTES (1u << 20)

/* All but `stack`, of which only the first n bytes are sent. */
#define SAMPLER_SNAPSHOT_HEAD ((__u32) __builtin_offsetof(struct sampler_snapshot, stack))

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
	__u64 at; /* address of `stack`: sampler_snapshot_start + SAMPLER_SNAPSHOT_BYTES part, of the sampled one */
	__u8 stack[SAMPLER_SNAPSHOT_BYTES];
};

/* What a process has mapped executable, as it was in the process itself on its way back to user
 * mode. Sent before the snapshot of a process that is not known: by the time somebody reads of it
 * the process may be gone. */
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

_Static_assert(sizeof(struct sampler_process_key) == 16, "no padding in a key");
_Static_assert(sizeof(struct sampler_key) == 40, "no padding in a key");
_Static_assert(sizeof(struct sampler_counts) == 64, "one cache line");
_Static_assert(sizeof(struct sampler_known) == 64, "one cache line");
_Static_assert(sizeof(struct sampler_stack) == 64, "no padding");
_Static_assert(sizeof(struct sampler_stack) == sizeof(((struct andiron_walk *)0)->head),
	       "stands before the frames");
_Static_assert(sizeof(struct sampler_pending) == 64, "one cache line");
_Static_assert(sizeof(struct sampler_process) == 80, "fixed");
