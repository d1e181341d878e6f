/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* walk.h as a BPF program. The plugin writes which processes have which V8. The program reports by
 * the ring where it sees functions, so that they are read while they are there.
 *
 * Runs on 5.10: counts by CPU in place of atomics, hashes that are preallocated. */
#include "runtime-kit/kernel-types.h"

#include <bpf/bpf_helpers.h>

#define V8_INLINE static __attribute__((always_inline)) inline
#define V8_GLOBAL __attribute__((noinline))

#include "v8/shared.h"

struct v8_scratch;
struct andiron_walk;

V8_INLINE int h_read(void *to, __u32 n, __u64 address);
V8_INLINE void h_copy(void *to, __u32 n, const void *from);
static inline __u32 h_u32(const __u8 *bytes);
V8_INLINE struct andiron_walk *h_walk(__u32 cpu);
V8_INLINE struct v8_scratch *h_scratch(__u32 cpu);
V8_INLINE const struct v8_process *h_process(__u32 pid);
V8_INLINE const struct v8_layout *h_layout(__u32 layout);
V8_INLINE __u64 h_report(struct v8_scratch *s);

#include "v8/walk.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#include "runtime-kit/walk-maps.h"

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

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, V8_PLACES);
	__type(key, struct v8_place);
	__type(value, struct v8_place_state);
} places SEC(".maps");

/* Of the map before, what this CPU met last, by hash. A look into the map takes three lines of
 * memory that other programs have displaced from the caches, and one into this takes one. */
struct v8_recent {
	struct v8_place place;
	struct v8_place_state state;
};

struct v8_recents {
	struct v8_recent at[V8_RECENT];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct v8_recents);
} recents SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, V8_RING);
} ring SEC(".maps");

V8_INLINE int h_read(void *to, __u32 n, __u64 address)
{
	return bpf_probe_read_user(to, n, (const void *)address) != 0;
}

V8_INLINE void h_copy(void *to, __u32 n, const void *from)
{
	bpf_probe_read_kernel(to, n, from);
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

/* Where a place is among the recent ones. */
V8_INLINE struct v8_recent *recent_of(const struct v8_place *place)
{
	__u32 zero = 0, at = (__u32)((place->function ^ place->page) >> 1) & (V8_RECENT - 1);
	struct v8_recents *here = bpf_map_lookup_elem(&recents, &zero);

	return here ? &here->at[at] : 0;
}

V8_INLINE __u64 h_report(struct v8_scratch *s)
{
	struct v8_sighting *sighting = &s->sighting, *out;
	struct v8_place place = v8_place_of(sighting);
	struct v8_place_state *known, state = {0};
	struct v8_recent *recent = recent_of(&place);

	if (!recent)
		return 0;
	if (s->now_ns == 0)
		s->now_ns = bpf_ktime_get_ns();
	if (recent->place.function == place.function && recent->place.page == place.page &&
	    s->now_ns < recent->state.again_ns && v8_place_has(&recent->state, sighting->code) &&
	    v8_compilation_at(s, recent->state.header) == recent->state.compilation)
		return v8_known(s, &recent->state);
	known = bpf_map_lookup_elem(&places, &place);
	if (known && !v8_place_has(known, sighting->code)) {
		if (v8_place_is_new(known, s->now_ns))
			return 0;
	} else if (known && v8_compilation_at(s, known->header) == known->compilation) {
		state = *known;
		/* The plugin may soon know which compilation it is. */
		if (state.header != 0 || sighting->bytecode != 0)
			*recent = (struct v8_recent){place, state};
		if (s->now_ns < state.again_ns)
			return v8_known(s, &state);
	}
	state.again_ns = s->now_ns + V8_AGAIN_NS;
	out = bpf_ringbuf_reserve(&ring, sizeof(*out), 0);
	if (out) {
		__builtin_memcpy(out, sighting, sizeof(*out));
		bpf_ringbuf_submit(out, 0);
		bpf_map_update_elem(&places, &place, &state, BPF_ANY);
	}
	return v8_known(s, &state);
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
