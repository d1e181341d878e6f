/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sampler's body: ordinary C that decides what becomes of one sample. It
 * is compiled into the BPF program, and natively for its test; who includes
 * it defines before:
 *
 *   struct sampler_context          whatever the helpers need
 *   SAMPLER_INLINE, SAMPLER_GLOBAL  how functions are declared
 *   h_config()                      const volatile struct sampler_config *
 *   h_scratch()                     struct sampler_scratch *, this CPU's own
 *   h_counters(half)                struct sampler_counters *, this CPU's own
 *   h_counts(half)                  void *, the half's map
 *   h_count_find(map, key)          struct sampler_value * or NULL
 *   h_count_new(map, key, value)    0, -EEXIST, -E2BIG or another error
 *   h_increment(p)                  *p += 1, over all CPUs
 *   h_selected_find(tgid)           struct sampler_selected * or NULL
 *   h_cgroup_find(id)               __u32 * (1: selected) or NULL
 *   h_process_find(key)             struct sampler_process_state * or NULL
 *   h_process_put(key, state)       0 or an error
 *   h_send(data, size, wake)        0, or an error if the ring is full
 *   h_ring_crowded()                whether the ring is over half full
 *   h_now()                         ns, monotonic
 *   h_cpu()                         number of this CPU, below 65536
 *   h_walk(c, user, pcs, n)         frames written to pcs[0..n), n = SAMPLER_FRAMES_MAX
 *   h_task(c, task)                 fills in struct sampler_task
 *   h_leader_comm(c, comm), h_comm(comm)
 *
 * Per CPU it is never interrupted by itself: cpu-clock samples run in a timer
 * interrupt.
 */
#ifndef BPF_SAMPLER_BODY_H
#define BPF_SAMPLER_BODY_H

#include "sampler.h"

#define SAMPLER_EEXIST 17
#define SAMPLER_E2BIG  7

/* A process whose mappings change all the time is reported this often. */
#define SAMPLER_CHANGE_NS 100000000ull

struct sampler_task {
	struct sampler_process_key key;
	__u64 cgroup;
	__u64 mm; /* 0: a kernel thread, or one that has given up its memory */
	__u64 exec_vm;
	__u32 in_user; /* interrupted in user mode */
	__u32 kthread;
	__u32 root;
};

struct sampler_scratch {
	__u64 sequence;
	/* The process that this CPU found reported last, to spare the look-up of
	 * one that goes on running. */
	struct sampler_process_key last;
	__u64 last_mm, last_exec_vm;
	struct sampler_stack stack;
	__u64 pcs[2 * SAMPLER_FRAMES_MAX];
};

/*
 * The hash of pcs[from, from + n) of the scratch, never 0. Spreads every bit
 * of every address; not proof against strangers who want collisions, who
 * could only mix up their own stacks. A function of its own, over scalars, because
 * the verifier then walks its loop once and not once per caller's state.
 */
SAMPLER_GLOBAL __u64 sampler_hash(__u32 from, __u32 n)
{
	struct sampler_scratch *s = h_scratch();
	__u64 hash = n;

	if (!s || from > SAMPLER_FRAMES_MAX)
		return 1;
	for (__u32 i = 0; i < SAMPLER_FRAMES_MAX && i < n; i++) {
		hash = (hash ^ s->pcs[from + i]) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 29;
	}
	return hash | 1;
}

/* Whether the sample counts; sets task->root. */
SAMPLER_INLINE bool sampler_selects(struct sampler_task *task)
{
	__u32 mode = h_config()->mode;
	struct sampler_selected *selected;
	__u32 *verdict;

	if (mode == SAMPLER_ALL)
		return true;
	selected = h_selected_find(task->key.tgid);
	if (selected) {
		task->root = selected->root;
		return true;
	}
	if (mode == SAMPLER_PIDS)
		return false;
	verdict = h_cgroup_find(task->cgroup);
	return !verdict || *verdict;
}

SAMPLER_INLINE bool sampler_is_last(const struct sampler_scratch *s,
				    const struct sampler_task *task)
{
	return s->last.tgid == task->key.tgid && s->last.start_ns == task->key.start_ns &&
	       s->last_mm == task->mm && s->last_exec_vm == task->exec_vm;
}

/* Tells user space of a new process or new mappings. What could not be sent is
 * not remembered, so the next sample tries again. */
SAMPLER_INLINE void sampler_note_process(struct sampler_context *c, struct sampler_scratch *s,
					 struct sampler_task *task)
{
	struct sampler_process record = {.type = SAMPLER_RECORD_PROCESS};
	struct sampler_process_state *known, state;

	if (sampler_is_last(s, task))
		return;
	known = h_process_find(&task->key);
	if (known && (!task->mm || (known->mm == task->mm && known->exec_vm == task->exec_vm))) {
		s->last = task->key;
		s->last_mm = task->mm;
		s->last_exec_vm = task->exec_vm;
		return;
	}
	state.mm = task->mm;
	state.exec_vm = task->exec_vm;
	state.sent_ns = h_now();
	if (known && state.sent_ns - known->sent_ns < SAMPLER_CHANGE_NS)
		return;
	record.flags = task->kthread ? SAMPLER_PROCESS_KTHREAD : 0;
	record.key = task->key;
	record.cgroup = task->cgroup;
	record.root = task->root;
	h_leader_comm(c, record.comm);
	if (h_send(&record, sizeof(record), 1) == 0)
		h_process_put(&task->key, &state);
}

/* Frames of the process itself. The seam for unwinding without frame
 * pointers: whatever fills pcs[] leaf first may stand here. */
SAMPLER_INLINE __u32 sampler_walk_user(struct sampler_context *c, __u64 *pcs)
{
	return h_walk(c, 1, pcs, SAMPLER_FRAMES_MAX);
}

/* Walks what there is to walk into the scratch and completes the key. */
SAMPLER_INLINE void sampler_walk(struct sampler_context *c, const struct sampler_task *task,
				 struct sampler_scratch *s, struct sampler_key *key)
{
	__u32 n_kernel = 0, n_user = 0, flags = 0;

	if (!task->in_user && h_config()->with_kernel) {
		n_kernel = h_walk(c, 0, s->pcs, SAMPLER_FRAMES_MAX);
		if (n_kernel >= SAMPLER_FRAMES_MAX) {
			n_kernel = SAMPLER_FRAMES_MAX;
			flags |= SAMPLER_STACK_KERNEL_CUT;
		}
		key->kernel_hash = n_kernel ? sampler_hash(0, n_kernel) : 0;
	}
	if (task->mm && !task->kthread) {
		n_user = sampler_walk_user(c, &s->pcs[n_kernel]);
		if (n_user >= SAMPLER_FRAMES_MAX) {
			n_user = SAMPLER_FRAMES_MAX;
			flags |= SAMPLER_STACK_USER_CUT;
		}
		key->user_hash = n_user ? sampler_hash(n_kernel, n_user) : 0;
	}
	s->stack.n_kernel = (__u16)n_kernel;
	s->stack.n_user = (__u16)n_user;
	s->stack.flags = (__u16)flags;
}

/* Sends the frames of a value that has none yet. */
SAMPLER_INLINE void sampler_send_stack(struct sampler_scratch *s, struct sampler_value *value,
				       __u32 half)
{
	__u32 n = (__u32)s->stack.n_kernel + s->stack.n_user;

	if (n > 2 * SAMPLER_FRAMES_MAX)
		return;
	s->stack.type = SAMPLER_RECORD_STACK;
	s->stack.half = (__u16)half;
	s->stack.zero = 0;
	s->stack.id = ++s->sequence << 16 | h_cpu();
	if (h_send(&s->stack, sizeof(s->stack) + n * sizeof(__u64), h_ring_crowded()) == 0)
		value->stack = s->stack.id;
}

/* Counts the sample under its key. */
SAMPLER_INLINE void sampler_count(const struct sampler_key *key, struct sampler_scratch *s,
				  struct sampler_counters *counters, __u32 half)
{
	struct sampler_value first;
	struct sampler_value *value;
	void *map = h_counts(half);
	long result;

	if (!map) {
		counters->map_busy++;
		return;
	}
	value = h_count_find(map, key);
	if (value) {
		h_increment(&value->count);
	} else {
		first.stack = 0;
		first.count = 1;
		result = h_count_new(map, key, &first);
		if (result != 0 && result != -SAMPLER_EEXIST) {
			if (result == -SAMPLER_E2BIG)
				counters->map_full++;
			else
				counters->map_busy++;
			return;
		}
		value = h_count_find(map, key);
		if (!value) {
			/* cannot be: nothing removes keys of the active half */
			if (result != 0)
				counters->map_busy++;
			return;
		}
		if (result != 0) /* another CPU was first */
			h_increment(&value->count);
	}
	if (value->stack == 0)
		sampler_send_stack(s, value, half);
}

/* One sample. `pid` is the interrupted thread, 0 for the idle task. */
SAMPLER_INLINE void sampler_body(struct sampler_context *c, __u32 pid)
{
	__u32 half = h_config()->active & 1;
	struct sampler_counters *counters = h_counters(half);
	struct sampler_scratch *s = h_scratch();
	struct sampler_task task = {};
	struct sampler_key key = {};

	if (!counters || !s)
		return;
	if (pid == 0) {
		counters->idle++;
		return;
	}
	h_task(c, &task);
	if (!sampler_selects(&task)) {
		counters->unselected++;
		return;
	}
	counters->taken++;
	sampler_note_process(c, s, &task);
	key.process = task.key;
	key.cgroup = task.cgroup;
	if (h_config()->with_comm)
		h_comm(key.comm);
	sampler_walk(c, &task, s, &key);
	sampler_count(&key, s, counters, half);
}

#endif
