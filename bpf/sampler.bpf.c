/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sampling program: maps, and the helpers that sampler-body.h is written
 * over. One cpu-clock event per CPU runs `sample`; the two tracepoints keep
 * the set of selected processes at fork and exit, and are attached only where
 * descendants are followed.
 *
 * Runs on 5.10: no fetching atomics, loops with constant bounds, hashes that
 * are preallocated (a perf_event program may not allocate there). Counts live in
 * arrays, whose look-up is a few instructions of the program itself.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "cgroup.h"
#include "sampler.h"

#define SAMPLER_INLINE static __always_inline
#define SAMPLER_GLOBAL __noinline

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Fixed at load. */
const volatile __u32 sampler_hierarchy = 0;
const volatile __u64 sampler_ring_crowded_bytes = 0;
const volatile __u32 sampler_slots = 1; /* a power of two */
const volatile __u32 sampler_log_words = 1;

/* Changed at any time. */
volatile struct sampler_config sampler_config = {};

/* By number of CPU, for all that there may be. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* user space says how many */
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct sampler_cpu));
} cpus SEC(".maps");

/* sampler_slots for each CPU and half. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct sampler_slot));
} slots SEC(".maps");

/* One for each CPU and half, sampler_log_words + SAMPLER_LOG_SPARE words. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, 65536);
} logs SEC(".maps");

/* Written to by user space only, as a barrier: see session_swap. */
struct sampler_nothing {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} nothing SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct sampler_nothing);
} barrier SEC(".maps") = {.values = {&nothing}};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024); /* user space says how many */
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct sampler_selected);
} selected SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u32);
} cgroups SEC(".maps");

/* Forgetting a process costs one more record of it, never a count. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct sampler_process_key);
	__type(value, struct sampler_process_state);
} processes SEC(".maps");

struct sampler_context {
	struct bpf_perf_event_data *event;
	struct task_struct *task;
};

SAMPLER_INLINE const volatile struct sampler_config *h_config(void)
{
	return &sampler_config;
}

SAMPLER_INLINE __u32 h_cpu(void)
{
	return bpf_get_smp_processor_id();
}

SAMPLER_INLINE struct sampler_cpu *h_state(__u32 cpu)
{
	return bpf_map_lookup_elem(&cpus, &cpu);
}

SAMPLER_INLINE struct sampler_slot *h_slot(__u32 cpu, __u32 half, __u32 i)
{
	__u32 index = (cpu * SAMPLER_HALVES + half) * sampler_slots + (i & (sampler_slots - 1));

	return bpf_map_lookup_elem(&slots, &index);
}

SAMPLER_INLINE __u64 *h_log(__u32 cpu, __u32 half)
{
	__u32 index = cpu * SAMPLER_HALVES + half;

	return bpf_map_lookup_elem(&logs, &index);
}

SAMPLER_INLINE __u32 h_log_words(void)
{
	return sampler_log_words;
}

SAMPLER_INLINE struct sampler_selected *h_selected_find(__u32 tgid)
{
	return bpf_map_lookup_elem(&selected, &tgid);
}

SAMPLER_INLINE __u32 *h_cgroup_find(__u64 id)
{
	return bpf_map_lookup_elem(&cgroups, &id);
}

SAMPLER_INLINE struct sampler_process_state *h_process_find(const struct sampler_process_key *key)
{
	return bpf_map_lookup_elem(&processes, key);
}

SAMPLER_INLINE long h_process_put(const struct sampler_process_key *key,
				  const struct sampler_process_state *state)
{
	return bpf_map_update_elem(&processes, key, state, BPF_ANY);
}

SAMPLER_INLINE long h_send(void *data, __u64 size, bool wake)
{
	return bpf_ringbuf_output(&ring, data, size, wake ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

SAMPLER_INLINE bool h_ring_crowded(void)
{
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > sampler_ring_crowded_bytes;
}

SAMPLER_INLINE __u64 h_now(void)
{
	return bpf_ktime_get_ns();
}

SAMPLER_INLINE __u32 h_walk(struct sampler_context *c, bool user, __u64 *pcs, __u32 n)
{
	long bytes = bpf_get_stack(c->event, pcs, n * sizeof(*pcs), user ? BPF_F_USER_STACK : 0);

	return bytes > 0 ? (__u32)bytes / sizeof(*pcs) : 0;
}

struct sampler_task;
SAMPLER_INLINE __u64 h_cgroup(struct sampler_context *c);
SAMPLER_INLINE void h_task(struct sampler_context *c, struct sampler_task *task);

SAMPLER_INLINE void h_leader_comm(struct sampler_context *c, char *comm)
{
	struct task_struct *task = c->task;
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	bpf_core_read(comm, SAMPLER_COMM_SIZE, &leader->comm);
}

SAMPLER_INLINE void h_comm(char *comm)
{
	bpf_get_current_comm(comm, SAMPLER_COMM_SIZE);
}

#include "sampler-body.h"

/* Reads through the helper, one call a member. Before 5.11. */
SAMPLER_INLINE void task_by_probe(struct task_struct *current, struct sampler_task *task)
{
	struct mm_struct *mm = BPF_CORE_READ(current, mm);

	task->key.start_ns = BPF_CORE_READ(current, group_leader, start_boottime);
	task->groups = (__u64)BPF_CORE_READ(current, cgroups);
	task->mm = (__u64)mm;
	task->exec_vm = mm ? BPF_CORE_READ(mm, exec_vm) : 0;
	task->kthread = (BPF_CORE_READ(current, flags) & PF_KTHREAD) != 0;
}

/* The same by plain loads, which the verifier knows to be safe. */
SAMPLER_INLINE void task_by_load(struct task_struct *current, struct sampler_task *task)
{
	struct mm_struct *mm = current->mm;

	task->key.start_ns = current->group_leader->start_boottime;
	task->exec_vm = mm ? mm->exec_vm : 0;
	task->kthread = (current->flags & PF_KTHREAD) != 0;
	/* As numbers: the pointers themselves could not be kept in a map. */
	bpf_core_read(&task->mm, sizeof(task->mm), &current->mm);
	bpf_core_read(&task->groups, sizeof(task->groups), &current->cgroups);
}

SAMPLER_INLINE __u64 h_cgroup(struct sampler_context *c)
{
	return cgroup_of_task(c->task, sampler_hierarchy);
}

SAMPLER_INLINE void h_task(struct sampler_context *c, struct sampler_task *task)
{
	task->key.tgid = bpf_get_current_pid_tgid() >> 32;
	task->in_user = regs_in_user_mode(&c->event->regs);
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf))
		task_by_load(bpf_get_current_task_btf(), task);
	else
		task_by_probe(c->task, task);
}

SEC("perf_event")
int sample(struct bpf_perf_event_data *event)
{
	struct sampler_context c = {event, (struct task_struct *)bpf_get_current_task()};

	sampler_body(&c, (__u32)bpf_get_current_pid_tgid());
	return 0;
}

/* (parent, child). A new thread is in the set with its process. */
SEC("raw_tp/sched_process_fork")
int follow_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (struct task_struct *)ctx->args[0];
	struct task_struct *child = (struct task_struct *)ctx->args[1];
	__u32 parent_tgid = (__u32)BPF_CORE_READ(parent, tgid);
	__u32 tgid = (__u32)BPF_CORE_READ(child, tgid);
	struct sampler_selected *of_parent, of_child;

	if (tgid == parent_tgid)
		return 0;
	of_parent = bpf_map_lookup_elem(&selected, &parent_tgid);
	if (!of_parent || !of_parent->follow)
		return 0;
	of_child = *of_parent;
	bpf_map_update_elem(&selected, &tgid, &of_child, BPF_ANY);
	return 0;
}

/* (task), once per thread, after it has left signal->live. */
SEC("raw_tp/sched_process_exit")
int follow_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx->args[0];
	__u32 tgid = (__u32)BPF_CORE_READ(task, tgid);

	if (BPF_CORE_READ(task, signal, live.counter) == 0)
		bpf_map_delete_elem(&selected, &tgid);
	return 0;
}
