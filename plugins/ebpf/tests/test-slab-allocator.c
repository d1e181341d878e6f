/* SPDX-License-Identifier: Apache-2.0 */
/* Free ranges, chunks in slabs, and numbers of rules: the memory of the walker's tables. */
#include "ebpf/unwind-store/rule-table.h"
#include "ebpf/unwind-store/slab-allocator.h"
#include "ebpf/tests/test-kernel.h"

#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* A treap that is not one any more would still answer, only wrongly. */
static uint32_t expect_ordered(const struct ranges *e, uint32_t at, int order, uint64_t low,
			       uint64_t high)
{
	const struct ranges_node *x;
	uint64_t key;

	if (!at)
		return 0;
	x = &e->nodes.p[at - 1];
	key = order == RANGES_BY_START ? x->range.start
				       : (uint64_t)x->range.n << 32 | x->range.start;
	expect(key >= low && key < high);
	for (int side = 0; side < 2; side++)
		if (x->child[order][side])
			expect(e->nodes.p[x->child[order][side] - 1].rank <= x->rank);
	return 1 + expect_ordered(e, x->child[order][0], order, low, key) +
	       expect_ordered(e, x->child[order][1], order, key + 1, high);
}

enum { SPAN = 256, UNITS = 4 * SPAN };

static void expect_same(const struct ranges *e, const bool *is_free)
{
	uint32_t n_ranges = 0, n_free = 0;

	for (uint32_t i = 0; i < UNITS; i++) {
		n_free += is_free[i];
		n_ranges += is_free[i] && (i % SPAN == 0 || !is_free[i - 1]);
	}
	expect_eq(e->total, n_free);
	expect_eq(e->n, n_ranges); /* neighbours are one */
	for (int order = 0; order < RANGES_ORDERS; order++)
		expect_eq(expect_ordered(e, e->root[order], order, 0, UINT64_MAX), n_ranges);
}

/* The length of the shortest range that has n units, 0 if there is none. */
static uint32_t shortest(const bool *is_free, uint32_t n)
{
	uint32_t best = 0, run = 0;

	for (uint32_t i = 0; i <= UNITS; i++) {
		if (i == UNITS || i % SPAN == 0 || !is_free[i]) {
			if (run >= n && (!best || run < best))
				best = run;
			run = 0;
		}
		run += i < UNITS && is_free[i];
	}
	return best;
}

static uint32_t run_at(const bool *is_free, uint32_t start)
{
	uint32_t n = 0;

	while (start + n < UNITS && is_free[start + n] && (n == 0 || (start + n) % SPAN != 0))
		n++;
	return n;
}

/* The set is what a plain array of flags says, and the best fit is taken. */
TEST(ranges_are_the_free_units)
{
	struct ranges e = {0};
	bool is_free[UNITS] = {false};
	uint64_t state = 17;
	uint32_t n, start;

	expect_eq(ranges_reserve(&e, UNITS), 0);
	for (uint32_t i = 0; i < UNITS; i += SPAN) {
		ranges_add(&e, (struct range){i, SPAN}, SPAN);
		memset(&is_free[i], true, SPAN);
	}
	expect_same(&e, is_free);
	for (uint32_t i = 0; i < 20000; i++) {
		n = 1 + (uint32_t)(next_random(&state) % (i % 16 ? 12 : 90));
		if (next_random(&state) % 2) {
			uint32_t best = shortest(is_free, n);

			expect_eq(ranges_take(&e, n, &start), best > 0);
			if (best) {
				expect_eq(run_at(is_free, start), best);
				expect(start % SPAN == 0 || !is_free[start - 1]);
				memset(&is_free[start], false, n);
			}
		} else {
			uint32_t at = (uint32_t)(next_random(&state) % UNITS), run = 0;

			while (run < n && at + run < UNITS && !is_free[at + run] &&
			       (run == 0 || (at + run) % SPAN != 0))
				run++;
			if (run) {
				ranges_add(&e, (struct range){at, run}, SPAN);
				memset(&is_free[at], true, run);
			}
		}
		expect_same(&e, is_free);
	}
	expect(!ranges_remove(&e, (struct range){0, SPAN + 1}));
	ranges_free(&e);
}

struct chunk {
	uint32_t ref;
	uint32_t n;
	uint8_t fill;
};

static void write_chunk(struct slabs *s, struct chunk *c, uint8_t fill)
{
	uint8_t *p = slabs_at(s, c->ref);

	expect(p != NULL);
	c->fill = fill;
	memset(p, fill, c->n);
}

static void expect_chunk(struct slabs *s, const struct chunk *c)
{
	const uint8_t *p = slabs_at(s, c->ref);

	expect(p != NULL);
	for (uint32_t i = 0; i < c->n; i++)
		if (p[i] != c->fill)
			test_fail(__FILE__, __LINE__, "chunk %#x is written over", c->ref);
}

/* Chunks keep what was written to them while others come and go, retired ones until they are
 * reclaimed; when all are gone no slab is left. */
TEST(chunks_keep_their_bytes)
{
	enum { N = 600, SLABS = SLABS_MAPPED + 4 };
	static struct chunk chunks[N];
	struct test_kernel k;
	struct slabs_kernel kernel;
	struct slabs s;
	uint64_t state = 3;

	test_kernel_init(&k);
	kernel = test_kernel_slabs(&k);
	slabs_init(&s, &kernel, SLABS * SLABS_COST);
	for (uint32_t i = 0; i < 6000; i++) {
		struct chunk *c = &chunks[next_random(&state) % N];
		uint64_t r = next_random(&state);

		if (c->ref) {
			expect_chunk(&s, c);
			if (r % 3)
				slabs_free(&s, c->ref, c->n);
			else
				slabs_retire(&s, c->ref, c->n);
			c->ref = 0;
		} else {
			c->n = 1 + (uint32_t)(r % (r % 97 == 0 ? 200000 : 120000));
			if (slabs_alloc(&s, c->n, &c->ref) != 0) {
				expect_eq(k.n_slabs, SLABS);
				c->ref = 0;
				continue;
			}
			expect_eq(c->ref == 0, false);
			write_chunk(&s, c, (uint8_t)(r >> 40));
		}
		if (r % 512 == 0)
			slabs_reclaim(&s);
	}
	expect_eq(k.n_slabs_most, SLABS);
	expect_eq(k.n_mapped_most, SLABS_MAPPED);
	slabs_rest(&s);
	expect_eq(k.n_mapped, 0);
	for (uint32_t i = 0; i < N; i++)
		if (chunks[i].ref)
			slabs_retire(&s, chunks[i].ref, chunks[i].n);
	slabs_reclaim(&s);
	expect_eq(s.used_bytes, 0);
	expect_eq(s.free.total, 0);
	expect_eq(k.n_slabs, 0);
	slabs_fini(&s);
	test_kernel_fini(&k);
}

/* The largest chunk fits wherever it lands; more than the budget's slabs are never made. */
TEST(the_budget_is_hard)
{
	struct test_kernel k;
	struct slabs_kernel kernel;
	struct slabs s;
	uint32_t refs[3], more;

	test_kernel_init(&k);
	kernel = test_kernel_slabs(&k);
	slabs_init(&s, &kernel, 4 * SLABS_COST - 1);
	for (size_t i = 0; i < 3; i++) {
		expect_eq(slabs_alloc(&s, SLABS_CHUNK_MAX, &refs[i]), 0);
		expect(refs[i] != 0);
	}
	expect_eq(slabs_alloc(&s, SLABS_CHUNK_MAX, &more), -ENOSPC);
	/* What is left of the second and third. */
	expect_eq(slabs_alloc(&s, 8, &more), 0);
	slabs_free(&s, more, 8);
	slabs_retire(&s, refs[0], SLABS_CHUNK_MAX);
	expect_eq(slabs_alloc(&s, 16, &more), -ENOSPC);
	slabs_reclaim(&s);
	expect_eq(slabs_alloc(&s, 16, &more), 0);
	expect_eq(k.n_slabs_most, 3);
	slabs_fini(&s);
	test_kernel_fini(&k);
	slabs_init(&s, &kernel, 0);
	expect_eq(s.max, 1);
	slabs_init(&s, &kernel, UINT64_MAX);
	expect_eq(s.max, UNWIND_SLABS_MAX);
	slabs_fini(&s);
}

/* A kernel that is short of memory is no reason to lose what is there. */
TEST(slabs_survive_a_kernel_without_memory)
{
	struct test_kernel k;
	struct slabs_kernel kernel;
	struct slabs s;
	uint32_t ref, more;

	test_kernel_init(&k);
	k.creates_left = 1;
	kernel = test_kernel_slabs(&k);
	slabs_init(&s, &kernel, UINT64_MAX);
	expect_eq(slabs_alloc(&s, 100, &ref), 0);
	expect_eq(slabs_alloc(&s, SLABS_CHUNK_MAX, &more), -ENOSPC);
	k.map_fails = true;
	expect(slabs_at(&s, ref) == NULL);
	k.map_fails = false;
	expect(slabs_at(&s, ref) != NULL);
	slabs_free(&s, ref, 100);
	expect_eq(k.n_slabs, 0);
	slabs_fini(&s);
	test_kernel_fini(&k);
}

static int use_slabs(void *context)
{
	struct test_kernel *k = context;
	struct slabs_kernel kernel = test_kernel_slabs(k);
	struct slabs s;
	uint32_t refs[40] = {0};
	int r = 0;

	slabs_init(&s, &kernel, UINT64_MAX);
	for (size_t i = 0; r == 0 && i < 40; i++)
		r = slabs_alloc(&s, 100, &refs[i]);
	for (size_t i = 0; i < 40; i++)
		if (refs[i])
			slabs_retire(&s, refs[i], 100);
	slabs_reclaim(&s);
	expect_eq(s.used_bytes, 0);
	slabs_fini(&s);
	return r;
}

TEST(slabs_survive_out_of_memory)
{
	struct test_kernel k;

	test_kernel_init(&k);
	test_each_failing_allocation(use_slabs, &k);
	test_kernel_fini(&k);
}

/* A rule keeps its number as long as it is used, and until it is reclaimed after that. */
TEST(rules_keep_their_numbers)
{
	struct unwind_entry *entries = calloc(UNWIND_RULES_MAX + 1, sizeof(*entries));
	struct rule_table b;
	int32_t a, c;

	rule_table_init(&b, entries);
	expect_eq(rule_table_number(&b, 0, 7), 0);
	rule_table_retain(&b, 0);
	rule_table_release(&b, 0);
	expect(!rule_table_has_idle(&b));
	a = rule_table_number(&b, 5, 1);
	expect(a > 0 && entries[a].rule == 5 && entries[a].aux == 1);
	rule_table_retain(&b, (uint16_t)a);
	c = rule_table_number(&b, 5, 2);
	expect(c > 0 && c != a);
	rule_table_reclaim(&b); /* it is new: somebody may be about to want it */
	expect_eq(entries[c].rule, 5);
	rule_table_settle(&b); /* nobody did */
	expect_eq(entries[c].rule, 0);
	expect_eq(rule_table_find(&b, 5, 2), -ENOSPC);
	expect_eq(rule_table_find(&b, 5, 1), a);
	expect_eq(b.n, 1);
	expect_eq(rule_table_number(&b, 5, 1), a);
	rule_table_release(&b, (uint16_t)a);
	expect(rule_table_has_idle(&b));
	expect_eq(entries[a].rule, 5);
	expect_eq(rule_table_number(&b, 5, 1), a); /* asked for again in time */
	rule_table_retain(&b, (uint16_t)a);
	rule_table_reclaim(&b);
	expect_eq(entries[a].rule, 5);
	rule_table_release(&b, (uint16_t)a);
	rule_table_reclaim(&b);
	expect_eq(b.n, 0);
	rule_table_fini(&b);
	free(entries);
}

/* Numbers run out, and come back. */
TEST(numbers_run_out_and_come_back)
{
	struct unwind_entry *entries = calloc(UNWIND_RULES_MAX + 1, sizeof(*entries));
	struct rule_table b;

	rule_table_init(&b, entries);
	for (uint64_t rule = 1; rule <= UNWIND_RULES_MAX; rule++)
		rule_table_retain(&b, (uint16_t)rule_table_number(&b, rule, 0));
	expect_eq(b.n, UNWIND_RULES_MAX);
	expect_eq(rule_table_number(&b, UNWIND_RULES_MAX + 1, 0), -ENOSPC);
	rule_table_settle(&b);
	expect_eq(entries[rule_table_number(&b, UNWIND_RULES_MAX, 0)].rule, UNWIND_RULES_MAX);
	for (uint64_t rule = 1; rule <= UNWIND_RULES_MAX; rule += 2)
		rule_table_release(&b, (uint16_t)rule_table_number(&b, rule, 0));
	rule_table_reclaim(&b);
	expect_eq(b.n, UNWIND_RULES_MAX / 2);
	for (uint64_t rule = 1; rule <= UNWIND_RULES_MAX / 2; rule++)
		expect(rule_table_number(&b, rule << 32, 9) > 0);
	for (uint64_t rule = 2; rule <= UNWIND_RULES_MAX; rule += 2)
		expect_eq(entries[rule_table_number(&b, rule, 0)].rule, rule);
	rule_table_fini(&b);
	free(entries);
}

static int number_some(void *context)
{
	struct rule_table b;
	int32_t r = 0;

	rule_table_init(&b, context);
	for (uint64_t rule = 1; r >= 0 && rule < 60; rule++)
		r = rule_table_number(&b, rule, 0);
	rule_table_settle(&b);
	expect_eq(b.n, 0);
	rule_table_fini(&b);
	return r < 0 ? r : 0;
}

TEST(numbering_survives_out_of_memory)
{
	static struct unwind_entry entries[60];

	test_each_failing_allocation(number_some, entries);
}

/* By the stack pointer or the frame pointer, as most rules are. */
static uint64_t plain(bool arm, bool by_frame, int32_t fp, int32_t offset)
{
	uint32_t base = arm        ? (by_frame ? UNWIND_ARM_FP : UNWIND_ARM_SP)
			: by_frame ? UNWIND_X86_RBP
				   : UNWIND_X86_RSP;

	return unwind_rule(base, UNWIND_CFA_REG, arm ? UNWIND_RA_FP : UNWIND_RA_CFA, fp, offset);
}

/* What is said in brief is the rule, and what cannot be said so is not. */
TEST(rules_in_brief)
{
	for (int i = 0; i < 2; i++) {
		const bool arm = i;

		expect_eq(unwind_brief((uint64_t)UNWIND_CFA_END << 5, arm), UNWIND_BRIEF_END);
		expect_eq(unwind_brief(plain(arm, false, -2, 32), arm), 4 << 1 | 2 << 11);
		expect_eq(unwind_brief(plain(arm, true, -31, 8184), arm),
			  1 | 1023 << 1 | 31u << 11);
		expect_eq(unwind_brief(plain(arm, false, -32, 32), arm), UNWIND_BRIEF_NONE);
		expect_eq(unwind_brief(plain(arm, false, -1, 32), arm), UNWIND_BRIEF_NONE);
		expect_eq(unwind_brief(plain(arm, false, 1, 32), arm), UNWIND_BRIEF_NONE);
		expect_eq(unwind_brief(plain(arm, false, -2, 8192), arm), UNWIND_BRIEF_NONE);
		expect_eq(unwind_brief(plain(arm, false, -2, 0), arm), UNWIND_BRIEF_NONE);
		expect_eq(unwind_brief(plain(arm, false, -2, -32), arm), UNWIND_BRIEF_NONE);
		expect_eq(unwind_brief(plain(arm, false, -2, 33), arm), UNWIND_BRIEF_NONE);
		expect_eq(unwind_brief(plain(arm, false, UNWIND_FP_SAME, 32), arm),
			  arm ? UNWIND_BRIEF_NONE : 4 << 1);
		expect_eq(unwind_brief(plain(!arm, false, -2, 32), arm), UNWIND_BRIEF_NONE);
		expect_eq(unwind_brief(plain(arm, false, -2, 32) | 1 << 10, arm),
			  UNWIND_BRIEF_NONE);
		expect_eq(unwind_brief(plain(arm, false, -2, 32) ^
					       (UNWIND_CFA_REG ^ UNWIND_CFA_DEREF) << 5,
				       arm),
			  UNWIND_BRIEF_NONE);
		expect_eq(unwind_brief(unwind_rule(3, UNWIND_CFA_REG,
						   arm ? UNWIND_RA_FP : UNWIND_RA_CFA, -2, 32),
				       arm),
			  UNWIND_BRIEF_NONE);
		expect_eq(unwind_brief(0, arm), UNWIND_BRIEF_NONE);
	}
}
