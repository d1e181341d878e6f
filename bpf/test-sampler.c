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

#define KEYS_MAX 64

struct slot {
	struct sampler_key key;
	struct sampler_value value;
};

/* The kernel of this test. */
static struct world {
	struct sampler_config config;
	struct sampler_counters counters[SAMPLER_HALVES];
	struct slot slots[SAMPLER_HALVES][KEYS_MAX];
	uint32_t n_slots[SAMPLER_HALVES], limit;
	struct sampler_selected selected;
	uint32_t selected_tgid;
	uint64_t judged;
	uint32_t verdict;
	struct sampler_process_key process;
	struct sampler_process_state state;
	uint64_t now;
	struct buf ring;
	bool ring_full, race, busy;
	uint32_t n_wakes, n_processes, n_stacks;
} w;

struct sampler_scratch;
struct sampler_task;
static struct sampler_scratch *h_scratch(void);
static void h_task(struct sampler_context *c, struct sampler_task *task);

static const volatile struct sampler_config *h_config(void)
{
	return &w.config;
}

static struct sampler_counters *h_counters(__u32 half)
{
	return &w.counters[half];
}

static void *h_counts(__u32 half)
{
	return &w.slots[half];
}

static uint32_t half_of(const void *map)
{
	return map == &w.slots[1];
}

static struct sampler_value *h_count_find(void *map, const struct sampler_key *key)
{
	struct slot *slots = map;

	for (uint32_t i = 0; i < w.n_slots[half_of(map)]; i++)
		if (memcmp(&slots[i].key, key, sizeof(*key)) == 0)
			return &slots[i].value;
	return NULL;
}

static long h_count_new(void *map, const struct sampler_key *key, const struct sampler_value *value)
{
	struct slot *slots = map;
	uint32_t *n = &w.n_slots[half_of(map)];

	if (w.busy)
		return -16;
	if (*n >= w.limit)
		return -7;
	slots[(*n)++] = (struct slot){*key, *value};
	if (!w.race)
		return 0;
	/* Another CPU was first: what is there is its sample. */
	w.race = false;
	return -17;
}

static void h_increment(__u64 *p)
{
	(*p)++;
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
		w.n_stacks++;
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

static __u32 h_cpu(void)
{
	return 3;
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

static struct sampler_scratch scratch;

static struct sampler_scratch *h_scratch(void)
{
	return &scratch;
}

static void h_task(struct sampler_context *c, struct sampler_task *task)
{
	task->key.tgid = c->tgid;
	task->key.start_ns = 1000 + c->tgid;
	task->cgroup = c->cgroup;
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
	w = (struct world){.config.with_kernel = 1, .limit = KEYS_MAX, .now = 1000000000};
	memset(&scratch, 0, sizeof(scratch));
}

static void sample(const struct sampler_context *c)
{
	struct sampler_context copy = *c;

	sampler_body(&copy, c->tgid);
}

/* The invariant of the wire: for each half, taken = counts + map_full + map_busy. */
static void expect_closed_books(void)
{
	for (int half = 0; half < SAMPLER_HALVES; half++) {
		uint64_t sum = w.counters[half].map_full + w.counters[half].map_busy;

		for (uint32_t i = 0; i < w.n_slots[half]; i++)
			sum += w.slots[half][i].value.count;
		expect_eq(w.counters[half].taken, sum);
	}
}

/* Equal stacks are one key, sent once; others are others. */
TEST(equal_stacks_are_counted_together)
{
	reset();
	for (int i = 0; i < 10; i++)
		sample(&in_user);
	sample(&in_kernel);
	expect_eq(w.n_slots[0], 2);
	expect_eq(w.slots[0][0].value.count, 10);
	expect_eq(w.slots[0][1].value.count, 1);
	expect_eq(w.n_stacks, 2);
	expect(w.slots[0][0].value.stack != 0);
	expect(w.slots[0][0].value.stack != w.slots[0][1].value.stack);
	expect_eq(w.slots[0][0].key.user_hash, w.slots[0][1].key.user_hash);
	expect_eq(w.slots[0][0].key.kernel_hash, 0);
	expect_closed_books();
	buf_free(&w.ring);
}

/* The record holds the frames as they were walked, kernel first. */
TEST(records_hold_the_frames)
{
	struct sampler_stack head;
	uint64_t pcs[5];
	const char *at;

	reset();
	sample(&in_kernel);
	expect_eq(w.ring.n, sizeof(struct sampler_process) + sizeof(head) + sizeof(pcs));
	at = w.ring.p + sizeof(struct sampler_process);
	memcpy(&head, at, sizeof(head));
	memcpy(pcs, at + sizeof(head), sizeof(pcs));
	expect_eq(head.n_kernel, 2);
	expect_eq(head.n_user, 3);
	expect_eq(head.id, w.slots[0][0].value.stack);
	expect(memcmp(pcs, kernel_stack, sizeof(kernel_stack)) == 0);
	expect(memcmp(pcs + 2, user_stack, sizeof(user_stack)) == 0);
	buf_free(&w.ring);
}

/* The idle task is counted apart and nothing else is done for it. */
TEST(idle_is_not_sampled)
{
	struct sampler_context c = in_kernel;

	reset();
	sampler_body(&c, 0);
	expect_eq(w.counters[0].idle, 1);
	expect_eq(w.counters[0].taken, 0);
	expect_eq(w.ring.n, 0);
	buf_free(&w.ring);
}

/* A full map, a busy map, a full ring: each sample is in exactly one place. */
TEST(losses_are_counted)
{
	struct sampler_context c = in_user;

	reset();
	w.limit = 1;
	sample(&in_user);
	sample(&in_kernel);
	sample(&in_kernel);
	expect_eq(w.counters[0].map_full, 2);
	w.busy = true;
	c.tgid = 8;
	sample(&c);
	expect_eq(w.counters[0].map_busy, 1);
	expect_closed_books();
	buf_free(&w.ring);
}

/* A stack that found the ring full is marked, and sent with a later sample. */
TEST(a_full_ring_is_tried_again)
{
	reset();
	w.ring_full = true;
	sample(&in_user);
	expect_eq(w.slots[0][0].value.stack, 0);
	expect_eq(w.slots[0][0].value.count, 1);
	w.ring_full = false;
	sample(&in_user);
	expect(w.slots[0][0].value.stack != 0);
	expect_eq(w.slots[0][0].value.count, 2);
	expect_eq(w.n_processes, 1); /* it too was tried again */
	expect_closed_books();
	buf_free(&w.ring);
}

/* Two CPUs with the same new stack: both samples are counted. */
TEST(a_lost_race_is_counted)
{
	reset();
	w.race = true;
	sample(&in_user);
	expect_eq(w.slots[0][0].value.count, 2); /* the other CPU's and ours */
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
	expect_eq(w.counters[0].taken, 1);
	expect_eq(w.counters[1].taken, 2);
	expect_eq(w.n_stacks, 2);
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
	expect_eq(w.counters[0].unselected, 1);
	w.selected_tgid = 7;
	w.selected.root = 5;
	sample(&c);
	expect_eq(w.counters[0].taken, 1);
	w.config.mode = SAMPLER_CGROUPS;
	w.selected_tgid = 0;
	c.cgroup = 9;
	sample(&c);
	expect_eq(w.counters[0].taken, 2);
	w.judged = 9;
	sample(&c);
	expect_eq(w.counters[0].unselected, 2);
	w.verdict = 1;
	sample(&c);
	expect_eq(w.counters[0].taken, 3);
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
	memcpy(&head, w.ring.p + sizeof(struct sampler_process), sizeof(head));
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
	expect_eq(w.slots[0][0].key.kernel_hash, 0);
	expect(w.slots[0][0].key.user_hash != 0);
	expect(memcmp(w.slots[0][0].key.comm, "thread", 7) == 0);
	c.kthread = true;
	c.tgid = 9;
	w.config.with_kernel = 1;
	sample(&c);
	expect_eq(w.slots[0][1].key.user_hash, 0);
	expect(w.slots[0][1].key.kernel_hash != 0);
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
		w.limit = (uint32_t)rand() % (KEYS_MAX + 1);
		w.ring_full = rand() % 3 == 0;
		w.busy = rand() % 9 == 0;
		w.now += (uint32_t)rand() % 100000000u;
		sample(&c);
		buf_clear(&w.ring);
	}
	expect_closed_books();
	expect(w.counters[0].taken > 100 && w.counters[1].taken > 100);
	buf_free(&w.ring);
}
