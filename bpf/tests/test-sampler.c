/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler's body, natively and under the sanitizers, in the kernel of test-world.h. What a walk
 * does with tables is test-walk.c's, beside the plugin that makes them. */
#include <stdlib.h>

#include "tests/test-world.h"

/* The invariant of the wire: for each buffer, taken = samples in log and ring + ring_full +
 * unfinished. */
static void expect_counts_add_up(void)
{
	for (uint32_t buffer = 0; buffer < SAMPLER_BUFFERS; buffer++)
		expect_eq(counters(buffer)->taken,
			  n_logged(buffer) + world.n_sent[buffer] + counters(buffer)->ring_full +
				  counters(buffer)->unfinished);
}

/* Each sample says whose it is; equal ones are equal, word for word. */
TEST(samples_are_written_down)
{
	const size_t bytes = sizeof(struct sampler_stack) + 3 * sizeof(uint64_t);

	reset();
	for (int i = 0; i < 10; i++)
		sample(&in_user);
	sample(&in_kernel);
	expect_eq(n_logged(0), 11);
	for (uint32_t i = 0; i < 10; i++)
		expect(memcmp(nth(0, i), nth(0, 0), bytes) == 0);
	expect_eq(nth(0, 0)->key.process.tgid, 7);
	expect_eq(nth(0, 0)->key.process.start_ns, 1007);
	expect_eq(nth(0, 0)->id, 0);
	expect_eq(world.cpu.counts[0].n_words, 11 * SAMPLER_STACK_WORDS + 10 * 3 + 5);
	expect_eq(world.n_sent[0], 0);
	expect_counts_add_up();
	buf_free(&world.ring);
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
	expect_eq(head.id, 0);
	expect_eq(head.key.process.tgid, 7);
	expect(memcmp(pcs, kernel_stack, sizeof(kernel_stack)) == 0);
	expect(memcmp(pcs + 2, user_stack, sizeof(user_stack)) == 0);
}

/* The record holds the frames as they were walked, kernel first: in the log, and where that is
 * full, the same in the ring. */
TEST(records_hold_the_frames)
{
	reset();
	sample(&in_kernel);
	expect_stack(world.logs[0]);
	reset();
	world.log_words = 0;
	sample(&in_kernel);
	expect_eq(world.n_sent[0], 1);
	expect_eq(world.cpu.counts[0].n_words, 0);
	expect_eq(world.ring.n,
		  sizeof(struct sampler_process) + (SAMPLER_STACK_WORDS + 5) * sizeof(uint64_t));
	expect_stack(world.ring.p + sizeof(struct sampler_process));
	buf_free(&world.ring);
}

/* The idle task is counted apart and nothing else is done for it. */
TEST(idle_is_not_sampled)
{
	struct sampler_context c = in_kernel;

	reset();
	expect(!sampler_begin(&c, CPU, 0));
	expect_eq(counters(0)->idle, 1);
	expect_eq(counters(0)->taken, 0);
	expect_eq(world.ring.n, 0);
	buf_free(&world.ring);
}

/* Log and ring full, no log at all: each sample is in exactly one place, and what is full is tried
 * again. A CPU without a log sends. */
TEST(losses_are_counted)
{
	reset();
	world.log_words = 0;
	world.ring_full = true;
	sample(&in_user);
	sample(&in_user);
	expect_eq(counters(0)->ring_full, 2);
	world.ring_full = false;
	sample(&in_user);
	expect_eq(world.n_sent[0], 1);
	expect_eq(world.n_processes, 1); /* it too was tried again */
	world.log_words = LOG_WORDS;
	world.no_log = true;
	sample(&in_user);
	expect_eq(world.n_sent[0], 2);
	expect_eq(n_logged(0), 0);
	expect_counts_add_up();
	buf_free(&world.ring);
}

/* A log that is full keeps what it has; the rest is sent. */
TEST(a_log_fills_up)
{
	struct sampler_context c = in_user;
	uint64_t pc = 1;

	reset();
	c.user = &pc;
	c.n_user = 1;
	world.log_words = 4 * (SAMPLER_STACK_WORDS + 1) + 1;
	for (; pc <= 8; pc++)
		sample(&c);
	expect_eq(world.cpu.counts[0].n_words, 4 * (SAMPLER_STACK_WORDS + 1));
	expect_eq(world.n_sent[0], 4);
	expect_eq(world.logs[0][3 * (SAMPLER_STACK_WORDS + 1) + SAMPLER_STACK_WORDS], 4);
	expect_counts_add_up();
	buf_free(&world.ring);
}

/* The way to a cgroup's id is walked when the process is new or has moved, and a process that took
 * the place of another is found to be one. */
TEST(cgroups_are_remembered)
{
	struct sampler_context c = in_user;

	reset();
	c.cgroup = 4;
	for (int i = 0; i < 5; i++)
		sample(&c);
	expect_eq(world.n_cgroup_walks, 1);
	expect_eq(nth(0, 4)->key.cgroup, 4);
	c.cgroup = 5;
	sample(&c);
	expect_eq(world.n_cgroup_walks, 2);
	expect_eq(nth(0, 5)->key.cgroup, 5);
	c.tgid += SAMPLER_KNOWN;
	sample(&c);
	expect_eq(world.n_cgroup_walks, 3);
	buf_free(&world.ring);
}

/* What user space has forgotten is reported again. */
TEST(forgotten_processes_are_reported_again)
{
	reset();
	sample(&in_user);
	sample(&in_user);
	expect_eq(world.n_processes, 1);
	memset(&world.process, 0, sizeof(world.process));
	sample(&in_user); /* this CPU still knows */
	expect_eq(world.n_processes, 1);
	world.config.epoch++;
	sample(&in_user);
	expect_eq(world.n_processes, 2);
	buf_free(&world.ring);
}

/* Both buffers are independent; the active one takes. */
TEST(the_active_buffer_takes)
{
	reset();
	sample(&in_user);
	world.config.active = 1;
	sample(&in_user);
	sample(&in_user);
	expect_eq(counters(0)->taken, 1);
	expect_eq(counters(1)->taken, 2);
	expect_eq(n_logged(0), 1);
	expect_eq(n_logged(1), 2);
	expect_counts_add_up();
	buf_free(&world.ring);
}

/* What is selected: all; pids; pids and cgroups, with unknown ones taken. */
TEST(selection)
{
	struct sampler_context c = in_user;

	reset();
	world.config.mode = SAMPLER_PIDS;
	sample(&c);
	expect_eq(counters(0)->unselected, 1);
	world.selected_tgid = 7;
	world.selected.root = 5;
	sample(&c);
	expect_eq(counters(0)->taken, 1);
	world.config.mode = SAMPLER_CGROUPS;
	world.selected_tgid = 0;
	c.cgroup = 9;
	sample(&c);
	expect_eq(counters(0)->taken, 2);
	world.judged = 9;
	sample(&c);
	expect_eq(counters(0)->unselected, 2);
	world.verdict = 1;
	sample(&c);
	expect_eq(counters(0)->taken, 3);
	expect_counts_add_up();
	buf_free(&world.ring);
}

/* A process is reported when it is new and when its mappings changed, but one that changes them all
 * the time not all the time. */
TEST(processes_are_reported)
{
	struct sampler_context c = in_user;

	reset();
	for (int i = 0; i < 5; i++)
		sample(&c);
	expect_eq(world.n_processes, 1);
	expect_eq(world.n_wakes, 1);
	c.exec_vm++;
	sample(&c);
	expect_eq(world.n_processes, 1);
	world.now += SAMPLER_CHANGE_NS;
	sample(&c);
	expect_eq(world.n_processes, 2);
	c.exec = 2; /* exec */
	world.now += SAMPLER_CHANGE_NS;
	sample(&c);
	expect_eq(world.n_processes, 3);
	c.exec = 0; /* exits */
	world.now += SAMPLER_CHANGE_NS;
	sample(&c);
	expect_eq(world.n_processes, 3);
	buf_free(&world.ring);
}

/* The deepest stacks fit, and say that they are cut off. */
TEST(deep_stacks_are_cut)
{
	uint64_t deep[ANDIRON_WALK_WORDS + 100];
	struct sampler_context c = in_kernel;
	struct sampler_stack head;

	for (size_t i = 0; i < ANDIRON_WALK_WORDS + 100; i++)
		deep[i] = i + 1;
	reset();
	c.user = c.kernel = deep;
	c.n_user = c.n_kernel = ANDIRON_WALK_WORDS + 100;
	sample(&c);
	memcpy(&head, world.logs[0], sizeof(head));
	expect_eq(head.n_kernel, ANDIRON_WALK_KERNEL);
	expect_eq(head.n_user, ANDIRON_WALK_USER);
	expect_eq(head.flags, SAMPLER_STACK_KERNEL_CUT);
	expect_eq(head.end, UNWIND_END_TRUNCATED);
	expect_eq(world.n_snapshots, 0);
	buf_free(&world.ring);
}

static struct sampler_stack last_head(void)
{
	struct sampler_stack head;

	memcpy(&head, world.walk.head, sizeof(head));
	return head;
}

/* What is reported of a process names its parent, whose mappings may be its own. */
TEST(reports_name_the_parent)
{
	struct sampler_context c = in_user;
	struct sampler_process record;

	reset();
	c.parent = 6;
	sample(&c);
	memcpy(&record, world.ring.p, sizeof(record));
	expect_eq(record.type, SAMPLER_RECORD_PROCESS);
	expect_eq(record.key.tgid, 7);
	expect_eq(record.parent.tgid, 6);
	expect_eq(record.parent.start_ns, 1006);
	expect_eq(record.generation, 1);
	buf_free(&world.ring);
}

/* Each stack says of which exec of its process it was taken. */
TEST(stacks_say_of_which_exec)
{
	struct sampler_context c = in_user;

	reset();
	c.generation = UINT64_C(0x1234) << 48 | 1;
	sample(&c);
	expect_eq(last_head().flags, 0x1234);
	c.exec = 2;
	c.generation = UINT64_C(0x5677) << 48 | 1;
	sample(&c);
	expect_eq(last_head().flags, 0x5674);
	buf_free(&world.ring);
}

/* A process whose mappings are not known yet has a stack snapshot for each sample; a child that was
 * only forked is walked as its parent. */
TEST(unknown_processes_have_snapshots)
{
	struct sampler_context c = in_user;

	reset();
	c.tgid = 8;
	c.parent = 6;
	sample(&c);
	world.now++;
	sample(&c);
	expect_eq(world.n_snapshots, 2);
	expect(nth(0, 0)->id != 0 && nth(0, 1)->id != 0 && nth(0, 0)->id != nth(0, 1)->id);
	expect_eq(last_head().end, UNWIND_END_NEW);
	expect_eq(last_head().n_user, 1);
	expect_eq(world.n_processes, 1);
	expect_eq(world.n_wakes, 0); /* which the snapshots do */
	c.tgid = 9;
	c.parent = 7;
	sample(&c);
	expect_eq(world.n_snapshots, 2);
	expect_eq(last_head().end, UNWIND_END_COMPLETE);
	expect_eq(last_head().n_user, 3);
	expect_eq(world.n_processes, 2);
	expect_eq(world.n_wakes, 1);
	c.tgid = 10;
	c.generation = 2; /* it has called exec */
	sample(&c);
	expect_eq(world.n_snapshots, 3);
	expect_counts_add_up();
	buf_free(&world.ring);
}

/* Memory that is not there ends the stack, which says so and may be completed; an address in no
 * mapping is news where the process has mapped something since, and else is asked about every now
 * and then. */
TEST(open_ends_have_snapshots)
{
	struct sampler_context c = in_user;

	reset();
	world.stack_words = 2;
	sample(&c);
	expect_eq(last_head().end, UNWIND_END_NO_PAGE);
	expect_eq(last_head().n_user, 2);
	expect_eq(world.n_snapshots, 1);
	reset();
	world.slab.mapping.end = 0x402000;
	sample(&c);
	expect_eq(last_head().end, UNWIND_END_NO_MAPPING);
	expect_eq(last_head().n_user, 2);
	expect_eq(world.n_snapshots, 1);
	for (int i = 1; i < SAMPLER_ASK_ROW; i++)
		sample(&c);
	expect_eq(world.n_snapshots, SAMPLER_ASK_ROW);
	sample(&c);
	expect_eq(world.n_snapshots, SAMPLER_ASK_ROW);
	world.now += SAMPLER_ASK_NS;
	sample(&c);
	sample(&c);
	expect_eq(world.n_snapshots, SAMPLER_ASK_ROW + 1);
	c.exec_vm++;
	sample(&c); /* a report that does not give all of them back */
	sample(&c);
	expect_eq(world.n_snapshots, SAMPLER_ASK_ROW + 3);
	c.exec_vm--;
	sample(&c);
	expect_eq(world.n_snapshots, SAMPLER_ASK_ROW + 3);
	world.now += 2 * SAMPLER_ASK_ROW * SAMPLER_ASK_NS;
	for (int i = 0; i < 2 * SAMPLER_ASK_ROW; i++)
		sample(&c);
	expect_eq(world.n_snapshots, 2 * SAMPLER_ASK_ROW + 3);
	expect_counts_add_up();
	buf_free(&world.ring);
}

/* A walk that was handed over and never came back is counted by the next sample. */
TEST(walks_that_do_not_come_back_are_counted)
{
	struct sampler_context c = in_user;

	reset();
	world.slab.mapping.slot = 5;
	expect(sampler_begin(&c, CPU, 7));
	expect_eq(unwind_step(CPU), 1);
	expect_eq(world.walk.end, UNWIND_END_HAND_OVER);
	expect_eq(world.walk.slot, 5);
	expect_eq(world.walk.n_words, 0);
	expect_eq(counters(0)->taken, 0);
	expect(!sampler_begin(&c, CPU, 0));
	expect_eq(counters(0)->taken, 1);
	expect_eq(counters(0)->unfinished, 1);
	expect_counts_add_up();
	buf_free(&world.ring);
}

/* Walks on, as if a runtime's program had come back with one frame and this in `native`. */
static void walk_behind(uint32_t native)
{
	expect_eq(world.walk.end, UNWIND_END_HAND_OVER);
	world.walk.end = 0;
	expect_eq(andiron_walk_push(&world.walk, 0xabc, 7), 0);
	world.walk.native = native;
	unwind_mark(&world.walk);
	unwind_step(CPU);
	expect_eq(world.walk.native, native == ANDIRON_WALK_REST ? native : 0);
	if (native != ANDIRON_WALK_REST)
		world.slab.mapping.slot = 0;
	while (world.walk.end == 0)
		unwind_step(CPU);
}

/* Claimed code is left by its own tables where the runtime's program asks for that, with a frame of
 * its own or without one, and with REST all such code behind it as well; the next walk hands it
 * over all the same. */
TEST(claimed_frames_are_left_natively)
{
	struct sampler_context c = in_user;
	uint64_t frames[3];

	reset();
	sample(&c);
	expect_eq(last_head().end, UNWIND_END_COMPLETE);
	expect_eq(last_head().n_user, 3);
	memcpy(frames, world.walk.frames, sizeof(frames));
	for (uint32_t native = ANDIRON_WALK_LEAVE; native <= ANDIRON_WALK_REST; native++) {
		uint32_t shown = native != ANDIRON_WALK_LEAVE;

		reset();
		for (int i = 0; i < 2; i++) {
			world.slab.mapping.slot = 5;
			expect(sampler_begin(&c, CPU, 7));
			expect_eq(world.walk.native, 0);
			unwind_step(CPU);
			walk_behind(native);
			expect_eq(world.walk.end, UNWIND_END_COMPLETE);
			expect_eq(world.walk.n_words, 4 + shown);
			expect_eq(world.walk.frames[0], UINT64_C(5) << 56 | 0xabc);
			expect(memcmp(&world.walk.frames[2], &frames[!shown], (2 + shown) * 8) ==
			       0);
			sampler_finish(CPU);
		}
		buf_free(&world.ring);
	}
}

/* The next walk hands claimed code over and leaves it without the tables, at the leaf and at return
 * addresses; only as far as the claim reaches. */
TEST(claimed_code_is_remembered)
{
	const uint64_t behind[] = {0x401080};
	struct sampler_context c = in_user;

	reset();
	for (int i = 0; i < 2; i++, world.slab.mapping.end = 0) {
		world.slab.mapping.slot = 5;
		expect(sampler_begin(&c, CPU, 7));
		for (uint32_t n = 0; n < 3; n++) {
			expect_eq(unwind_step(CPU), 1);
			expect_eq(world.walk.end, UNWIND_END_HAND_OVER);
			expect_eq(world.walk.slot, 5);
			expect_eq(world.walk.n_words, 0);
			world.walk.end = 0;
			world.walk.native = ANDIRON_WALK_LEAVE;
			unwind_mark(&world.walk);
			unwind_step(CPU);
		}
		expect_eq(world.walk.end, UNWIND_END_COMPLETE);
		sampler_finish(CPU);
	}
	reset();
	world.slab.mapping.slot = 5;
	world.slab.mapping.end = behind[0];
	expect(sampler_begin(&c, CPU, 7));
	unwind_step(CPU);
	expect_eq(world.walk.end, UNWIND_END_HAND_OVER);
	sampler_finish(CPU);
	c.user = behind;
	c.n_user = 1;
	expect(sampler_begin(&c, CPU, 7));
	unwind_step(CPU);
	expect_eq(world.walk.end, UNWIND_END_NO_MAPPING);
	sampler_finish(CPU);
	buf_free(&world.ring);
}

/* What walks beside samples, in rounds of task work, is in no book, whether it comes back or
 * not. */
TEST(rounds_are_no_samples)
{
	struct sampler_context c = in_user;

	reset();
	world.cpu.pending.busy = SAMPLER_BUSY_ROUND + 3;
	expect(!sampler_begin(&c, CPU, 0));
	expect_eq(world.cpu.pending.busy, SAMPLER_BUSY_NOT);
	expect_eq(counters(0)->taken, 0);
	expect_eq(counters(0)->unfinished, 0);
	buf_free(&world.ring);
}

/* A stack of too many round trips is one like others, unless it is walked on: then each has an id,
 * so that what is added later is added to the right one. */
TEST(walks_that_go_on_are_told_apart)
{
	struct sampler_context c = in_user;

	for (uint32_t continuation = 0; continuation < 2; continuation++) {
		reset();
		world.config.continuation = continuation;
		for (int i = 0; i < 2; i++) {
			expect(sampler_begin(&c, CPU, 7));
			unwind_step(CPU);
			world.walk.end = UNWIND_END_SWITCHES;
			world.now++;
			expect_eq(sampler_finish(CPU), continuation);
		}
		expect_eq(nth(0, 0)->id != nth(0, 1)->id, continuation);
		expect_eq(nth(0, 0)->id != 0, continuation);
		expect_counts_add_up();
		buf_free(&world.ring);
	}
}

/* Threads, comm and kernel frames by configuration. */
TEST(options_shape_the_sample)
{
	struct sampler_context c = in_kernel;

	reset();
	world.config.with_kernel = 0;
	world.config.with_comm = 1;
	sample(&c);
	expect(memcmp(nth(0, 0)->key.comm, "thread", 7) == 0);
	expect_eq(nth(0, 0)->key.tid, 0);
	expect_eq(nth(0, 0)->n_kernel, 0);
	world.config.with_tid = 1;
	c.kthread = true;
	c.tgid = 9;
	world.config.with_kernel = 1;
	sample(&c);
	expect(nth(0, 1)->key.tid != 0);
	expect_eq(nth(0, 1)->n_kernel, 2);
	expect_eq(nth(0, 1)->n_user, 0);
	buf_free(&world.ring);
}

/* Whatever comes, in whatever order and with whatever failing, the counts add up. */
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
			.user = stacks[rand() % 8],
			.n_user = (uint32_t)rand() % 5,
			.kernel = stacks[rand() % 8],
			.n_kernel = (uint32_t)rand() % 5,
			.tgid = 1 + (uint32_t)rand() % 3,
			.exec = (uint64_t)rand() % 2,
			.exec_vm = (uint64_t)rand() % 3,
			.cgroup = (uint64_t)rand() % 3,
			.generation = 1 + (uint64_t)rand() % 2,
			.parent = 1 + (uint32_t)rand() % 3,
			.in_user = rand() % 2,
			.kthread = rand() % 8 == 0,
		};

		world.config.active = (uint32_t)rand() % 2;
		world.config.mode = (uint32_t)rand() % 3;
		world.selected_tgid = (uint32_t)rand() % 4;
		world.judged = (uint64_t)rand() % 3;
		world.verdict = (uint32_t)rand() % 2;
		world.log_words = (uint32_t)rand() % LOG_WORDS;
		world.config.epoch = (uint32_t)rand() % 2;
		world.ring_full = rand() % 3 == 0;
		world.no_log = rand() % 9 == 0;
		world.now += (uint32_t)rand() % 100000000u;
		world.space.tgid = 1 + (uint32_t)rand() % 3;
		world.space.start_ns = 1000 + world.space.tgid;
		world.space.generation = 1 + (uint64_t)rand() % 2;
		world.stack_words = (uint64_t)rand() % 12;
		if (rand() % 16 == 0 && sampler_begin(&c, CPU, c.tgid))
			continue;
		sample(&c);
		buf_clear(&world.ring);
	}
	expect(!sampler_begin(&(struct sampler_context){0}, CPU, 0));
	expect_counts_add_up();
	expect(counters(0)->taken > 100 && counters(1)->taken > 100);
	buf_free(&world.ring);
}
