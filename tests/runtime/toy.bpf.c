/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Walks the frames of the toy machine: what andiron/bpf/walk.h asks of the program of a language
 * runtime, whole.
 *
 * It keeps nothing between two calls of one walk. Which frames are those of the run at hand follows
 * from the stack pointer: stacks grow downwards, so a run whose native frame is below it has been
 * walked before, and the first one above it is next. */
#include "kernel/types.h"

#include <bpf/bpf_helpers.h>

#include "runtime-kit/walk-maps.h"

#include "toy.h"

#if defined(__TARGET_ARCH_arm64)
#define SP 31
#define FP 29
#else
#define SP 7
#define FP 6
#endif

#define FRAMES 600

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* By the pid that `claim` was called with. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct toy_process);
} tops SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct toy_name_key);
	__type(value, struct toy_name);
} names SEC(".maps");

/* Read here, since by the time that somebody asks, the process may have gone. */
static __always_inline void remember(__u32 tgid, __u64 function)
{
	struct toy_name_key key = {tgid, function};
	struct toy_name name;

	if (bpf_map_lookup_elem(&names, &key) ||
	    bpf_probe_read_user(&name, sizeof(name), (const void *)function) != 0)
		return;
	bpf_map_update_elem(&names, &key, &name, BPF_ANY);
}

/* To the native frame that has entered the machine. */
static __always_inline int leave(struct andiron_walk *w, const struct toy_frame *f)
{
	__u64 saved[2];

	if (bpf_probe_read_user(saved, sizeof(saved), (const void *)f->record) != 0)
		return 1;
	w->regs[FP] = saved[0];
	w->pc = saved[1];
	w->regs[SP] = f->cfa;
	w->known = 1u << SP | 1u << FP;
	w->exact = 0;
	return 0;
}

/* 0, or 1 if the walk cannot go on. */
static __always_inline int walk_run(struct andiron_walk *w)
{
	__u32 pid = w->pid;
	struct toy_process *process = bpf_map_lookup_elem(&tops, &pid);
	struct toy_frame f;
	__u64 at = 0;

	if (!process)
		return 1;
	if (w->pc <= process->from || w->pc > process->to) {
		w->native = ANDIRON_WALK_LEAVE;
		return andiron_walk_push(w, TOY_COMPILED, 0);
	}
	if (bpf_probe_read_user(&at, sizeof(at), (const void *)process->top) != 0)
		return 1;
	for (int i = 0; i < FRAMES && at != 0; i++) {
		if (bpf_probe_read_user(&f, sizeof(f), (const void *)at) != 0)
			return 1;
		at = f.back;
		if (f.cfa <= w->regs[SP])
			continue;
		remember(pid, f.function);
		if (andiron_walk_push(w, f.function, f.line) != 0)
			return 1;
		if (f.first)
			return leave(w, &f);
	}
	return 1;
}

SEC("perf_event")
int toy(struct bpf_perf_event_data *event)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct andiron_walk *w = bpf_map_lookup_elem(&walks, &cpu);

	if (!w)
		return 0;
	if (walk_run(w) != 0)
		w->end = ANDIRON_WALK_GAVE_UP;
	bpf_tail_call(event, &programs, ANDIRON_WALK_RESUME);
	return 0;
}
