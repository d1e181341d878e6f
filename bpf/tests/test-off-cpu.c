/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of waiting in the sampler's body, natively and under the sanitizers, in the kernel of
 * test-world.h. */
#include "tests/test-world.h"

/* The thread leaves its CPU. */
static void leave(const struct sampler_context *c)
{
	world.cpu.pending.off_cpu = SAMPLER_OFF_CPU_ASKED;
	sample(c);
}

static void come_back(uint64_t ns)
{
	world.now += ns;
	sampler_waited(CPU, &world.wait);
}

/* It is taken when the thread is back: with its stack, and the time that has passed. */
TEST(a_wait_is_taken_at_its_end)
{
	const uint64_t *frames;

	reset();
	leave(&in_kernel);
	expect_eq(world.n_waits, 1);
	expect_eq(n_logged(0), 0);
	expect_eq(counters(0)->taken, 0);
	world.config.active = 1;
	come_back(1234567);
	expect_eq(counters(0)->taken, 0);
	expect_eq(counters(1)->taken, 1);
	expect_eq(n_logged(1), 1);
	expect_eq(nth(1, 0)->flags & SAMPLER_STACK_OFF_CPU, SAMPLER_STACK_OFF_CPU);
	expect_eq(nth(1, 0)->id, 1234567);
	expect_eq(nth(1, 0)->buffer, 1);
	expect_eq(nth(1, 0)->key.process.tgid, 7);
	expect_eq(nth(1, 0)->n_kernel, 2);
	expect_eq(nth(1, 0)->n_user, 3);
	frames = (const uint64_t *)(const void *)(nth(1, 0) + 1);
	expect(memcmp(frames, kernel_stack, sizeof(kernel_stack)) == 0);
	expect(memcmp(frames + 2, user_stack, sizeof(user_stack)) == 0);
	buf_free(&world.ring);
}

/* The CPU's clock has samples as before, whatever a switch has left behind. */
TEST(the_next_sample_is_of_the_clock)
{
	reset();
	leave(&in_user);
	sample(&in_user);
	expect_eq(counters(0)->taken, 1);
	expect_eq(n_logged(0), 1);
	expect_eq(nth(0, 0)->flags & SAMPLER_STACK_OFF_CPU, 0);
	expect_eq(world.n_waits, 1);
	buf_free(&world.ring);
}

/* A wait of a process that is not selected is nothing at all. */
TEST(unselected_waits_are_not_counted)
{
	reset();
	world.config.mode = SAMPLER_PIDS;
	leave(&in_user);
	expect_eq(world.n_waits, 0);
	expect_eq(counters(0)->unselected, 0);
	sample(&in_user);
	expect_eq(counters(0)->unselected, 1);
	buf_free(&world.ring);
}

/* What finds no room is counted as lost: where the wait begins, or where it ends. */
TEST(lost_waits_are_counted)
{
	reset();
	world.waits_max = 1;
	leave(&in_user);
	leave(&in_user);
	expect_eq(counters(0)->taken, 1);
	expect_eq(counters(0)->ring_full, 1);
	world.log_words = 0;
	world.ring_full = true;
	come_back(1);
	expect_eq(counters(0)->taken, 2);
	expect_eq(counters(0)->ring_full, 2);
	world.ring_full = false;
	come_back(1);
	expect_eq(counters(0)->taken, 3);
	expect_eq(counters(0)->ring_full, 2);
	expect_eq(world.n_sent[0], 1);
	buf_free(&world.ring);
}

/* A stack that is too deep to be kept loses its outer end, and says so. */
TEST(deep_stacks_are_cut)
{
	static uint64_t user[ANDIRON_WALK_USER];
	struct sampler_context c = in_user;
	const uint64_t *frames;

	reset();
	for (size_t i = 0; i < ANDIRON_WALK_USER; i++)
		user[i] = 0x401000 + 16 * i;
	c.user = user;
	c.n_user = ANDIRON_WALK_USER;
	leave(&c);
	come_back(5);
	expect_eq(nth(0, 0)->n_user, SAMPLER_WAIT_WORDS - SAMPLER_STACK_WORDS);
	expect_eq(nth(0, 0)->end, UNWIND_END_TRUNCATED);
	frames = (const uint64_t *)(const void *)(nth(0, 0) + 1);
	expect(memcmp(frames, user, nth(0, 0)->n_user * sizeof(*user)) == 0);
	buf_free(&world.ring);
}

/* A process that nobody knows yet is reported, and nobody waits for a copy of its stack. */
TEST(new_processes_are_reported)
{
	reset();
	world.space.word = 0;
	leave(&in_user);
	expect_eq(world.n_processes, 1);
	expect_eq(world.n_wakes, 1);
	expect_eq(world.n_snapshots, 0);
	come_back(7);
	expect_eq(nth(0, 0)->end, UNWIND_END_NEW);
	expect_eq(nth(0, 0)->id, 7);
	buf_free(&world.ring);
}

/* A record that is damaged, and a clock that stands, harm nobody. */
TEST(no_record_is_believed)
{
	struct sampler_stack *head = (struct sampler_stack *)(void *)world.wait.words;

	reset();
	leave(&in_user);
	come_back(0);
	expect_eq(nth(0, 0)->id, 1);
	head->n_user = UINT16_MAX;
	come_back(1);
	expect_eq(n_logged(0), 1);
	expect_eq(counters(0)->taken, 1);
	buf_free(&world.ring);
}
