/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The program that the sampler calls where a walk comes to CPython's loop. The walk itself is in
 * frames.h; here are the maps and the kernel. */
#include "python/kernel-types.h"

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>

#define P_INLINE static __always_inline
#define P_GLOBAL __noinline
#include "python/wire.h"

#include "runtime-kit/known-ids.h"
#include "runtime-kit/walk-maps.h"

struct python_scratch;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PYTHON_PROCS);
	__type(key, __u32);
	__type(value, struct python_proc);
} procs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PYTHON_LAYOUTS);
	__type(key, __u32);
	__type(value, struct python_layout);
} layouts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PYTHON_LAYOUTS);
	__type(key, __u32);
	__type(value, struct python_tasks);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PYTHON_THREADS);
	__type(key, __u64);
	__type(value, struct python_thread);
} threads SEC(".maps");

KNOWN_IDS(codes, PYTHON_CODES);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, PYTHON_RING);
} records SEC(".maps");

#define h_read(to, n, at) bpf_probe_read_user(to, n, (const void *)(unsigned long)(at))

static __always_inline struct andiron_walk *h_walk(__u32 cpu)
{
	return bpf_map_lookup_elem(&walks, &cpu);
}

static __always_inline struct python_scratch *h_scratch(void);

static __always_inline struct python_proc *h_proc(__u32 pid)
{
	return bpf_map_lookup_elem(&procs, &pid);
}

static __always_inline const struct python_layout *h_layout(__u32 index)
{
	return bpf_map_lookup_elem(&layouts, &index);
}

static __always_inline const struct python_tasks *h_tasks(__u32 index)
{
	return bpf_map_lookup_elem(&tasks, &index);
}

static __always_inline struct python_thread *h_thread(void)
{
	__u64 key = bpf_get_current_pid_tgid();
	struct python_thread *t = bpf_map_lookup_elem(&threads, &key);
	struct python_thread none = {0};

	if (t)
		return t;
	bpf_map_update_elem(&threads, &key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&threads, &key);
}

static __always_inline __u64 h_thread_pointer(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

#if defined(__TARGET_ARCH_arm64)
	return BPF_CORE_READ(task, thread.uw.tp_value);
#else
	return BPF_CORE_READ(task, thread.fsbase);
#endif
}

static __always_inline int h_is_reported(__u64 id)
{
	return known_find(&codes, PYTHON_CODES, id);
}

static __always_inline int h_report(struct python_scratch *s, __u32 n);

#include "python/activation.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct python_scratch);
} scratches SEC(".maps");

static __always_inline struct python_scratch *h_scratch(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&scratches, &zero);
}

/* Into the ring, which a thread of the plugin reads. If it is full, the next sample reports it
 * again. */
static __always_inline int h_report(struct python_scratch *s, __u32 n)
{
	n = opaque(n);
	if (n > sizeof(s->record) + sizeof(s->bytes) ||
	    bpf_ringbuf_output(&records, &s->record, n, 0) != 0)
		return 1;
	known_add(&codes, PYTHON_CODES, s->record.id);
	return 0;
}

SEC("perf_event")
int python(struct bpf_perf_event_data *event)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct andiron_walk *w = h_walk(cpu);

	if (!w)
		return 0;
	walk_python(cpu, w);
	bpf_tail_call(event, &programs, ANDIRON_WALK_RESUME);
	return 0;
}
