/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Takes the kernel's stack of every sample twice, by bpf/unwinder/kernel-stack.h and by
 * bpf_get_stack, and compares them. */
#include "kernel/types.h"

#include <bpf/bpf_helpers.h>

#include "bpfwire/kernel-tables.h"

#include <andiron/bpf/walk.h>

#define UNWIND_INLINE static __always_inline
#define UNWIND_GLOBAL __noinline

typedef __u32 unwind_env;

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct kernel_tables tables = {};
volatile struct kernel_jit jit = {};

struct both {
	struct andiron_walk walk;
	__u64 theirs[ANDIRON_WALK_KERNEL + 1];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct both);
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KERNEL_SETS);
	__type(key, __u32);
	__type(value, struct kernel_set);
} kernel_rows SEC(".maps");

/* How many samples, and the last stacks that were not the same. */
volatile __u64 equal = 0, different = 0, unknown = 0, frames = 0, most = 0;
volatile __u64 own_ns = 0, their_ns = 0;
volatile __u32 n_own = 0, n_theirs = 0;
__u64 own[ANDIRON_WALK_KERNEL + 1] = {}, theirs[ANDIRON_WALK_KERNEL + 1] = {};

#if defined(__TARGET_ARCH_x86)
static __always_inline struct andiron_walk *h_walk_state(__u32 e)
{
	__u32 zero = 0;
	struct both *both = bpf_map_lookup_elem(&stacks, &zero);

	asm volatile("" : : "r"(e));
	return both ? &both->walk : NULL;
}

static __always_inline const volatile struct kernel_tables *h_kernel_tables(void)
{
	return &tables;
}

static __always_inline const volatile struct kernel_jit *h_kernel_jit(void)
{
	return &jit;
}

static __always_inline struct kernel_set *h_kernel_rows(__u32 i)
{
	return bpf_map_lookup_elem(&kernel_rows, &i);
}

static __always_inline __u64 h_now(void)
{
	return bpf_ktime_get_ns();
}

#define h_kernel_read(to, n, address) bpf_probe_read_kernel(to, n, (const void *)(address))

#include "unwinder/kernel-stack.h"

static __always_inline bool same(const struct both *both, __u32 n)
{
	for (__u32 i = 0; i < ANDIRON_WALK_KERNEL; i++)
		if (i < n && both->walk.frames[i] != both->theirs[i])
			return false;
	return true;
}

/* A program that samples meet at its work, in its functions and in what they call. */
__noinline int work(__u32 n)
{
	char text[64];
	int sum = 0;

	for (__u32 i = 0; i < 200; i++)
		if (i < n && bpf_get_current_comm(text, sizeof(text)) == 0)
			sum += text[0];
	return sum;
}

SEC("raw_tp")
int busy(void *context)
{
	int sum = 0;

	for (__u32 i = 0; i < 200; i++)
		sum += work(i);
	return sum & 1;
}

SEC("perf_event")
int compare(struct bpf_perf_event_data *event)
{
	const bpf_user_pt_regs_t *regs = &event->regs;
	__u32 zero = 0, n, n_there;
	struct both *both = bpf_map_lookup_elem(&stacks, &zero);
	__u64 start, middle;
	long bytes;

	if (!both || regs_in_user_mode(regs))
		return 0;
	start = bpf_ktime_get_ns();
	n = kernel_walk(0, &both->walk, regs->ip, regs->sp, regs->bp);
	middle = bpf_ktime_get_ns();
	bytes = bpf_get_stack(event, both->theirs, ANDIRON_WALK_KERNEL * sizeof(__u64), 0);
	their_ns += bpf_ktime_get_ns() - middle;
	own_ns += middle - start;
	n_there = bytes > 0 ? (__u32)bytes / sizeof(__u64) : 0;
	frames += n_there;
	if (n_there > most)
		most = n_there;
	if (n == 0) {
		__sync_fetch_and_add(&unknown, 1);
		return 0;
	}
	if (n == n_there && same(both, n)) {
		__sync_fetch_and_add(&equal, 1);
		return 0;
	}
	__sync_fetch_and_add(&different, 1);
	n_own = n;
	n_theirs = n_there;
	bpf_probe_read_kernel(own, ANDIRON_WALK_KERNEL * sizeof(__u64), both->walk.frames);
	bpf_probe_read_kernel(theirs, ANDIRON_WALK_KERNEL * sizeof(__u64), both->theirs);
	return 0;
}
#endif
