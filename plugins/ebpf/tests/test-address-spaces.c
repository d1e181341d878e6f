/* SPDX-License-Identifier: Apache-2.0 */
/* The table of address spaces: which processes have a slot, and which lose one. */
#include "ebpf/tests/test-world.h"

#include "testing/test.h"

#define BUDGET (UINT64_C(8) << 20)
#define TEXT   UINT64_C(0x7f0000000000)

/* A world in which all processes have the same mapping. */
struct crowd {
	struct world *w;
	struct mapset *set;
	uint64_t state;
};

static struct crowd crowd_new(uint64_t seed)
{
	struct crowd c = {world_new(BUDGET), world_set(), seed};

	world_file(c.w, 1, 0, 11, 300);
	expect(world_add(c.w, c.set, 1, TEXT, 0x1000, 0));
	return c;
}

static void crowd_free(struct crowd *c)
{
	mapset_free(c->set);
	world_free(c->w);
}

static void crowd_add(struct crowd *c, const struct sampler_process_key *key)
{
	expect_eq(world_map_layout(c->w, key, 1, c->set), 0);
}

static bool crowd_has(const struct crowd *c, const struct sampler_process_key *key)
{
	struct unwind_found found = {0};

	return test_kernel_look_up(&c->w->kernel, key, TEXT, &found) == 0 &&
	       found.kind == UNWIND_KIND_TABLE;
}

static uint64_t next_random(struct crowd *c)
{
	c->state ^= c->state << 13;
	c->state ^= c->state >> 7;
	c->state ^= c->state << 17;
	return c->state;
}

/* As a machine starts them: one after the other, so and so long apart. */
static struct sampler_process_key next_process(struct crowd *c, struct sampler_process_key last,
					       uint64_t apart_ns)
{
	return (struct sampler_process_key){
		.start_ns = last.start_ns + apart_ns / 2 + next_random(c) % apart_ns,
		.tgid = last.tgid + 1 + (next_random(c) % 8 == 0),
	};
}

static uint64_t replaced_of(uint64_t seed, uint32_t n, uint64_t apart_ns)
{
	struct crowd c = crowd_new(seed);
	struct sampler_process_key first = {.start_ns = next_random(&c) %
							UINT64_C(1000000000000000),
					    .tgid = (uint32_t)(next_random(&c) % 4000000)};
	struct sampler_process_key key = first;
	uint64_t replaced, state = c.state;
	uint32_t missing = 0;

	for (uint32_t i = 0; i < n; i++) {
		key = next_process(&c, key, apart_ns);
		crowd_add(&c, &key);
	}
	replaced = world_stats(c.w).address_spaces_replaced;
	key = first;
	c.state = state;
	for (uint32_t i = 0; i < n; i++) {
		key = next_process(&c, key, apart_ns);
		missing += !crowd_has(&c, &key);
	}
	expect_eq(missing, replaced);
	crowd_free(&c);
	return replaced;
}

/* Not one of thousands loses its slot to another, however they were started: at once, by a busy
 * shell, or over days; near what the table is for, hardly one does. */
TEST(thousands_have_a_slot_each)
{
	const uint64_t apart_ns[] = {20000, 1000000, UINT64_C(30000000000)};

	for (uint64_t seed = 1; seed <= 8; seed++)
		for (size_t i = 0; i < sizeof(apart_ns) / sizeof(apart_ns[0]); i++) {
			expect_eq(replaced_of(seed, 3000, apart_ns[i]), 0);
			expect_eq(replaced_of(seed, 6000, apart_ns[i]), 0);
			expect(replaced_of(seed, 8000, apart_ns[i]) <= 2);
		}
}

/* The i-th process of those that share the same possible slots. */
static struct sampler_process_key same_slots(uint32_t i)
{
	const uint64_t inverse = 0xf1de83e19937733d; /* of the hash's factor, modulo 2^64 */
	uint32_t tgid = 5000000 + i;

	return (struct sampler_process_key){
		.start_ns = ((UINT64_C(0xabc123) << 40 | i) * inverse) ^ (uint64_t)tgid << 20,
		.tgid = tgid,
	};
}

/* Where there is no slot, the one among those who are there goes that was not sampled for longest,
 * and nobody elsewhere. */
TEST(one_without_a_slot_takes_one)
{
	struct crowd c = crowd_new(1);
	struct sampler_process_key other = {.start_ns = 1, .tgid = 1}, key;

	for (uint32_t i = 0; i < UNWIND_PROBES; i++) {
		key = same_slots(i);
		expect_eq(unwind_space_hash(key.start_ns, key.tgid), 0xabc123);
		crowd_add(&c, &key);
	}
	for (uint32_t i = 0; i < 4000; i++) {
		other = next_process(&c, other, 1000000);
		crowd_add(&c, &other);
	}
	expect_eq(world_stats(c.w).address_spaces_replaced, 0);
	for (uint32_t i = 0; i < UNWIND_PROBES; i++) {
		key = same_slots(i);
		if (i != 3)
			unwind_touch(c.w->store, &key);
	}
	key = same_slots(UNWIND_PROBES);
	crowd_add(&c, &key);
	expect_eq(world_stats(c.w).address_spaces_replaced, 1);
	expect_eq(world_stats(c.w).address_spaces, 4000 + UNWIND_PROBES);
	for (uint32_t i = 0; i <= UNWIND_PROBES; i++) {
		key = same_slots(i);
		expect_eq(crowd_has(&c, &key), i != 3);
	}
	crowd_free(&c);
}
