/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler's body, natively and under the sanitizers: the maps are small
 * arrays here, the ring a buffer, the stacks recorded ones.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sampler.h"

#include "base/buf.h"
#include "base/test.h"

#define SAMPLER_INLINE static inline
#define SAMPLER_GLOBAL static

struct sampler_context {
	const uint64_t *user, *kernel;
	uint32_t n_user, n_kernel;
	uint32_t tgid;
	uint64_t cgroup, mm, exec_vm;
	bool in_user, kthread;
};

#define CPU       3 /* where we run */
#define N_SLOTS   64
#define LOG_WORDS 4096

/* The kernel of this test. */
static struct world {
	struct sampler_config config;
	struct sampler_cpu cpu;
	struct sampler_slot slots[SAMPLER_HALVES][N_SLOTS];
	uint64_t logs[SAMPLER_HALVES][LOG_WORDS + SAMPLER_LOG_SPARE];
	uint32_t n_slots, log_words; /* as if the maps were smaller; a power of two */
	struct sampler_selected selected;
	uint32_t selected_tgid;
	uint64_t judged;
	uint32_t verdict;
	struct sampler_process_key process;
	struct sampler_process_state state;
	uint64_t now;
	struct buf ring;
	bool ring_full, no_table;
	uint32_t n_wakes, n_processes, n_sent, n_cgroup_walks;
} w;

struct sampler_task;
static void h_task(struct sampler_context *c, struct sampler_task *task);

static const volatile struct sampler_config *h_config(void)
{
	return &w.config;
}

static __u32 h_cpu(void)
{
	return CPU;
}

static struct sampler_cpu *h_state(__u32 cpu)
{
	return cpu == CPU ? &w.cpu : NULL;
}

static struct sampler_slot *h_slot(__u32 cpu, __u32 half, __u32 i)
{
	return cpu == CPU && !w.no_table ? &w.slots[half][i & (w.n_slots - 1)] : NULL;
}

static __u64 *h_log(__u32 cpu, __u32 half)
{
	return cpu == CPU && !w.no_table ? (__u64 *)w.logs[half] : NULL;
}

static __u32 h_log_words(void)
{
	return w.log_words;
}

static __u64 h_cgroup(struct sampler_context *c)
{
	w.n_cgroup_walks++;
	return c->cgroup;
}

static struct sampler_selected *h_selected_find(__u32 tgid)
{
	return tgid == w.selected_tgid ? &w.selected : NULL;
}

static __u32 *h_cgroup_find(__u64 id)
{
	return id == w.judged ? &w.verdict : NULL;
}

static struct sampler_process_state *h_process_find(const struct sampler_process_key *key)
{
	return memcmp(key, &w.process, sizeof(*key)) == 0 ? &w.state : NULL;
}

static long h_process_put(const struct sampler_process_key *key,
			  const struct sampler_process_state *state)
{
	w.process = *key;
	w.state = *state;
	return 0;
}

static long h_send(const void *data, __u64 size, bool wake)
{
	const struct sampler_stack *head = data;

	if (w.ring_full)
		return -11;
	expect_eq(buf_append(&w.ring, data, size), 0);
	w.n_wakes += wake;
	if (head->type == SAMPLER_RECORD_PROCESS)
		w.n_processes++;
	else
		w.n_sent++;
	return 0;
}

static bool h_ring_crowded(void)
{
	return w.ring.n > 4096;
}

static __u64 h_now(void)
{
	return w.now;
}

static __u32 h_walk(struct sampler_context *c, bool user, __u64 *pcs, __u32 n)
{
	uint32_t have = user ? c->n_user : c->n_kernel;
	const uint64_t *from = user ? c->user : c->kernel;

	if (have > n)
		have = n;
	for (uint32_t i = 0; i < have; i++)
		pcs[i] = from[i];
	return have;
}

static void h_leader_comm(struct sampler_context *c, char *comm)
{
	memcpy(comm, "leader", 7);
}

static void h_comm(char *comm)
{
	memcpy(comm, "thread", 7);
}

#include "sampler-body.h"

static void h_task(struct sampler_context *c, struct sampler_task *task)
{
	task->key.tgid = c->tgid;
	task->key.start_ns = 1000 + c->tgid;
	task->groups = c->cgroup + 1;
	task->mm = c->mm;
	task->exec_vm = c->exec_vm;
	task->in_user = c->in_user;
	task->kthread = c->kthread;
}

static const uint64_t user_stack[] = {0x401000, 0x402000, 0x403000};
static const uint64_t kernel_stack[] = {0xffffffff81000010u, 0xffffffff81000020u};

static const struct sampler_context in_user = {
	.user = user_stack, .n_user = 3, .tgid = 7, .mm = 1, .exec_vm = 5, .in_user = true};

static const struct sampler_context in_kernel = {
	.user = user_stack, .n_user = 3, .kernel = kernel_stack, .n_kernel = 2,
	.tgid = 7, .mm = 1, .exec_vm = 5};

static void reset(void)
{
	buf_free(&w.ring);
	memset(&w, 0, sizeof(w));
	w.config.with_kernel = 1;
	w.n_slots = N_SLOTS;
	w.log_words = LOG_WORDS;
	w.now = 1000000000;
}

static void sample(const struct sampler_context *c)
{
	struct sampler_context copy = *c;

	sampler_body(&copy, c->tgid);
}

static const struct sampler_counters *counters(uint32_t half)
{
	return &w.cpu.books[half].counters;
}

static uint32_t n_keys(uint32_t half)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < N_SLOTS; i++)
		n += w.slots[half][i].count != 0;
	return n;
}

/* The one with such a stack. */
static const struct sampler_slot *find(uint32_t half, bool user, bool kernel)
{
	for (uint32_t i = 0; i < N_SLOTS; i++) {
		const struct sampler_slot *slot = &w.slots[half][i];

		if (slot->count && (slot->key.user_hash != 0) == user &&
		    (slot->key.kernel_hash != 0) == kernel)
			return slot;
	}
	test_fail(__FILE__, __LINE__, "no such key");
	return NULL;
}

/* The invariant of the wire: for each half, taken = counts + map_full + new_cpu. */
static void expect_closed_books(void)
{
	for (uint32_t half = 0; half < SAMPLER_HALVES; half++) {
		uint64_t sum = counters(half)->map_full + counters(half)->new_cpu;

		for (uint32_t i = 0; i < N_SLOTS; i++)
			sum += w.slots[half][i].count;
		expect_eq(counters(half)->taken, sum);
	}
}

/* Equal stacks are one key, written down once; others are others. */
TEST(equal_stacks_are_counted_together)
{
	const struct sampler_slot *user, *kernel;

	reset();
	for (int i = 0; i < 10; i++)
		sample(&in_user);
	sample(&in_kernel);
	expect_eq(n_keys(0), 2);
	user = find(0, true, false);
	kernel = find(0, true, true);
	expect_eq(user->count, 10);
	expect_eq(kernel->count, 1);
	expect_eq(w.cpu.books[0].n_stacks, 2);
	expect_eq(w.cpu.books[0].n_words, 2 * SAMPLER_STACK_WORDS + 3 + 5);
	expect(user->stack != 0 && kernel->stack != 0);
	expect(user->stack != kernel->stack);
	expect_eq(user->key.user_hash, kernel->key.user_hash);
	expect_eq(w.n_sent, 0);
	expect_closed_books();
	buf_free(&w.ring);
}

static void expect_stack(const void *record)
{
	struct sampler_stack head;
	uint64_t pcs[5];

	memcpy(&head, record, sizeof(head));
	memcpy(pcs, (const char *)record + sizeof(head), sizeof(pcs));
	expect_eq(head.type, SAMPLER_RECORD_STACK);
	expect_eq(head.n_kernel, 2);
	expect_eq(head.n_user, 3);
	expect_eq(head.id, sampler_stack_id(find(0, true, true)->stack, CPU));
	expect(memcmp(pcs, kernel_stack, sizeof(kernel_stack)) == 0);
	expect(memcmp(pcs + 2, user_stack, sizeof(user_stack)) == 0);
}

/* The record holds the frames as they were walked, kernel first: in the log,
 * and where that is full, the same in the ring. */
TEST(records_hold_the_frames)
{
	reset();
	sample(&in_kernel);
	expect_stack(w.logs[0]);
	reset();
	w.log_words = 0;
	sample(&in_kernel);
	expect_eq(w.n_sent, 1);
	expect_eq(w.cpu.books[0].n_words, 0);
	expect_eq(w.ring.n, sizeof(struct sampler_process) +
				    (SAMPLER_STACK_WORDS + 5) * sizeof(uint64_t));
	expect_stack(w.ring.p + sizeof(struct sampler_process));
	buf_free(&w.ring);
}

/* The idle task is counted apart and nothing else is done for it. */
TEST(idle_is_not_sampled)
{
	struct sampler_context c = in_kernel;

	reset();
	sampler_body(&c, 0);
	expect_eq(counters(0)->idle, 1);
	expect_eq(counters(0)->taken, 0);
	expect_eq(w.ring.n, 0);
	buf_free(&w.ring);
}

/* A full table, none at all: each sample is in exactly one place. */
TEST(losses_are_counted)
{
	struct sampler_context c = in_user;

	reset();
	w.n_slots = 1;
	sample(&in_user);
	sample(&in_kernel);
	sample(&in_kernel);
	expect_eq(counters(0)->map_full, 2);
	w.no_table = true;
	c.tgid = 8;
	sample(&c);
	expect_eq(counters(0)->new_cpu, 1);
	expect_closed_books();
	buf_free(&w.ring);
}

/* A stack that found log and ring full is marked, and sent with a later sample. */
TEST(a_full_ring_is_tried_again)
{
	reset();
	w.ring_full = true;
	w.log_words = 0;
	sample(&in_user);
	expect_eq(find(0, true, false)->stack, 0);
	expect_eq(find(0, true, false)->count, 1);
	w.ring_full = false;
	sample(&in_user);
	expect(find(0, true, false)->stack != 0);
	expect_eq(find(0, true, false)->count, 2);
	expect_eq(w.n_sent, 1);
	expect_eq(w.n_processes, 1); /* it too was tried again */
	expect_closed_books();
	buf_free(&w.ring);
}

/* A log that is full keeps what it has; the rest is sent. */
TEST(a_log_fills_up)
{
	struct sampler_context c = in_user;
	uint64_t pc = 1;

	reset();
	c.user = &pc;
	c.n_user = 1;
	w.log_words = 4 * (SAMPLER_STACK_WORDS + 1) + 1;
	for (; pc <= 8; pc++)
		sample(&c);
	expect_eq(w.cpu.books[0].n_words, 4 * (SAMPLER_STACK_WORDS + 1));
	expect_eq(w.n_sent, 4);
	expect_eq(w.logs[0][3 * (SAMPLER_STACK_WORDS + 1) + SAMPLER_STACK_WORDS], 4);
	expect_closed_books();
	buf_free(&w.ring);
}

/* The way to a cgroup's id is walked when the process is new or has moved, and a
 * process that took the place of another is found to be one. */
TEST(cgroups_are_remembered)
{
	struct sampler_context c = in_user;

	reset();
	c.cgroup = 4;
	for (int i = 0; i < 5; i++)
		sample(&c);
	expect_eq(w.n_cgroup_walks, 1);
	expect_eq(find(0, true, false)->key.cgroup, 4);
	c.cgroup = 5;
	sample(&c);
	expect_eq(w.n_cgroup_walks, 2);
	expect_eq(n_keys(0), 2);
	c.tgid += SAMPLER_KNOWN;
	sample(&c);
	expect_eq(w.n_cgroup_walks, 3);
	expect_eq(n_keys(0), 3);
	buf_free(&w.ring);
}

/* What user space has forgotten is reported again. */
TEST(forgotten_processes_are_reported_again)
{
	reset();
	sample(&in_user);
	sample(&in_user);
	expect_eq(w.n_processes, 1);
	memset(&w.process, 0, sizeof(w.process));
	sample(&in_user); /* this CPU still knows */
	expect_eq(w.n_processes, 1);
	w.config.epoch++;
	sample(&in_user);
	expect_eq(w.n_processes, 2);
	buf_free(&w.ring);
}

/* Both halves are independent; the active one takes. */
TEST(the_active_half_takes)
{
	reset();
	sample(&in_user);
	w.config.active = 1;
	sample(&in_user);
	sample(&in_user);
	expect_eq(counters(0)->taken, 1);
	expect_eq(counters(1)->taken, 2);
	expect_eq(n_keys(0), 1);
	expect_eq(n_keys(1), 1);
	expect_closed_books();
	buf_free(&w.ring);
}

/* What is selected: all; pids; pids and cgroups, with unknown ones taken. */
TEST(selection)
{
	struct sampler_context c = in_user;

	reset();
	w.config.mode = SAMPLER_PIDS;
	sample(&c);
	expect_eq(counters(0)->unselected, 1);
	w.selected_tgid = 7;
	w.selected.root = 5;
	sample(&c);
	expect_eq(counters(0)->taken, 1);
	w.config.mode = SAMPLER_CGROUPS;
	w.selected_tgid = 0;
	c.cgroup = 9;
	sample(&c);
	expect_eq(counters(0)->taken, 2);
	w.judged = 9;
	sample(&c);
	expect_eq(counters(0)->unselected, 2);
	w.verdict = 1;
	sample(&c);
	expect_eq(counters(0)->taken, 3);
	expect_closed_books();
	buf_free(&w.ring);
}

/* A process is reported when it is new and when its mappings changed, but one
 * that changes them all the time not all the time. */
TEST(processes_are_reported)
{
	struct sampler_context c = in_user;

	reset();
	for (int i = 0; i < 5; i++)
		sample(&c);
	expect_eq(w.n_processes, 1);
	expect_eq(w.n_wakes, 1);
	c.exec_vm++;
	sample(&c);
	expect_eq(w.n_processes, 1);
	w.now += SAMPLER_CHANGE_NS;
	sample(&c);
	expect_eq(w.n_processes, 2);
	c.mm = 2; /* exec */
	w.now += SAMPLER_CHANGE_NS;
	sample(&c);
	expect_eq(w.n_processes, 3);
	c.mm = 0; /* exits */
	w.now += SAMPLER_CHANGE_NS;
	sample(&c);
	expect_eq(w.n_processes, 3);
	buf_free(&w.ring);
}

/* The deepest stacks fit, and are marked as cut off. */
TEST(deep_stacks_are_cut)
{
	uint64_t deep[2 * SAMPLER_FRAMES_MAX];
	struct sampler_context c = in_kernel;
	struct sampler_stack head;

	for (size_t i = 0; i < 2 * SAMPLER_FRAMES_MAX; i++)
		deep[i] = i + 1;
	reset();
	c.user = c.kernel = deep;
	c.n_user = c.n_kernel = 2 * SAMPLER_FRAMES_MAX;
	sample(&c);
	memcpy(&head, w.logs[0], sizeof(head));
	expect_eq(head.n_kernel, SAMPLER_FRAMES_MAX);
	expect_eq(head.n_user, SAMPLER_FRAMES_MAX);
	expect_eq(head.flags, SAMPLER_STACK_USER_CUT | SAMPLER_STACK_KERNEL_CUT);
	buf_free(&w.ring);
}

/* Threads, comm and kernel frames by configuration. */
TEST(options_shape_the_key)
{
	struct sampler_context c = in_kernel;

	reset();
	w.config.with_kernel = 0;
	w.config.with_comm = 1;
	sample(&c);
	expect(memcmp(find(0, true, false)->key.comm, "thread", 7) == 0);
	c.kthread = true;
	c.tgid = 9;
	w.config.with_kernel = 1;
	sample(&c);
	expect_eq(find(0, false, true)->count, 1);
	buf_free(&w.ring);
}

/* Whatever comes, in whatever order and with whatever failing, the books close. */
TEST(books_close_whatever_comes)
{
	uint64_t stacks[8][4];

	srand(7);
	for (int i = 0; i < 8; i++)
		for (int k = 0; k < 4; k++)
			stacks[i][k] = (uint64_t)rand();
	reset();
	for (int i = 0; i < 20000; i++) {
		struct sampler_context c = {
			.user = stacks[rand() % 8], .n_user = (uint32_t)rand() % 5,
			.kernel = stacks[rand() % 8], .n_kernel = (uint32_t)rand() % 5,
			.tgid = 1 + (uint32_t)rand() % 3, .mm = (uint64_t)rand() % 2,
			.exec_vm = (uint64_t)rand() % 3, .cgroup = (uint64_t)rand() % 3,
			.in_user = rand() % 2, .kthread = rand() % 8 == 0,
		};

		w.config.active = (uint32_t)rand() % 2;
		w.config.mode = (uint32_t)rand() % 3;
		w.selected_tgid = (uint32_t)rand() % 4;
		w.judged = (uint64_t)rand() % 3;
		w.verdict = (uint32_t)rand() % 2;
		w.n_slots = 1u << rand() % 7;
		w.log_words = (uint32_t)rand() % LOG_WORDS;
		w.config.epoch = (uint32_t)rand() % 2;
		w.ring_full = rand() % 3 == 0;
		w.no_table = rand() % 9 == 0;
		w.now += (uint32_t)rand() % 100000000u;
		sample(&c);
		buf_clear(&w.ring);
	}
	expect_closed_books();
	expect(counters(0)->taken > 100 && counters(1)->taken > 100);
	buf_free(&w.ring);
}
