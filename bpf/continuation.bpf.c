/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Walks that continue in task work, because their stack enters language runtimes more often than
 * one run of a program can follow: a round trip is two tail calls, and the kernel allows 33 in a
 * run.
 *
 * Task work cannot tail-call. But it can make the kernel run another program at once: a read of the
 * process's memory where there is none is a page fault, and a perf event on page faults runs a
 * program with 33 calls of its own. So the work faults, round after round, at an address that names
 * its walk. The program there copies the walk to where a sample's would be and hands it to the
 * runtime. From there on it is a sample's walk, until its end is kept here again. The thread has
 * run no instruction of its own since it was sampled.
 *
 * The CPU's walk is free meanwhile: the kernel runs no program of an event while it runs another on
 * the CPU. The event excludes faults in user mode, so the program runs at the few of the kernel
 * itself only. It is open while there is a process whose code a runtime has claimed. */
#include "kernel/types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "sampler/programs-map.h"
#include "sampler/shared-maps.h"
#include "task-work/task-work.h"
#include "bpfwire/unwind-tables.h"

#include <andiron/bpf/walk.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define CONTINUATION_SLOTS 16u /* walks at a time; a power of two */
/* more than a stack of ANDIRON_WALK_USER can need: 3 words a round trip */
#define CONTINUATION_ROUNDS  24u
#define CONTINUATION_ADDRESS 16u /* plus the slot: no process has memory in the first page */

_Static_assert((CONTINUATION_SLOTS & (CONTINUATION_SLOTS - 1)) == 0, "slots are masked");
_Static_assert(SAMPLER_BUSY_ROUND + CONTINUATION_SLOTS <= 0xffff, "sampler_pending.busy");
_Static_assert((CONTINUATION_ROUNDS + 1) * ANDIRON_WALK_SWITCHES * 3 >= ANDIRON_WALK_USER,
	       "all that fit");

#define CONTINUATION_FREE    0
#define CONTINUATION_WAITING 1 /* for its task work, or between two rounds */
#define CONTINUATION_ROUND   2

struct continuation {
	struct bpf_task_work work;
	__u64 state; /* CONTINUATION_FREE, … */
	__u64 thread;
	__u64 id;
	__u32 buffer;
	__u32 slot; /* its own */
	struct andiron_walk walk;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CONTINUATION_SLOTS);
	__type(key, __u32);
	__type(value, struct continuation);
} continuations SEC(".maps");

__u32 continuation_next = 0;

/* Sends the stack as it is now; it replaces the one of the sample. */
static __always_inline void continuation_send(struct continuation *o)
{
	struct andiron_walk *w = &o->walk;
	struct sampler_stack *head = (struct sampler_stack *)(void *)w->head;
	__u32 n = w->n_words;

	if (n > ANDIRON_WALK_WORDS)
		return;
	head->type = SAMPLER_RECORD_STACK;
	head->n_kernel = (__u16)w->n_kernel;
	head->n_user = (__u16)(n - w->n_kernel);
	head->buffer = (__u16)o->buffer;
	head->flags &= SAMPLER_STACK_EXEC;
	head->flags |= w->n_kernel >= ANDIRON_WALK_KERNEL ? SAMPLER_STACK_KERNEL_CUT : 0;
	head->end = w->end;
	head->id = o->id | SAMPLER_STACK_COMPLETED;
	bpf_ringbuf_output(&ring, w->head, (SAMPLER_STACK_WORDS + n) * sizeof(__u64),
			   bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >
					   bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE) / 2
				   ? BPF_RB_FORCE_WAKEUP
				   : BPF_RB_NO_WAKEUP);
}

/* In the thread itself. A round that has not come further was the last. */
static int continuation_run(struct bpf_map *map, void *key, void *value)
{
	struct continuation *o = value;
	__u32 first = o->walk.n_words, before;
	char none;

	o->thread = bpf_get_current_pid_tgid();
	for (__u32 i = 0; i < CONTINUATION_ROUNDS && o->walk.end == UNWIND_END_SWITCHES; i++) {
		before = o->walk.n_words;
		o->state = CONTINUATION_ROUND;
		bpf_copy_from_user(&none, 1,
				   (const void *)(unsigned long)(CONTINUATION_ADDRESS + o->slot));
		o->state = CONTINUATION_WAITING;
		if (o->walk.n_words == before)
			break;
	}
	if (o->walk.n_words != first)
		continuation_send(o);
	o->state = CONTINUATION_FREE;
	return 0;
}

static __always_inline int continuation_fill(struct continuation *o, __u32 cpu)
{
	struct andiron_walk *w = bpf_map_lookup_elem(&walks, &cpu);
	const struct sampler_stack *head;

	if (!w)
		return -1;
	head = (const struct sampler_stack *)(const void *)w->head;
	o->id = head->id;
	o->buffer = head->buffer;
	return (int)bpf_probe_read_kernel(&o->walk, sizeof(o->walk), w);
}

/* Called when a sample was counted whose walk has ended in UNWIND_END_SWITCHES. */
SEC("perf_event")
int continuation(struct bpf_perf_event_data *event)
{
	__u32 slot = __sync_fetch_and_add(&continuation_next, 1) & (CONTINUATION_SLOTS - 1);
	struct continuation *o = bpf_map_lookup_elem(&continuations, &slot);

	if (!o || __sync_val_compare_and_swap(&o->state, CONTINUATION_FREE, CONTINUATION_WAITING) !=
			  CONTINUATION_FREE)
		return 0;
	o->slot = slot;
	if (continuation_fill(o, bpf_get_smp_processor_id()) != 0 ||
	    task_work_ask(&o->work, &continuations, continuation_run) != 0)
		o->state = CONTINUATION_FREE;
	return 0;
}

/* The walk in a slot, if the current thread is in a round of it. */
static __always_inline struct continuation *continuation_at(__u32 slot)
{
	struct continuation *o = bpf_map_lookup_elem(&continuations, &slot);

	return o && o->state == CONTINUATION_ROUND && o->thread == bpf_get_current_pid_tgid()
		       ? o
		       : NULL;
}

/* On page faults of the kernel's: begins a round, where the sample or the round before ended. */
SEC("perf_event")
int begin_round(struct bpf_perf_event_data *event)
{
	__u64 slot = event->addr - CONTINUATION_ADDRESS;
	__u32 cpu = bpf_get_smp_processor_id();
	struct sampler_cpu *state;
	struct andiron_walk *w;
	struct continuation *o;

	if (slot >= CONTINUATION_SLOTS)
		return 0;
	o = continuation_at((__u32)slot);
	w = bpf_map_lookup_elem(&walks, &cpu);
	state = bpf_map_lookup_elem(&cpus, &cpu);
	if (!o || !w || !state || state->pending.busy != SAMPLER_BUSY_NOT ||
	    bpf_probe_read_kernel(w, sizeof(*w), &o->walk) != 0)
		return 0;
	state->pending.busy = (__u16)(SAMPLER_BUSY_ROUND + slot);
	w->switches = 1;
	w->end = 0;
	if (w->slot != ANDIRON_WALK_RESUME)
		bpf_tail_call(event, &programs, w->slot);
	state->pending.busy = SAMPLER_BUSY_NOT;
	return 0;
}

/* Called when the walk has ended, or can be handed over no more. */
SEC("perf_event")
int end_round(struct bpf_perf_event_data *event)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct sampler_cpu *state = bpf_map_lookup_elem(&cpus, &cpu);
	struct andiron_walk *w = bpf_map_lookup_elem(&walks, &cpu);
	struct continuation *o;

	if (!w || !state)
		return 0;
	o = continuation_at(state->pending.busy - SAMPLER_BUSY_ROUND);
	state->pending.busy = SAMPLER_BUSY_NOT;
	if (o)
		bpf_probe_read_kernel(&o->walk, sizeof(o->walk), w);
	return 0;
}
