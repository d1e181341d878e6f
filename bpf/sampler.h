/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire between the sampling program and user space: the keys and values
 * of its maps and the records of its ring.
 *
 * Every CPU counts by itself, in memory that user space has mapped: a table of
 * slots and a log of stacks, both in two halves of which one is active. So a
 * sample takes no lock and touches one cache line where it counts; what several
 * CPUs counted under one key is for user space to add up. Who reads makes
 * the other half active, waits until no program runs any more that saw the old
 * one, has it for itself, and clears it. For each half, once it is quiet:
 *
 *     taken = sum of all counts + map_full + new_cpu
 *
 * A stack's frames are written down once, when its key is new on a CPU in a half:
 * in the log, or where that is full, in the ring. Slots with `stack` 0 are those
 * whose frames found the ring full as well.
 */
#ifndef BPF_SAMPLER_H
#define BPF_SAMPLER_H

#ifndef BPF_KERNEL_H
#include <linux/types.h>
#endif

#define SAMPLER_FRAMES_MAX 127 /* each of kernel and user; the kernel's own default */
#define SAMPLER_COMM_SIZE  16
#define SAMPLER_HALVES     2

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

/* What is counted. comm is zero unless it was asked for. A hash is 0 where
 * there are no frames. */
struct sampler_key {
	struct sampler_process_key process;
	__u64 cgroup;
	__u64 user_hash;
	__u64 kernel_hash;
	char comm[SAMPLER_COMM_SIZE];
};

/* As user space makes it of a slot. */
struct sampler_value {
	__u64 count;
	__u64 stack; /* id of its record, 0: lost */
};

/* One key of a CPU's table: one cache line. Free while count is 0. Taken by open
 * addressing, in one of SAMPLER_PROBES slots from where its hash leads. */
struct sampler_slot {
	struct sampler_key key;
	__u32 count;
	__u32 stack; /* sampler_stack_id(stack, cpu) is its record's, 0: lost */
};

#define SAMPLER_PROBES 8

/* Per CPU and half. */
struct sampler_counters {
	__u64 taken;
	__u64 idle;
	__u64 unselected;
	__u64 map_full; /* no slot was free */
	__u64 new_cpu; /* the CPU has no table: it came online after the start */
};

/* What a CPU keeps for each half; one cache line. */
struct sampler_books {
	struct sampler_counters counters;
	__u32 n_words;  /* of the log, in use */
	__u32 n_stacks; /* written down, ever */
	__u64 zero[2];
};

/* A process as a CPU saw it last; one cache line. */
struct sampler_known {
	struct sampler_process_key key;
	__u64 groups; /* identity of its set of cgroups */
	__u64 cgroup; /* what that led to */
	__u64 mm, exec_vm;
	__u32 reported; /* the config's epoch + 1 when it was known to be reported, else 0 */
	__u32 zero[3];
};

#define SAMPLER_KNOWN 32 /* a power of two */

struct sampler_cpu {
	struct sampler_books books[SAMPLER_HALVES];
	struct sampler_known known[SAMPLER_KNOWN];
};

/* Read by the programs on every run, written by user space at any time. */
struct sampler_config {
	__u32 active; /* half */
	__u32 mode;
	__u32 with_comm;
	__u32 with_kernel;
	__u32 epoch; /* changes when a reported process is forgotten */
};

/* `selected`, by tgid: root is the process it descends from. */
struct sampler_selected {
	__u32 root;
	__u32 follow;
};

/* `processes`: what the last SAMPLER_RECORD_PROCESS was sent for. */
struct sampler_process_state {
	__u64 mm;
	__u64 exec_vm;
	__u64 sent_ns;
};

#define SAMPLER_RECORD_STACK   1
#define SAMPLER_RECORD_PROCESS 2

#define SAMPLER_STACK_USER_CUT   1 /* the walk ended for lack of room */
#define SAMPLER_STACK_KERNEL_CUT 2

/* Behind it stand the addresses: kernel frames, then user frames, leaf first. */
struct sampler_stack {
	__u32 type;
	__u16 n_kernel;
	__u16 n_user;
	__u16 half;
	__u16 flags;
	__u32 zero;
	__u64 id; /* within its half */
};

#define SAMPLER_STACK_WORDS ((__u32)(sizeof(struct sampler_stack) / sizeof(__u64)))

/* Behind the end of a log is room for the largest record, since a stack is walked
 * before it is known whether it fits. */
#define SAMPLER_LOG_SPARE (SAMPLER_STACK_WORDS + 2 * SAMPLER_FRAMES_MAX)

static inline __u64 sampler_stack_id(__u32 stack, __u32 cpu)
{
	return (__u64)stack << 16 | cpu;
}

#define SAMPLER_PROCESS_KTHREAD 1

/* A process was sampled for the first time, or with other mappings than the
 * last time. Wakes the reader. */
struct sampler_process {
	__u32 type;
	__u32 flags;
	struct sampler_process_key key;
	__u64 cgroup;
	__u32 root; /* from `selected`, else 0 */
	__u32 zero;
	char comm[SAMPLER_COMM_SIZE]; /* of the leader */
};

_Static_assert(sizeof(struct sampler_process_key) == 16, "no padding in a key");
_Static_assert(sizeof(struct sampler_key) == 56, "no padding in a key");
_Static_assert(sizeof(struct sampler_slot) == 64, "one cache line");
_Static_assert(sizeof(struct sampler_books) == 64, "one cache line");
_Static_assert(sizeof(struct sampler_known) == 64, "one cache line");
_Static_assert(sizeof(struct sampler_stack) == 24, "addresses are aligned");
_Static_assert(sizeof(struct sampler_process) == 56, "fixed");

#endif
