/* SPDX-License-Identifier: Apache-2.0 */
/* Totals to differences, over profiles as Go writes them. */
#include "scrape/totals.h"

#include "base/clock.h"
#include "pprof/decode.h"
#include "scrape/tests/test-profile.h"
#include "testing/test.h"

#include <errno.h>

static int step(struct totals *t, const struct counted *stacks, size_t n, int64_t at_s,
		struct profile **ret)
{
	struct buf in = profile_of(stacks, n), out = BUF_NULL;
	struct error err = ERROR_NULL;
	uint64_t samples = 0;
	int r = totals_difference(t, buf_str(&in), at_s * NS_PER_SEC, &out, &samples, &err);

	if (r == 0) {
		expect_eq(profile_decode(buf_str(&out), ret, &err), 0);
		expect_eq((*ret)->n_samples, samples);
	}
	buf_free(&in);
	buf_free(&out);
	return r;
}

static void expect_sample(const struct profile *p, size_t i, const struct counted *wanted,
			  int64_t lives)
{
	expect(i < p->n_samples);
	expect_eq(p->locations[p->frames[p->samples[i].frame_start]].address, wanted->address);
	expect_eq(p->values[3 * i], wanted->objects);
	expect_eq(p->values[3 * i + 1], wanted->bytes);
	expect_eq(p->values[3 * i + 2], lives);
}

/* The first time there is nothing; from then on what was added, while what lives stays as it is. A
 * stack is known by its address, whatever its id. */
TEST(totals_become_what_was_added)
{
	struct totals *t = totals_new(TOTALS_ALLOC);
	struct profile *p;

	expect_eq(step(t, (struct counted[]){{7, 10, 100}, {8, 1, 1}}, 2, 1, &p), 1);
	expect_eq(step(t, (struct counted[]){{9, 5, 50}, {7, 12, 130}, {8, 1, 1}}, 3, 16, &p), 0);
	expect_eq(p->n_samples, 2);
	expect_eq(p->duration_ns, 15 * NS_PER_SEC);
	expect_sample(p, 0, &(struct counted){9, 5, 50}, 25);
	expect_sample(p, 1, &(struct counted){7, 2, 30}, 65);
	profile_free(p);
	expect_eq(totals_bytes(t) > 3 * 24, true);
	totals_free(t);
}

/* Nothing added, nothing lives: no sample. */
TEST(what_did_not_grow_is_left_out)
{
	struct totals *t = totals_new(TOTALS_ALLOC);
	struct profile *p;

	expect_eq(step(t, (struct counted[]){{7, 10, 1}}, 1, 1, &p), 1);
	expect_eq(step(t, (struct counted[]){{7, 10, 1}}, 1, 2, &p), 0);
	expect_eq(p->n_samples, 0);
	profile_free(p);
	totals_free(t);
}

/* A sum that shrinks is a new process, whose totals came about since. */
TEST(a_new_process_counts_whole)
{
	struct totals *t = totals_new(TOTALS_ALLOC);
	struct profile *p;

	expect_eq(step(t, (struct counted[]){{7, 100, 1000}}, 1, 1, &p), 1);
	expect_eq(step(t, (struct counted[]){{7, 10, 100}, {8, 3, 30}}, 2, 2, &p), 0);
	expect_sample(p, 0, &(struct counted){7, 10, 100}, 50);
	expect_sample(p, 1, &(struct counted){8, 3, 30}, 15);
	profile_free(p);
	totals_free(t);
}

/* A stack that stands twice is one. */
TEST(equal_stacks_are_added_up)
{
	struct totals *t = totals_new(TOTALS_ALLOC);
	struct profile *p;

	expect_eq(step(t, (struct counted[]){{7, 1, 10}, {7, 2, 20}}, 2, 1, &p), 1);
	expect_eq(step(t, (struct counted[]){{7, 2, 20}, {7, 4, 40}}, 2, 2, &p), 0);
	expect_eq(p->n_samples, 1);
	expect_sample(p, 0, &(struct counted){7, 3, 30}, 30);
	profile_free(p);
	totals_free(t);
}

/* Whatever is wrong with a profile, what was remembered stays. */
TEST(a_damaged_profile_changes_nothing)
{
	struct totals *t = totals_new(TOTALS_ALLOC);
	struct buf in = profile_of((struct counted[]){{7, 10, 100}, {8, 1, 1}}, 2);
	struct profile *p;
	uint64_t samples;

	expect_eq(step(t, (struct counted[]){{7, 10, 100}}, 1, 1, &p), 1);
	for (size_t n = 0; n < in.n; n++) {
		struct buf out = BUF_NULL;
		struct error err = ERROR_NULL;
		struct totals *other = totals_new(TOTALS_DELAY);

		(void)totals_difference(other, str_first(buf_str(&in), n), 1, &out, &samples,
					&err);
		totals_free(other);
		in.p[n] = (char)(in.p[n] ^ 0x55);
		(void)totals_difference(t, str_first(buf_str(&in), 3), 1, &out, &samples, &err);
		in.p[n] = (char)(in.p[n] ^ 0x55);
		buf_free(&out);
	}
	expect_eq(step(t, (struct counted[]){{7, 11, 110}}, 1, 2, &p), 0);
	expect_sample(p, 0, &(struct counted){7, 1, 10}, 55);
	profile_free(p);
	buf_free(&in);
	totals_free(t);
}

static void put_id(struct buf *out, uint32_t field, uint64_t id)
{
	struct buf message = BUF_NULL;

	wire_put_field(&message, 1, id);
	wire_put_bytes(out, field, buf_str(&message));
	buf_free(&message);
}

/* A location, a function and a string are some bytes in the profile and many more when it is read:
 * of each there is a most. */
TEST(a_flood_is_refused)
{
	static const struct {
		uint32_t field;
		const char *what;
	} cases[] = {{4, "more than 1048576 locations"},
		     {5, "more than 1048576 functions"},
		     {6, "more than 1048576 strings"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct totals *t = totals_new(TOTALS_ALLOC);
		struct buf in = profile_of((struct counted[]){{7, 10, 100}}, 1), out = BUF_NULL;
		struct error err = ERROR_NULL;
		uint64_t samples;

		for (uint32_t k = 0; k <= TOTALS_MAX_STACKS; k++)
			put_id(&in, cases[i].field, k + 2);
		expect(!in.failed);
		expect_eq(totals_difference(t, buf_str(&in), 1, &out, &samples, &err), -E2BIG);
		if (!strstr(err.text, cases[i].what))
			test_fail(__FILE__, __LINE__, "%s", err.text);
		buf_free(&in);
		totals_free(t);
	}
}

/* An id a million times costs what a million ids cost. */
TEST(a_repeated_id_is_cheap)
{
	struct totals *t = totals_new(TOTALS_ALLOC);
	struct buf in = profile_of((struct counted[]){{7, 10, 100}}, 1), out = BUF_NULL;
	struct error err = ERROR_NULL;
	uint64_t samples;

	for (uint32_t k = 0; k < TOTALS_MAX_STACKS; k++)
		put_id(&in, 4, 0);
	expect_eq(totals_difference(t, buf_str(&in), 1, &out, &samples, &err), 1);
	buf_free(&in);
	totals_free(t);
}

static void put_stack(struct buf *out, uint64_t label)
{
	struct buf sample = BUF_NULL, message = BUF_NULL;

	wire_put_field(&message, 1, 1);
	wire_put_field(&message, 3, label);
	wire_put_bytes(&sample, 2, STR("\x01\x02\x01"));
	wire_put_bytes(&sample, 3, buf_str(&message));
	wire_put_bytes(out, 2, buf_str(&sample));
	buf_free(&message);
	buf_free(&sample);
}

/* The same holds for stacks, which differ here by a label. */
TEST(too_many_stacks_are_refused)
{
	struct totals *t = totals_new(TOTALS_ALLOC);
	struct buf in = profile_of((struct counted[]){{7, 10, 100}}, 1), out = BUF_NULL;
	struct error err = ERROR_NULL;
	uint64_t samples;
	size_t most;

	for (uint32_t k = 1; k < TOTALS_MAX_STACKS; k++)
		put_stack(&in, k);
	most = in.n;
	put_stack(&in, TOTALS_MAX_STACKS);
	expect(!in.failed);
	expect_eq(totals_difference(t, buf_str(&in), 1, &out, &samples, &err), -E2BIG);
	expect(strstr(err.text, "more than 1048576 stacks") != NULL);
	expect_eq(totals_difference(t, str_first(buf_str(&in), most), 1, &out, &samples, &err), 1);
	buf_free(&in);
	totals_free(t);
}

/* What there is no room for is refused, and what was remembered stays. */
TEST(what_is_remembered_has_a_bound)
{
	struct totals *t = totals_new(TOTALS_ALLOC);
	struct profile *p;

	totals_limit(t, totals_bytes(t) + 24);
	expect_eq(step(t, (struct counted[]){{7, 10, 100}}, 1, 1, &p), 1);
	expect_eq(step(t, (struct counted[]){{7, 12, 130}, {8, 1, 1}}, 2, 2, &p), -E2BIG);
	expect_eq(step(t, (struct counted[]){{7, 13, 140}}, 1, 3, &p), 0);
	expect_sample(p, 0, &(struct counted){7, 3, 40}, 70);
	profile_free(p);
	totals_free(t);
}
