/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* walk.h as a BPF program. The plugin writes which processes have which V8; the program numbers
 * functions as it meets them, and tells of each by the ring, so that it is read while it is there.
 *
 * Runs on 5.10: counts by CPU in place of atomics, hashes that are preallocated. */
#define __VMLINUX_H__

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef signed int __s32;
typedef unsigned long long __u64;
typedef signed long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

/* include/uapi/linux/bpf.h */
#define BPF_ANY                   0
#define BPF_MAP_TYPE_HASH         1
#define BPF_MAP_TYPE_ARRAY        2
#define BPF_MAP_TYPE_PROG_ARRAY   3
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_LRU_HASH     9
#define BPF_MAP_TYPE_RINGBUF      27

#include <bpf/bpf_helpers.h>

#define V8_INLINE static __attribute__((always_inline)) inline
#define V8_GLOBAL __attribute__((noinline))

#include "shared.h"

struct v8_scratch;
struct andiron_walk;

V8_INLINE int h_read(void *to, __u32 n, __u64 address);
static inline __u32 h_u32(const __u8 *bytes);
V8_INLINE struct andiron_walk *h_walk(__u32 cpu);
V8_INLINE struct v8_scratch *h_scratch(__u32 cpu);
V8_INLINE const struct v8_process *h_process(__u32 pid);
V8_INLINE const struct v8_layout *h_layout(__u32 layout);
V8_INLINE __u64 h_number(struct v8_met *met);

#include "walk.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The sampler's. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct andiron_walk);
} walks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, ANDIRON_WALK_SLOTS);
	__type(key, __u32);
	__type(value, __u32);
} programs SEC(".maps");

/* Written by the plugin. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, V8_PROCESSES);
	__type(key, __u32);
	__type(value, struct v8_process);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, V8_LAYOUTS);
	__type(key, __u32);
	__type(value, struct v8_layout);
} layouts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct v8_scratch);
} scratches SEC(".maps");

/* Numbers given out by a CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, V8_FUNCTIONS);
	__type(key, struct v8_key);
	__type(value, __u64);
} functions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, V8_FUNCTIONS);
	__type(key, struct v8_place);
	__type(value, __u64);
} places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, V8_RING);
} ring SEC(".maps");

V8_INLINE int h_read(void *to, __u32 n, __u64 address)
{
	return bpf_probe_read_user(to, n, (const void *)address) != 0;
}

/* Not aligned, in one load. */
static __attribute__((always_inline, unused)) inline __u32 h_u32(const __u8 *bytes)
{
	return *(const volatile __u32 *)bytes;
}

V8_INLINE struct andiron_walk *h_walk(__u32 cpu)
{
	return bpf_map_lookup_elem(&walks, &cpu);
}

V8_INLINE struct v8_scratch *h_scratch(__u32 cpu)
{
	__u32 zero = 0;

	asm volatile("" : "+r"(cpu)); /* else callers leave the argument undefined */
	return bpf_map_lookup_elem(&scratches, &zero);
}

V8_INLINE const struct v8_process *h_process(__u32 pid)
{
	return bpf_map_lookup_elem(&processes, &pid);
}

V8_INLINE const struct v8_layout *h_layout(__u32 layout)
{
	return bpf_map_lookup_elem(&layouts, &layout);
}

/* The next number of this CPU; 0: none. */
V8_INLINE __u64 next_number(void)
{
	__u32 zero = 0;
	__u64 *count = bpf_map_lookup_elem(&counts, &zero);

	if (!count)
		return 0;
	*count += 1;
	return ((__u64)bpf_get_smp_processor_id() & 0xffff) << 32 | (*count & 0xffffffff);
}

V8_INLINE __u64 h_number(struct v8_met *met)
{
	__u64 *known = bpf_map_lookup_elem(&functions, &met->key), *told, now = bpf_ktime_get_ns();
	struct v8_place place = {.page = met->bytecode ? ~0ull : met->code >> V8_PAGE};
	struct v8_met *out;

	if (known) {
		met->number = *known;
	} else {
		met->number = next_number();
		bpf_map_update_elem(&functions, &met->key, &met->number, BPF_ANY);
	}
	place.number = met->number;
	told = bpf_map_lookup_elem(&places, &place);
	if (known && told && now - *told < V8_AGAIN_NS)
		return met->number;
	out = bpf_ringbuf_reserve(&ring, sizeof(*out), 0);
	if (out) {
		__builtin_memcpy(out, met, sizeof(*out));
		bpf_ringbuf_submit(out, 0);
		bpf_map_update_elem(&places, &place, &now, BPF_ANY);
	}
	return met->number;
}

SEC("perf_event")
int v8(void *event)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct andiron_walk *w = h_walk(cpu);

	if (!w)
		return 0;
	v8_walk(cpu, w);
	bpf_tail_call(event, &programs, ANDIRON_WALK_RESUME);
	return 0;
}
