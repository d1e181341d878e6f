/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes as they come and go: fork, exec, and the exit of a process's last thread, from raw
 * tracepoints (no tracefs, no kprobes), and the list of those that run, from a task iterator, so
 * that both name a process by the same start time to the nanosecond (/proc has clock ticks).
 *
 * `produced` counts an event before its time is read and before it is
 * in the ring: whoever finds the ring empty and produced equal to what it
 * read and what was lost knows that nothing is on its way. See process.h for
 * why that matters.
 *
 * Exit is counted by `live`, which each thread lowers before the tracepoint
 * fires: two last threads that end at once may both report it. */
#include "kernel/types.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "kernel/cgroup.h"
#include "bpfwire/process.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 process_hierarchy = CGROUP_HIERARCHY_V2;

__u64 process_produced;
__u64 process_lost;
static __u64 last_wake_ns;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024); /* the loader gives large machines more */
} events SEC(".maps");

static void describe(struct task_struct *task, __u32 kind, struct process_record *ret)
{
	ret->kind = kind;
	ret->pid = BPF_CORE_READ(task, tgid);
	ret->parent = BPF_CORE_READ(task, real_parent, tgid);
	ret->start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	ret->cgroup = cgroup_of_task(task, process_hierarchy);
	BPF_CORE_READ_STR_INTO(&ret->comm, task, comm);
}

/* Two processors may both find the quiet over, and both wake; that is harmless. */
static __u64 wake_flags(__u64 now_ns)
{
	__s64 quiet_ns = (__s64)(now_ns - last_wake_ns);
	__u64 full = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);
	__u64 size = bpf_ringbuf_query(&events, BPF_RB_RING_SIZE);

	if (quiet_ns > (__s64)PROCESS_QUIET_NS ||
	    (full > size / 4 && quiet_ns > (__s64)PROCESS_QUIET_NS / 100)) {
		last_wake_ns = now_ns;
		return BPF_RB_FORCE_WAKEUP;
	}
	return BPF_RB_NO_WAKEUP;
}

static int report(struct task_struct *task, __u32 kind)
{
	struct process_record record = {0};

	__sync_fetch_and_add(&process_produced, 1);
	describe(task, kind, &record);
	if (bpf_ringbuf_output(&events, &record, sizeof(record), wake_flags(bpf_ktime_get_ns())) !=
	    0)
		__sync_fetch_and_add(&process_lost, 1);
	return 0;
}

/* Arguments: parent, child. */
SEC("raw_tp/sched_process_fork")
int process_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *child = (struct task_struct *)ctx->args[1];

	if (BPF_CORE_READ(child, pid) != BPF_CORE_READ(child, tgid))
		return 0; /* a thread */
	return report(child, PROCESS_FORK);
}

/* Arguments: task, its pid before, binary. */
SEC("raw_tp/sched_process_exec")
int process_exec(struct bpf_raw_tracepoint_args *ctx)
{
	return report((struct task_struct *)ctx->args[0], PROCESS_EXEC);
}

/* Arguments: task. */
SEC("raw_tp/sched_process_exit")
int process_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx->args[0];

	if (BPF_CORE_READ(task, signal, live.counter) != 0)
		return 0; /* other threads go on */
	return report(task, PROCESS_EXIT);
}

/* The list of processes: read as a file, one record each. */
SEC("iter/task")
int process_list(struct bpf_iter__task *ctx)
{
	struct process_record record = {0};
	struct task_struct *task = ctx->task;

	if (!task || BPF_CORE_READ(task, pid) != BPF_CORE_READ(task, tgid))
		return 0;
	if (BPF_CORE_READ(task, signal, live.counter) == 0)
		return 0; /* a zombie: its exit was reported */
	describe(task, PROCESS_EXISTING, &record);
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}
