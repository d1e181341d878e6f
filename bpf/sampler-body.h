/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sampler's body: ordinary C that decides what becomes of one sample. It
 * is compiled into the BPF program, and natively for its test; who includes
 * it defines before:
 *
 *   struct sampler_context          whatever the helpers need
 *   SAMPLER_INLINE, SAMPLER_GLOBAL  how functions are declared
 *   h_config()                      const volatile struct sampler_config *
 *   h_cpu()                         number of this CPU, below 65536
 *   h_state(cpu)                    struct sampler_cpu *
 *   h_slot(cpu, half, i)            struct sampler_slot * of the table, or NULL; i is wrapped
 *   h_log(cpu, half)                __u64 *, the log, or NULL
 *   h_log_words()                   words of it, SAMPLER_LOG_SPARE not counted
 *   h_selected_find(tgid)           struct sampler_selected * or NULL
 *   h_cgroup_find(id)               __u32 * (1: selected) or NULL
 *   h_process_find(key)             struct sampler_process_state * or NULL
 *   h_process_put(key, state)       0 or an error
 *   h_send(data, size, wake)        0, or an error if the ring is full
 *   h_ring_crowded()                whether the ring is over half full
 *   h_now()                         ns, monotonic
 *   h_walk(c, user, pcs, n)         frames written to pcs[0..n), n = SAMPLER_FRAMES_MAX
 *   h_task(c, task)                 fills in struct sampler_task but cgroup and root
 *   h_cgroup(c)                     the id of its cgroup
 *   h_leader_comm(c, comm), h_comm(comm)
 *
 * Per CPU it is never interrupted by itself: cpu-clock samples run in a timer
 * interrupt. At the rates in use nothing that it touches is in the caches any
 * more when the next sample comes, and that is its cost: hence one line for the
 * books, one for the process, one for the count, and stacks that are walked
 * to where they stay.
 */
#ifndef BPF_SAMPLER_BODY_H
#define BPF_SAMPLER_BODY_H

#include "sampler.h"

/* A process whose mappings change all the time is reported this often. */
#define SAMPLER_CHANGE_NS 100000000ull

struct sampler_task {
	struct sampler_process_key key;
	__u64 groups;
	__u64 cgroup;
	__u64 mm; /* 0: a kernel thread, or one that has given up its memory */
	__u64 exec_vm;
	__u32 in_user; /* interrupted in user mode */
	__u32 kthread;
	__u32 root;
};

/* Where a sample is booked. */
struct sampler_place {
	__u32 cpu, half;
	struct sampler_cpu *state;
	struct sampler_books *books;
};

SAMPLER_INLINE __u64 sampler_mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

/*
 * The hash of words [from, from + n) of the log, never 0. Spreads every bit
 * of every address; not proof against strangers who want collisions, who
 * could only mix up their own stacks. A function of its own, over scalars, because
 * the verifier then walks its loop once and not once per caller's state.
 */
SAMPLER_GLOBAL __u64 sampler_hash(__u32 cpu, __u32 half, __u32 from, __u32 n)
{
	__u64 *log = h_log(cpu, half);
	__u64 hash = n;

	if (!log || from > h_log_words() + SAMPLER_STACK_WORDS + SAMPLER_FRAMES_MAX)
		return 1;
	for (__u32 i = 0; i < SAMPLER_FRAMES_MAX && i < n; i++)
		hash = sampler_mix(hash, log[from + i]);
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

/* What this CPU knows of the process; finds its cgroup. A set of cgroups does
 * not change while tasks are in it, so the walk to the id is spared as long as it is
 * the same process in the same set. */
SAMPLER_INLINE struct sampler_known *sampler_recall(struct sampler_context *c,
						    struct sampler_cpu *state,
						    struct sampler_task *task)
{
	struct sampler_known *known = &state->known[task->key.tgid & (SAMPLER_KNOWN - 1)];

	if (known->key.tgid != task->key.tgid || known->key.start_ns != task->key.start_ns ||
	    known->groups != task->groups) {
		known->key = task->key;
		known->groups = task->groups;
		known->cgroup = h_cgroup(c);
		known->reported = 0;
	}
	task->cgroup = known->cgroup;
	return known;
}

/* Tells user space of a new process or new mappings. What could not be sent is
 * not remembered, so the next sample tries again. */
SAMPLER_INLINE void sampler_note_process(struct sampler_context *c, struct sampler_known *known,
					 struct sampler_task *task)
{
	struct sampler_process record = {.type = SAMPLER_RECORD_PROCESS};
	__u32 reported = h_config()->epoch + 1;
	struct sampler_process_state *sent, state;

	if (known->reported == reported &&
	    (!task->mm || (known->mm == task->mm && known->exec_vm == task->exec_vm)))
		return;
	state.mm = task->mm;
	state.exec_vm = task->exec_vm;
	sent = h_process_find(&task->key);
	if (!sent || (task->mm && (sent->mm != task->mm || sent->exec_vm != task->exec_vm))) {
		state.sent_ns = h_now();
		if (sent && state.sent_ns - sent->sent_ns < SAMPLER_CHANGE_NS)
			return;
		record.flags = task->kthread ? SAMPLER_PROCESS_KTHREAD : 0;
		record.key = task->key;
		record.cgroup = task->cgroup;
		record.root = task->root;
		h_leader_comm(c, record.comm);
		if (h_send(&record, sizeof(record), 1) != 0)
			return;
		h_process_put(&task->key, &state);
	}
	known->mm = task->mm;
	known->exec_vm = task->exec_vm;
	known->reported = reported;
}

/* Frames of the process itself. The seam for unwinding without frame
 * pointers: whatever fills pcs[] leaf first may stand here. */
SAMPLER_INLINE __u32 sampler_walk_user(struct sampler_context *c, __u64 *pcs)
{
	return h_walk(c, 1, pcs, SAMPLER_FRAMES_MAX);
}

/* Walks what there is to walk into the log at `at`, behind the record's head,
 * and completes head and key. */
SAMPLER_INLINE void sampler_walk(struct sampler_context *c, const struct sampler_task *task,
				 const struct sampler_place *p, __u64 *log, __u32 at,
				 struct sampler_stack *head, struct sampler_key *key)
{
	__u32 n_kernel = 0, n_user = 0, from = at + SAMPLER_STACK_WORDS;
	__u16 flags = 0;

	if (!task->in_user && h_config()->with_kernel) {
		n_kernel = h_walk(c, 0, &log[from], SAMPLER_FRAMES_MAX);
		if (n_kernel >= SAMPLER_FRAMES_MAX) {
			n_kernel = SAMPLER_FRAMES_MAX;
			flags |= SAMPLER_STACK_KERNEL_CUT;
		}
		key->kernel_hash = n_kernel ? sampler_hash(p->cpu, p->half, from, n_kernel) : 0;
	}
	if (task->mm && !task->kthread) {
		n_user = sampler_walk_user(c, &log[from + n_kernel]);
		if (n_user >= SAMPLER_FRAMES_MAX) {
			n_user = SAMPLER_FRAMES_MAX;
			flags |= SAMPLER_STACK_USER_CUT;
		}
		key->user_hash =
			n_user ? sampler_hash(p->cpu, p->half, from + n_kernel, n_user) : 0;
	}
	head->type = SAMPLER_RECORD_STACK;
	head->n_kernel = (__u16)n_kernel;
	head->n_user = (__u16)n_user;
	head->half = (__u16)p->half;
	head->flags = flags;
	head->zero = 0;
}

/* Keeps what was walked to `at`: in the log, or if that is full, by sending it. */
SAMPLER_INLINE void sampler_keep_stack(const struct sampler_place *p, __u64 *log, __u32 at,
				       struct sampler_stack *head, struct sampler_slot *slot)
{
	__u32 n = SAMPLER_STACK_WORDS + (__u32)head->n_kernel + head->n_user;
	__u32 stack = ++p->books->n_stacks;

	if (n > SAMPLER_LOG_SPARE)
		return;
	head->id = sampler_stack_id(stack, p->cpu);
	if (at + n <= h_log_words())
		p->books->n_words = at + n;
	else if (h_send(&log[at], n * sizeof(__u64), h_ring_crowded()) != 0)
		return;
	slot->stack = stack;
}

SAMPLER_INLINE __u64 sampler_comm_word(const struct sampler_key *key, __u32 i)
{
	__u64 word;

	__builtin_memcpy(&word, &key->comm[i * sizeof(word)], sizeof(word));
	return word;
}

/* Without branches, which would be as many paths for the verifier to follow. */
SAMPLER_INLINE bool sampler_same(const struct sampler_key *a, const struct sampler_key *b)
{
	__u64 difference = a->user_hash ^ b->user_hash;

	difference |= a->kernel_hash ^ b->kernel_hash;
	difference |= a->process.start_ns ^ b->process.start_ns;
	difference |= a->process.tgid ^ b->process.tgid;
	difference |= a->cgroup ^ b->cgroup;
	difference |= sampler_comm_word(a, 0) ^ sampler_comm_word(b, 0);
	difference |= sampler_comm_word(a, 1) ^ sampler_comm_word(b, 1);
	return difference == 0;
}

/* Counts the sample under its key. The slot, or NULL if it found none. */
SAMPLER_INLINE struct sampler_slot *sampler_count(const struct sampler_place *p,
						  const struct sampler_key *key)
{
	__u64 hash = sampler_mix(key->user_hash ^ key->process.start_ns,
				 key->kernel_hash ^ sampler_comm_word(key, 0));
	struct sampler_slot *slot;

	for (__u32 i = 0; i < SAMPLER_PROBES; i++) {
		slot = h_slot(p->cpu, p->half, (__u32)(hash >> 32) + i);
		if (!slot) {
			p->books->counters.new_cpu++;
			return NULL;
		}
		if (slot->count == 0) {
			slot->key = *key;
			slot->count = 1;
			slot->stack = 0;
			return slot;
		}
		if (sampler_same(&slot->key, key)) {
			slot->count++;
			return slot;
		}
	}
	p->books->counters.map_full++;
	return NULL;
}

SAMPLER_INLINE void sampler_take(struct sampler_context *c, const struct sampler_place *p,
				 const struct sampler_task *task)
{
	__u64 *log = h_log(p->cpu, p->half);
	struct sampler_stack *head;
	struct sampler_key key = {};
	struct sampler_slot *slot;
	__u32 at = p->books->n_words;

	if (!log) {
		p->books->counters.new_cpu++;
		return;
	}
	if (at > h_log_words()) /* cannot be; tells the verifier */
		at = h_log_words();
	key.process = task->key;
	key.cgroup = task->cgroup;
	if (h_config()->with_comm)
		h_comm(key.comm);
	head = (struct sampler_stack *)(void *)&log[at];
	sampler_walk(c, task, p, log, at, head, &key);
	slot = sampler_count(p, &key);
	if (slot && slot->stack == 0)
		sampler_keep_stack(p, log, at, head, slot);
}

/* One sample. `pid` is the interrupted thread, 0 for the idle task. */
SAMPLER_INLINE void sampler_body(struct sampler_context *c, __u32 pid)
{
	struct sampler_place p = {.cpu = h_cpu(), .half = h_config()->active & 1};
	struct sampler_task task = {};
	struct sampler_known *known;

	p.state = h_state(p.cpu);
	if (!p.state)
		return;
	p.books = &p.state->books[p.half];
	if (pid == 0) {
		p.books->counters.idle++;
		return;
	}
	h_task(c, &task);
	known = sampler_recall(c, p.state, &task);
	if (!sampler_selects(&task)) {
		p.books->counters.unselected++;
		return;
	}
	p.books->counters.taken++;
	sampler_note_process(c, known, &task);
	sampler_take(c, &p, &task);
}

#endif
