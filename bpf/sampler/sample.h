/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The sampler's body: ordinary C that decides what becomes of one sample. It is compiled into the
 * BPF program, and natively for its test; who includes it defines before:
 *
 *   struct sampler_context          whatever the helpers need
 *   SAMPLER_INLINE, SAMPLER_GLOBAL  how functions are declared, and what native-stack.h wants
 *   h_config()                      const volatile struct sampler_config *
 *   h_state(cpu)                    struct sampler_cpu *
 *   h_selected_find(tgid)           struct sampler_selected * or NULL
 *   h_cgroup_find(id)               __u32 * (1: selected) or NULL
 *   h_process_find(key)             struct sampler_process_state * or NULL
 *   h_process_put(key, state)       0 or an error
 *   h_send(data, size, wake)        0, or an error if the ring is full
 *   h_ring_crowded()                whether the ring is over half full
 *   h_now()                         ns, monotonic
 *   h_kernel_frames(c, w)           into w->frames[0..ANDIRON_WALK_KERNEL); their number
 *   h_registers(c, task, w)         the process's, into the walk; 0 or a reason of UNWIND_END_*
 *   h_space(i)                      struct unwind_space *, i is wrapped, or NULL
 *   h_generation(c)                 unwind_generation() of the current process, 0 during exec
 *   h_parent(c, key)                its parent's key
 *   h_log_words()                   words of a log, SAMPLER_LOG_SPARE not counted
 *   h_log_put(cpu, buffer, at, words, n)  into the log; 0, or an error if this CPU has none
 *   h_wait_put(words)               SAMPLER_WAIT_WORDS, as the current thread's wait; 0 or an error
 *   h_task(c, task)                 fills in struct sampler_task but cgroup and root
 *   h_cgroup(c)                     the id of its cgroup
 *   h_leader_comm(c, comm), h_comm(comm)
 *
 * Per CPU it is never interrupted by itself: cpu-clock samples run in a timer interrupt. At the
 * rates in use nothing that it touches is in the caches any more when the next sample comes, and
 * that is its cost: hence one line for the counts, one for the process, and the next ones of the
 * log.
 *
 * A sample is begun, walked and finished. In between a runtime's program may run, so what is needed
 * to finish stands in sampler_cpu.pending and in the walk. */
#pragma once

#include "bpfwire/sampler.h"
#include "unwinder/native-stack.h"

/* A process whose mappings change all the time is reported this often. */
#define SAMPLER_CHANGE_NS 100000000ull
/* The kernel does not count writable code. Where a stack leads to an unknown address, its process
 * is read again, this often; and so many times in a row if it was not for as long: a runtime that
 * begins maps memory for its code again and again. */
#define SAMPLER_ASK_NS  250000000ull
#define SAMPLER_ASK_ROW 64

struct sampler_task {
	struct sampler_process_key key;
	__u64 groups;
	__u64 cgroup;
	__u64 exec; /* differs between program images; 0: without memory */
	__u64 exec_vm;
	__u32 in_user; /* interrupted in user mode */
	__u32 kthread;
	__u32 root;
};

/* Where a sample is counted. */
struct sampler_slot {
	__u32 cpu, buffer;
	struct sampler_cpu *state;
	struct sampler_counts *counts;
};

/* Whether the sample counts; sets task->root. */
SAMPLER_INLINE bool sampler_selects(struct sampler_task *task)
{
	__u32 mode = h_config()->mode;
	struct sampler_selected *selected;
	__u32 *outcome;

	if (mode == SAMPLER_ALL)
		return true;
	selected = h_selected_find(task->key.tgid);
	if (selected) {
		task->root = selected->root;
		return true;
	}
	if (mode == SAMPLER_PIDS)
		return false;
	outcome = h_cgroup_find(task->cgroup);
	return !outcome || *outcome;
}

/* What this CPU knows of the process; finds its cgroup. A set of cgroups does not change while
 * tasks are in it, so the walk to the id is spared as long as it is the same process in the same
 * set. */
SAMPLER_INLINE struct sampler_known *
sampler_recall(struct sampler_context *c, struct sampler_cpu *state, struct sampler_task *task)
{
	struct sampler_known *known = sampler_known_of(state, &task->key);

	if (known->key.tgid != task->key.tgid || known->key.start_ns != task->key.start_ns ||
	    known->groups != task->groups) {
		known->key = task->key;
		known->groups = task->groups;
		known->cgroup = h_cgroup(c);
		known->reported = 0;
		known->space = 0;
		known->exec = 0;
	}
	if (task->exec && (task->exec != known->exec || known->generation == 0))
		known->generation = h_generation(c);
	task->cgroup = known->cgroup;
	return known;
}

/* Tells user space of a new process or new mappings. What could not be sent is not remembered, so
 * the next sample tries again. Nobody is woken where a snapshot follows, which does that: one of a
 * process that is new tells what it has mapped as well. */
SAMPLER_INLINE void sampler_note_process(struct sampler_context *c, struct sampler_known *known,
					 struct sampler_task *task, bool wake)
{
	struct sampler_process record = {.type = SAMPLER_RECORD_PROCESS};
	__u32 reported = h_config()->epoch + 1;
	struct sampler_process_state *sent, state;

	if (task->exec && known->generation == 0)
		return;
	if (known->reported == reported &&
	    (!task->exec || (known->exec == task->exec && known->exec_vm == task->exec_vm)))
		return;
	state.exec = task->exec;
	state.exec_vm = task->exec_vm;
	sent = h_process_find(&task->key);
	state.asked_ns = sent ? sent->asked_ns : 0;
	if (!sent || (task->exec && (sent->exec != task->exec || sent->exec_vm != task->exec_vm))) {
		state.sent_ns = h_now();
		if (sent && state.sent_ns - sent->sent_ns < SAMPLER_CHANGE_NS)
			return;
		record.flags = task->kthread ? SAMPLER_PROCESS_KTHREAD : 0;
		record.key = task->key;
		record.cgroup = task->cgroup;
		record.root = task->root;
		record.generation = task->exec ? known->generation : 0;
		h_parent(c, &record.parent);
		h_leader_comm(c, record.comm);
		if (h_send(&record, sizeof(record), wake) != 0)
			return;
		h_process_put(&task->key, &state);
	}
	known->exec = task->exec;
	known->exec_vm = task->exec_vm;
	known->reported = reported;
}

/* The slot of a process's address space + 1, if it has one of that generation; else 0. */
SAMPLER_GLOBAL __u32 sampler_find_space(__u64 start_ns, __u32 tgid, __u64 generation)
{
	__u32 hash = unwind_space_hash(start_ns, tgid);
	struct unwind_space *space;

	for (__u32 i = 0; i < UNWIND_PROBES; i++) {
		__u32 slot = unwind_space_slot(hash, i);

		space = h_space(slot);
		if (space && space->tgid == tgid && space->start_ns == start_ns &&
		    space->generation == generation && space->word != 0)
			return slot + 1;
	}
	return 0;
}

/* The address space of a process: its own, or its parent's of the same generation, since both have
 * mapped the same. NULL: not known yet. A parent's is looked up again, as its own may come. */
SAMPLER_INLINE struct unwind_space *sampler_space(struct sampler_context *c,
						  struct sampler_known *known,
						  const struct sampler_task *task)
{
	struct unwind_space *space = known->space ? h_space(known->space - 1) : NULL;
	struct sampler_process_key parent = {};
	__u32 slot;

	if (space && space->tgid == task->key.tgid && space->generation == known->generation)
		return space;
	slot = sampler_find_space(task->key.start_ns, task->key.tgid, known->generation);
	if (slot == 0 && space && space->generation == known->generation)
		return space;
	if (slot == 0) {
		h_parent(c, &parent);
		slot = sampler_find_space(parent.start_ns, parent.tgid, known->generation);
	}
	known->space = slot;
	return slot ? h_space(slot - 1) : NULL;
}

/* Readies the walk: the kernel's frames, and the process's registers. Where there is something to
 * walk, w->end is 0 after it. */
SAMPLER_INLINE void sampler_start_walk(struct sampler_context *c, struct sampler_known *known,
				       const struct sampler_task *task, struct andiron_walk *w,
				       struct sampler_pending *pending)
{
	struct unwind_space *space;
	__u32 n = 0;

	if (!task->in_user && h_config()->with_kernel)
		n = h_kernel_frames(c, w);
	if (n > ANDIRON_WALK_KERNEL)
		n = ANDIRON_WALK_KERNEL;
	w->version = ANDIRON_WALK_VERSION;
	w->own = 0;
	w->switches = 0;
	w->native = 0;
	w->exact = 1;
	w->n_chain = 0;
	w->careful = 0;
	w->n_kernel = n;
	w->n_words = n;
	if (!task->exec || task->kthread || known->generation == 0) {
		w->end = UNWIND_END_NOTHING;
		return;
	}
	w->end = h_registers(c, task, w);
	space = sampler_space(c, known, task);
	w->space = space ? space->word : 0;
	w->pid = space ? space->tgid : task->key.tgid;
	pending->stale = space && space->exec_pages != (__u32)task->exec_vm;
	if (w->end == 0 && w->space == 0) {
		/* All that is known of it so far: where it stood. */
		andiron_walk_word(w, w->pc);
		w->end = UNWIND_END_NEW;
	}
}

/* Whether it is time to read the process again. */
SAMPLER_INLINE __u32 sampler_may_ask(const struct sampler_process_key *key)
{
	struct sampler_process_state *state = h_process_find(key);
	__u64 now = h_now(), asked;

	if (!state)
		return 0;
	asked = state->asked_ns;
	if (asked + SAMPLER_ASK_ROW * SAMPLER_ASK_NS < now)
		asked = now - SAMPLER_ASK_ROW * SAMPLER_ASK_NS;
	if (asked + SAMPLER_ASK_NS > now)
		return 0;
	state->asked_ns = asked + SAMPLER_ASK_NS;
	return 1;
}

/* Whether the stack may be completed after its sample: by user space, or in task work. */
SAMPLER_INLINE bool sampler_is_open(const struct andiron_walk *w,
				    const struct sampler_pending *pending)
{
	return w->end == UNWIND_END_NEW || w->end == UNWIND_END_NO_PAGE ||
	       (w->end == UNWIND_END_NO_MAPPING && pending->stale) ||
	       (w->end == UNWIND_END_SWITCHES && h_config()->continuation);
}

/* Writes a sample of n words, at most `most`, into the log; into the ring if that is full, or if
 * the CPU has none yet because it came online after the start. False: it is lost, and counted. */
SAMPLER_INLINE bool sampler_write(const struct sampler_slot *p, __u64 *words, __u32 n, __u32 most)
{
	__u32 at = p->counts->n_words;

	p->counts->counters.taken++;
	if (at + n <= h_log_words() && h_log_put(p->cpu, p->buffer, at, words, n) == 0) {
		p->counts->n_words = at + n;
		return true;
	}
	if (n <= most && h_send(words, n * sizeof(__u64), h_ring_crowded()) == 0)
		return true;
	p->counts->counters.ring_full++;
	return false;
}

/* Keeps the sample of a thread that leaves its CPU until it is back. */
SAMPLER_INLINE void sampler_wait(const struct sampler_slot *p, const struct andiron_walk *w)
{
	if (h_wait_put(w->head) == 0)
		return;
	p->counts->counters.taken++;
	p->counts->counters.ring_full++;
}

/* The thread of that wait is back, on this CPU. */
SAMPLER_INLINE void sampler_waited(__u32 cpu, struct sampler_wait *wait)
{
	struct sampler_slot p = {
		.cpu = cpu, .buffer = h_config()->active & 1, .state = h_state(cpu)};
	struct sampler_stack *head = (struct sampler_stack *)(void *)wait->words;
	__u32 n = SAMPLER_STACK_WORDS + head->n_kernel + head->n_user;
	__u64 now = h_now();

	if (!p.state || n > SAMPLER_WAIT_WORDS)
		return;
	p.counts = &p.state->counts[p.buffer];
	head->buffer = (__u16)p.buffer;
	head->id = now > head->id ? now - head->id : 1;
	sampler_write(&p, wait->words, n, SAMPLER_WAIT_WORDS);
}

/* Completes a walked sample and writes it down. 1: its stack may be completed elsewhere, if it has
 * a snapshot. */
SAMPLER_GLOBAL int sampler_finish(__u32 cpu)
{
	struct andiron_walk *w = h_walk_state(cpu);
	struct sampler_slot p = {.cpu = cpu, .state = h_state(cpu)};
	struct sampler_pending *pending;
	struct sampler_stack *head;
	bool open, off_cpu;

	if (!w || !p.state)
		return 0;
	head = (struct sampler_stack *)(void *)w->head;
	pending = &p.state->pending;
	pending->busy = SAMPLER_BUSY_NOT;
	p.buffer = pending->buffer & 1;
	p.counts = &p.state->counts[p.buffer];
	off_cpu = pending->off_cpu != SAMPLER_OFF_CPU_NOT;
	if (off_cpu && w->n_words > SAMPLER_WAIT_WORDS - SAMPLER_STACK_WORDS) {
		w->n_words = SAMPLER_WAIT_WORDS - SAMPLER_STACK_WORDS;
		w->end = UNWIND_END_TRUNCATED;
	}
	if (!off_cpu && w->end == UNWIND_END_NO_MAPPING && !pending->stale)
		pending->stale = sampler_may_ask(&pending->key.process);
	open = !off_cpu && sampler_is_open(w, pending);
	head->type = SAMPLER_RECORD_STACK;
	head->n_kernel = (__u16)w->n_kernel;
	head->n_user = (__u16)(w->n_words - w->n_kernel);
	head->buffer = (__u16)p.buffer;
	head->flags =
		sampler_stack_exec(sampler_known_of(p.state, &pending->key.process)->generation);
	head->flags |= w->n_kernel >= ANDIRON_WALK_KERNEL ? SAMPLER_STACK_KERNEL_CUT : 0;
	head->end = w->end;
	head->flags |= off_cpu ? SAMPLER_STACK_OFF_CPU : 0;
	head->id = open ? (__u64)(++p.counts->n_open) << 16 | cpu : 0;
	head->key = pending->key;
	if (off_cpu) {
		head->id = h_now();
		sampler_wait(&p, w);
		return 0;
	}
	return sampler_write(&p, w->head, SAMPLER_STACK_WORDS + w->n_words, SAMPLER_LOG_SPARE) &&
	       open;
}

/* Begins a sample. `pid` is the interrupted thread, 0 for the idle task. False: there is nothing to
 * walk or to finish. Else the walk's end is 0 if it is to be walked. */
SAMPLER_INLINE bool sampler_begin(struct sampler_context *c, __u32 cpu, __u32 pid)
{
	struct andiron_walk *w = h_walk_state(cpu);
	struct sampler_cpu *state = h_state(cpu);
	struct sampler_task task = {};
	struct sampler_pending *pending;
	struct sampler_known *known;
	struct sampler_counts *counts;
	__u32 buffer = h_config()->active & 1;

	if (!state || !w)
		return false;
	counts = &state->counts[buffer];
	pending = &state->pending;
	if (pending->busy == SAMPLER_BUSY_SAMPLE) {
		counts->counters.taken++;
		counts->counters.unfinished++;
	}
	pending->busy = SAMPLER_BUSY_NOT;
	pending->off_cpu = pending->off_cpu == SAMPLER_OFF_CPU_ASKED ? SAMPLER_OFF_CPU_TAKEN
								     : SAMPLER_OFF_CPU_NOT;
	if (pid == 0) {
		counts->counters.idle++;
		return false;
	}
	h_task(c, &task);
	known = sampler_recall(c, state, &task);
	if (!sampler_selects(&task)) {
		counts->counters.unselected += pending->off_cpu == SAMPLER_OFF_CPU_NOT;
		return false;
	}
	pending->buffer = (__u16)buffer;
	pending->busy = SAMPLER_BUSY_SAMPLE;
	pending->key.process = task.key;
	pending->key.cgroup = task.cgroup;
	if (h_config()->with_comm)
		h_comm(pending->key.comm);
	if (h_config()->with_tid)
		pending->key.tid = pid;
	sampler_start_walk(c, known, &task, w, pending);
	sampler_note_process(c, known, &task,
			     w->end != UNWIND_END_NEW || pending->off_cpu != SAMPLER_OFF_CPU_NOT);
	return true;
}
