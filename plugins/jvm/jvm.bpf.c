/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Walks frames of HotSpot: walk/ as a BPF program. Its maps: the processes, written by the plugin;
 * the ring by which names and sites are reported, and which of them have been; places whose site is
 * known; and this CPU's state. */
#include "runtime-kit/kernel-types.h"

#include <bpf/bpf_helpers.h>

#define JVM_INLINE static __attribute__((always_inline, unused)) inline
#define JVM_GLOBAL __attribute__((noinline))

#include "jvm/walk/jvm-records.h"

struct jvm_state;
struct andiron_walk;

JVM_INLINE struct jvm_state *h_state(__u32 cpu);
JVM_INLINE struct andiron_walk *h_walk(__u32 cpu);
JVM_INLINE int h_read(void *to, __u32 n, __u64 address);
JVM_INLINE int h_tables(struct jvm_state *s, __u32 pid);
JVM_INLINE int h_reported(__u64 id);
JVM_INLINE void h_report(const struct jvm_report *report, __u32 n);
JVM_INLINE const __u64 *h_place_find(const struct jvm_place *place);
JVM_INLINE void h_place_put(const struct jvm_place *place, const __u64 *id);

#include "jvm/walk/walk.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#include "runtime-kit/known-ids.h"
#include "runtime-kit/walk-maps.h"

/* By pid. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 512);
	__type(key, __u32);
	__type(value, struct jvm_process);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct jvm_state);
} states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 19);
} reports SEC(".maps");

/* By id. The plugin deletes what it forgets. */
KNOWN_IDS(reported, JVM_REPORTED);

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct jvm_place);
	__type(value, __u64);
} places SEC(".maps");

JVM_INLINE struct jvm_state *h_state(__u32 cpu)
{
	__u32 zero = 0;

	asm volatile("" : "+r"(cpu)); /* else callers leave the argument undefined */
	return bpf_map_lookup_elem(&states, &zero);
}

JVM_INLINE struct andiron_walk *h_walk(__u32 cpu)
{
	return bpf_map_lookup_elem(&walks, &cpu);
}

JVM_INLINE int h_read(void *to, __u32 n, __u64 address)
{
	return bpf_probe_read_user(to, n, (const void *)address) != 0;
}

JVM_INLINE int h_reported(__u64 id)
{
	return known_find(&reported, JVM_REPORTED, id);
}

JVM_INLINE void h_report(const struct jvm_report *report, __u32 n)
{
	/* A full ring: the next walk tries again. */
	if (bpf_ringbuf_output(&reports, (void *)report, n, 0) == 0)
		known_add(&reported, JVM_REPORTED, report->id);
}

JVM_INLINE const __u64 *h_place_find(const struct jvm_place *place)
{
	return bpf_map_lookup_elem(&places, place);
}

JVM_INLINE void h_place_put(const struct jvm_place *place, const __u64 *id)
{
	bpf_map_update_elem(&places, place, id, BPF_ANY);
}

JVM_INLINE int h_tables(struct jvm_state *s, __u32 pid)
{
	const struct jvm_process *process = bpf_map_lookup_elem(&processes, &pid);
	__u32 n = sizeof(*process) - offsetof(struct jvm_process, entries);

	return !process || bpf_probe_read_kernel(s->process.entries, n, process->entries) != 0;
}

SEC("perf_event")
int jvm(void *event)
{
	__u32 cpu = bpf_get_smp_processor_id(), pid;
	struct andiron_walk *w = h_walk(cpu);
	struct jvm_process *process;
	struct jvm_state *s = h_state(cpu);

	if (!w || !s)
		return 0;
	pid = w->pid;
	process = bpf_map_lookup_elem(&processes, &pid);
	s->has_tables = 0;
	if (process &&
	    bpf_probe_read_kernel(&s->process, offsetof(struct jvm_process, entries), process) == 0)
		jvm_walk(cpu, s, w);
	else
		w->end = ANDIRON_WALK_GAVE_UP;
	bpf_tail_call(event, &programs, ANDIRON_WALK_RESUME);
	return 0;
}
