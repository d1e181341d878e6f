/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes of language runtimes as they begin: a process that executes a program of which another
 * has had code that a runtime claimed is reported at once, as its first sample would report it. So
 * its claims are there for that sample: processes that live for some milliseconds have no second
 * one. The program, not the library with the claimed code, is what exec can tell by.
 *
 * An object of its own, since it is loaded where there are runtimes. An exec costs two look-ups. */
#include "kernel/types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "bpfwire/launch.h"
#include "bpfwire/sampler.h"
#include "bpfwire/unwind-tables.h"
#include "kernel/cgroup.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 launch_hierarchy = 0; /* as sampler_hierarchy */
volatile struct launch_config launch_config = {};

/* These three are the sampler's. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
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

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, LAUNCH_FILES);
	__type(key, struct launch_file);
	__type(value, __u32);
} launch_files SEC(".maps");

/* What each process has executed last; forgetting that costs a look at /proc. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct sampler_process_key);
	__type(value, struct launch_exec);
} launch_execs SEC(".maps");

static __always_inline void key_of(struct task_struct *task, struct sampler_process_key *ret)
{
	ret->start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	ret->tgid = (__u32)BPF_CORE_READ(task, tgid);
	ret->zero = 0;
}

/* As sampler_selects(); sets what of the record follows from it. */
static __always_inline bool is_selected(struct task_struct *task, struct sampler_process *record)
{
	__u32 mode = launch_config.mode, tgid = record->key.tgid, *judged;
	struct sampler_selected *one = bpf_map_lookup_elem(&selected, &tgid);

	record->cgroup = cgroup_of_task(task, launch_hierarchy);
	record->root = one && mode != SAMPLER_ALL ? one->root : 0;
	if (mode == SAMPLER_ALL || one)
		return true;
	if (mode == SAMPLER_PIDS)
		return false;
	judged = bpf_map_lookup_elem(&cgroups, &record->cgroup);
	return !judged || *judged;
}

/* unwind_generation() of a task; 0 where exec has not finished it. */
static __always_inline __u64 generation_of(struct task_struct *task)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	__u64 start_code = mm ? BPF_CORE_READ(mm, start_code) : 0;

	return start_code ? unwind_generation(start_code, BPF_CORE_READ(mm, arg_start),
					      BPF_CORE_READ(mm, start_stack))
			  : 0;
}

static __always_inline void report(struct task_struct *task, __u64 generation)
{
	struct sampler_process record = {.type = SAMPLER_RECORD_PROCESS,
					 .flags = SAMPLER_PROCESS_LAUNCHED};
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	record.generation = generation;
	key_of(task, &record.key);
	if (record.generation == 0 || !is_selected(task, &record))
		return;
	key_of(BPF_CORE_READ(leader, real_parent), &record.parent);
	bpf_core_read(record.comm, sizeof(record.comm), &leader->comm);
	bpf_ringbuf_output(&ring, &record, sizeof(record), BPF_RB_FORCE_WAKEUP);
}

/* (task, its pid before, binary): the new program's memory has its addresses by now. */
SEC("raw_tp/sched_process_exec")
int launch_exec(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx->args[0];
	struct inode *inode = BPF_CORE_READ(task, mm, exe_file, f_inode);
	struct launch_exec exec = {.file = {.inode = BPF_CORE_READ(inode, i_ino),
					    .device = BPF_CORE_READ(inode, i_sb, s_dev)},
				   .generation = generation_of(task)};
	struct sampler_process_key key;

	key_of(task, &key);
	bpf_map_update_elem(&launch_execs, &key, &exec, BPF_ANY);
	if (bpf_map_lookup_elem(&launch_files, &exec.file))
		report(task, exec.generation);
	return 0;
}
