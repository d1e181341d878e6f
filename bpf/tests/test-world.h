/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel that test-sampler.c and test-off-cpu.c give to the sampler's body: maps that are small
 * arrays, a ring that is a buffer, and processes whose stack is made of frame pointers, by which
 * all their code is walked. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "bpfwire/sampler.h"
#include "bpfwire/unwind-tables.h"

#include "base/buf.h"
#include "testing/test.h"

#define SAMPLER_INLINE static inline
#define SAMPLER_GLOBAL static
#define UNWIND_INLINE  static inline
#define UNWIND_GLOBAL  static

typedef uint32_t unwind_env;

struct sampler_context {
	const uint64_t *user, *kernel;
	uint32_t n_user, n_kernel;
	uint32_t tgid;
	uint64_t cgroup, exec, exec_vm, generation;
	uint32_t parent;
	bool in_user, kthread;
};

#define CPU       3 /* where we run */
#define LOG_WORDS (1u << 20)

/* The kernel of this test. */
static struct world {
	struct sampler_config config;
	struct sampler_cpu cpu;
	uint64_t logs[SAMPLER_BUFFERS][LOG_WORDS + SAMPLER_LOG_SPARE];
	uint32_t log_words; /* as if they were smaller */
	struct sampler_selected selected;
	uint32_t selected_tgid;
	uint64_t judged;
	uint32_t verdict;
	struct sampler_process_key process;
	struct sampler_process_state state;
	uint64_t now;
	struct buf ring;
	bool ring_full, no_log;
	struct sampler_wait wait; /* of the one thread that there is */
	uint32_t n_waits, waits_max;
	uint32_t n_wakes, n_processes, n_sent[SAMPLER_BUFFERS], n_cgroup_walks, n_snapshots;
	struct andiron_walk walk;
	struct unwind_space space;
	struct unwind_set rows[UNWIND_SETS];
	struct unwind_chain chains[UNWIND_CHAINS];
	/* The slab: one mapping that holds everything. */
	struct {
		uint64_t start;
		struct unwind_mapping mapping;
		uint8_t rest[UNWIND_SLAB_BYTES + UNWIND_SLAB_SPARE];
	} slab;
	uint64_t stack[2 * (ANDIRON_WALK_WORDS + 200)];
	uint64_t stack_words; /* more is not there */
} world;

#define STACK 0x7000000000ull

struct sampler_task;
static void h_task(struct sampler_context *c, struct sampler_task *task);

static const volatile struct sampler_config *h_config(void)
{
	return &world.config;
}

static struct sampler_cpu *h_state(__u32 cpu)
{
	return cpu == CPU ? &world.cpu : NULL;
}

static long h_log_put(__u32 cpu, __u32 buffer, __u32 at, const __u64 *words, __u32 n)
{
	expect(cpu == CPU && at + n <= LOG_WORDS + SAMPLER_LOG_SPARE);
	if (world.no_log)
		return -1;
	memcpy(&world.logs[buffer][at], words, n * sizeof(*words));
	return 0;
}

static __u32 h_log_words(void)
{
	return world.log_words;
}

static __u64 h_cgroup(struct sampler_context *c)
{
	world.n_cgroup_walks++;
	return c->cgroup;
}

static struct sampler_selected *h_selected_find(__u32 tgid)
{
	return tgid == world.selected_tgid ? &world.selected : NULL;
}

static __u32 *h_cgroup_find(__u64 id)
{
	return id == world.judged ? &world.verdict : NULL;
}

static struct sampler_process_state *h_process_find(const struct sampler_process_key *key)
{
	return memcmp(key, &world.process, sizeof(*key)) == 0 ? &world.state : NULL;
}

static long h_process_put(const struct sampler_process_key *key,
			  const struct sampler_process_state *state)
{
	world.process = *key;
	world.state = *state;
	return 0;
}

static long h_send(const void *data, __u64 size, bool wake)
{
	const struct sampler_stack *head = data;

	if (world.ring_full)
		return -11;
	expect_eq(buf_append(&world.ring, data, size), 0);
	world.n_wakes += wake;
	if (head->type == SAMPLER_RECORD_PROCESS)
		world.n_processes++;
	else
		world.n_sent[head->buffer]++;
	return 0;
}

static long h_wait_put(const __u64 *words)
{
	if (world.n_waits >= world.waits_max)
		return -7;
	memcpy(world.wait.words, words, sizeof(world.wait.words));
	world.n_waits++;
	return 0;
}

static bool h_ring_crowded(void)
{
	return world.ring.n > 4096;
}

static __u64 h_now(void)
{
	return world.now;
}

static struct andiron_walk *h_walk_state(__u32 cpu)
{
	return cpu == CPU ? &world.walk : NULL;
}

static const __u8 *h_slab(unwind_env e, __u32 i)
{
	return i == 0 ? (const __u8 *)&world.slab : NULL;
}

static const struct unwind_entry *h_entry(unwind_env e, __u32 i)
{
	return NULL;
}

static struct unwind_set *h_rows(unwind_env e, __u32 i)
{
	return &world.rows[i];
}

static struct unwind_chain *h_chain(unwind_env e, __u32 i)
{
	return &world.chains[i];
}

static struct unwind_space *h_space(__u32 i)
{
	return &world.space;
}

static __u32 h_read(unwind_env e, void *to, size_t n, __u64 address)
{
	if (address < STACK || address - STACK + n > world.stack_words * sizeof(uint64_t))
		return UNWIND_END_NO_PAGE;
	memcpy(to, (const char *)world.stack + (address - STACK), n);
	return 0;
}

static __u64 h_pc_mask(unwind_env e)
{
	return ~0ull;
}

static __u32 h_kernel_frames(struct sampler_context *c, struct andiron_walk *w)
{
	uint32_t n = c->n_kernel < ANDIRON_WALK_KERNEL ? c->n_kernel : ANDIRON_WALK_KERNEL;

	for (uint32_t i = 0; i < n; i++)
		w->frames[i] = c->kernel[i];
	return n;
}

static __u64 h_generation(struct sampler_context *c)
{
	return c->generation;
}

struct sampler_task;
static __u32 h_registers(struct sampler_context *c, const struct sampler_task *task,
			 struct andiron_walk *walk);

static void h_parent(struct sampler_context *c, struct sampler_process_key *key)
{
	key->tgid = c->parent;
	key->start_ns = 1000 + c->parent;
}

static void h_leader_comm(struct sampler_context *c, char *comm)
{
	memcpy(comm, "leader", 7);
}

static void h_comm(char *comm)
{
	memcpy(comm, "thread", 7);
}

#include "sampler/sample.h"

static void h_task(struct sampler_context *c, struct sampler_task *task)
{
	task->key.tgid = c->tgid;
	task->key.start_ns = 1000 + c->tgid;
	task->groups = c->cgroup + 1;
	task->exec = c->exec;
	task->exec_vm = c->exec_vm;
	task->in_user = c->in_user;
	task->kthread = c->kthread;
}

/* The stack of the frames: each holds the one before and the return address, which is one further
 * than what is written down for it. */
static __u32 h_registers(struct sampler_context *c, const struct sampler_task *task,
			 struct andiron_walk *walk)
{
	if (c->n_user == 0)
		return UNWIND_END_NOTHING;
	for (uint32_t i = 0; i < c->n_user; i++) {
		world.stack[2 * i] = STACK + 16 * (i + 1);
		world.stack[2 * i + 1] = i + 1 < c->n_user ? c->user[i + 1] + 1 : 0;
	}
	walk->pc = c->user[0];
	walk->regs[UNWIND_SP] = STACK;
	walk->regs[UNWIND_FP] = STACK;
	walk->known = ~0u;
	return 0;
}

static const uint64_t user_stack[] = {0x401000, 0x402000, 0x403000};
static const uint64_t kernel_stack[] = {0xffffffff81000010u, 0xffffffff81000020u};

static const struct sampler_context in_user = {.user = user_stack,
					       .n_user = 3,
					       .tgid = 7,
					       .exec = 1,
					       .exec_vm = 5,
					       .generation = 1,
					       .in_user = true};

static const struct sampler_context in_kernel = {.user = user_stack,
						 .n_user = 3,
						 .kernel = kernel_stack,
						 .n_kernel = 2,
						 .tgid = 7,
						 .exec = 1,
						 .exec_vm = 5,
						 .generation = 1};

static void reset(void)
{
	buf_free(&world.ring);
	memset(&world, 0, sizeof(world));
	world.config.with_kernel = 1;
	world.log_words = LOG_WORDS;
	world.waits_max = UINT32_MAX;
	world.now = 2 * SAMPLER_ASK_ROW * SAMPLER_ASK_NS;
	world.slab.start = 0;
	world.slab.mapping = (struct unwind_mapping){.end = 1ull << 47, .kind = UNWIND_KIND_FRAMES};
	world.space = (struct unwind_space){.start_ns = 1007,
					    .tgid = 7,
					    .generation = 1,
					    .exec_pages = 5,
					    .word = unwind_space_word(0, 1, 1)};
	world.stack_words = sizeof(world.stack) / sizeof(world.stack[0]);
}

static void sample(const struct sampler_context *c)
{
	struct sampler_context copy = *c;

	if (!sampler_begin(&copy, CPU, c->tgid))
		return;
	while (world.walk.end == 0)
		unwind_step(CPU);
	world.n_snapshots += (uint32_t)sampler_finish(CPU);
}

static const struct sampler_counters *counters(uint32_t buffer)
{
	return &world.cpu.counts[buffer].counters;
}

/* What is in the log; *ret is the n-th, its frames behind it. */
static uint32_t look_through(uint32_t buffer, uint32_t n, const struct sampler_stack **ret)
{
	const struct sampler_stack *stack;
	uint32_t i = 0;

	for (uint32_t at = 0; at < world.cpu.counts[buffer].n_words; i++) {
		stack = (const struct sampler_stack *)(const void *)&world.logs[buffer][at];
		at += SAMPLER_STACK_WORDS + stack->n_kernel + stack->n_user;
		expect(at <= world.cpu.counts[buffer].n_words);
		if (i == n)
			*ret = stack;
	}
	return i;
}

static uint32_t n_logged(uint32_t buffer)
{
	const struct sampler_stack *none;

	return look_through(buffer, UINT32_MAX, &none);
}

static const struct sampler_stack *nth(uint32_t buffer, uint32_t n)
{
	const struct sampler_stack *ret =
		(const struct sampler_stack *)(const void *)world.logs[buffer];

	expect(look_through(buffer, n, &ret) > n);
	return ret;
}
