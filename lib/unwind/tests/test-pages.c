/* SPDX-License-Identifier: Apache-2.0 */
/* Rows made into pages and read back: what is found at every boundary and between must be what the
 * rows say, and hostile rows and bytes must cost no more than they may. */
#include "unwind/pages.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "testing/test.h"
#include "unwind/tests/page-find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE UINT64_C(65536)

struct numbered {
	uint64_t rule, aux;
};

struct page_bytes {
	uint32_t number;
	size_t at, n;
};

/* Pages, and the numbers of their rules, as made. */
struct book {
	VEC(struct numbered) rules;
	VEC(struct page_bytes) pages;
	struct buf bytes;
	size_t n_max; /* numbers that are given out */
	uint64_t base;
};

static int32_t number_rule(void *context, uint64_t rule, uint64_t aux)
{
	struct book *b = context;

	expect(rule != 0);
	/* The latest first: few are asked for again. */
	for (size_t i = b->rules.n; i-- > 0;)
		if (b->rules.p[i].rule == rule && b->rules.p[i].aux == aux)
			return (int32_t)(i + 1);
	if (b->rules.n >= b->n_max)
		return -ENOSPC;
	if (!vec_push(&b->rules, ((struct numbered){rule, aux})))
		return -ENOMEM;
	return (int32_t)b->rules.n;
}

static int keep_page(void *context, uint32_t number, const void *bytes, size_t n,
		     const uint16_t *rules, size_t n_rules)
{
	struct book *b = context;
	struct page_bytes page = {number, b->bytes.n, n};
	struct unwind_page head;

	memcpy(&head, bytes, sizeof(head));
	expect_eq(n % 8, 0);
	expect_eq(head.n_rules, n_rules);
	expect(n_rules > 0 && n_rules <= UNWIND_PAGE_RULES);
	expect(b->pages.n == 0 || b->pages.p[b->pages.n - 1].number < number);
	if (!vec_push(&b->pages, page))
		return -ENOMEM;
	return buf_append(&b->bytes, bytes, n);
}

static void book_fini(struct book *b)
{
	vec_free(&b->rules);
	vec_free(&b->pages);
	buf_free(&b->bytes);
}

static const struct page_bytes *page_of(const struct book *b, uint64_t address)
{
	uint64_t number = (address - b->base) / PAGE;
	size_t low = 0, high = b->pages.n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (b->pages.p[middle].number == number)
			return &b->pages.p[middle];
		if (b->pages.p[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static struct numbered look_up(const struct book *b, uint64_t address)
{
	const struct page_bytes *page = address < b->base ? NULL : page_of(b, address);
	uint16_t number;

	if (!page)
		return (struct numbered){0};
	number = pages_find(b->bytes.p + page->at, page->n, (uint16_t)address);
	return number ? b->rules.p[number - 1] : (struct numbered){0};
}

static void expect_rule(const struct book *b, uint64_t address, const struct elf_row *row)
{
	struct numbered found = look_up(b, address);
	uint64_t rule = row ? row->rule : 0, aux = rule ? row->aux : 0;

	if (found.rule != rule || found.aux != aux)
		test_fail(__FILE__, __LINE__, "at %#llx: rule %#llx, expected %#llx",
			  (unsigned long long)address, (unsigned long long)found.rule,
			  (unsigned long long)rule);
}

static int make(struct book *b, const struct elf_row *rows, size_t n, struct pages_stats *stats)
{
	struct pages_maker *m = pages_new(number_rule, keep_page, b);
	int r = m ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = pages_add(m, &rows[i]);
	if (r == 0)
		r = pages_finish(m, &b->base);
	if (m && stats)
		pages_get_stats(m, stats);
	pages_free(m);
	return r;
}

/* At each row, one byte before it, and in its middle. */
static void expect_all(const struct book *b, const struct elf_row *rows, size_t n)
{
	expect_rule(b, rows[0].address - 1, NULL);
	for (size_t i = 0; i < n; i++) {
		uint64_t end = i + 1 < n ? rows[i + 1].address : rows[i].address + 1;

		expect_rule(b, rows[i].address, &rows[i]);
		expect_rule(b, end - 1, &rows[i]);
		expect_rule(b, rows[i].address + (end - rows[i].address) / 2, &rows[i]);
		/* Where rows that only repeat may stand. */
		for (uint64_t at = 254; at < 515 && rows[i].address + at < end; at++)
			expect_rule(b, rows[i].address + at, &rows[i]);
	}
}

static void round_trip(const struct elf_row *rows, size_t n, struct pages_stats *stats)
{
	struct book b = {.n_max = UNWIND_RULES_MAX};

	expect_eq(make(&b, rows, n, stats), 0);
	expect_eq(b.base % PAGE, 0);
	expect_eq(stats->lost, 0);
	expect_eq(stats->bytes, b.bytes.n);
	expect_eq(stats->pages, b.pages.n);
	expect_all(&b, rows, n);
	book_fini(&b);
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Gaps of a shape: mostly small, now and then wide, rarely over pages. */
static uint64_t random_gap(uint64_t *state, uint64_t shape)
{
	uint64_t r = next_random(state);

	switch (r % 64 < shape ? 3 : r % 3) {
	case 0:
		return 1 + (r >> 8) % 8;
	case 1:
		return 1 + (r >> 8) % 64;
	case 2:
		return 200 + (r >> 8) % 400;
	default:
		return 1 + (r >> 8) % (r % 5 == 0 ? 4 * PAGE : 5000);
	}
}

/* What rows say is what is found, at every boundary and between. */
TEST(random_rows_are_found_again)
{
	enum { N = 2000 };
	struct elf_row *rows = calloc(N, sizeof(*rows));
	uint64_t state = 0x1234567;

	for (uint64_t shape = 0; shape < 64; shape += 7) {
		uint64_t address = next_random(&state) >> 20;
		struct pages_stats stats;
		uint64_t rule = 0;

		for (size_t i = 0; i < N; i++) {
			uint64_t other = i == 0 ? 1 : (next_random(&state) >> 9) % 40;

			rule = other == rule ? rule + 1 : other;
			rows[i] = (struct elf_row){address, rule, rule % 7 ? 0 : rule << 40};
			address += random_gap(&state, shape);
		}
		round_trip(rows, N, &stats);
		expect_eq(stats.rows, N);
	}
	free(rows);
}

/* A page full of rows, one a byte, is the largest there is. */
TEST(a_row_per_byte)
{
	enum { N = 3 * 65536 };
	struct elf_row *rows = calloc(N, sizeof(*rows));
	struct pages_stats stats;

	for (uint32_t i = 0; i < N; i++)
		rows[i] = (struct elf_row){0x7ffe0001 + i, 1 + i % 255, 0};
	round_trip(rows, N, &stats);
	expect_eq(stats.rows, N);
	expect_eq(stats.filled, 0);
	expect(stats.bytes * 10 <= stats.rows * 21);
	free(rows);
}

/* Each gap where bridging and beginning a block change places. */
TEST(gaps_around_the_limits)
{
	enum { N = 140 };
	struct elf_row rows[N];

	for (uint64_t gap = 250; gap < 1030; gap += gap < 520 ? 1 : 17) {
		uint64_t address = 65536 - 7;
		struct pages_stats stats;

		for (size_t i = 0; i < N; i++) {
			rows[i] = (struct elf_row){address, 1 + i % 3, 0};
			address += i % 70 < 69 - gap % 67 ? 1 + i % 9 : gap;
		}
		round_trip(rows, N, &stats);
	}
}

/* Pages between two rows have the rule of the first, and none where it has none. */
TEST(gaps_over_pages)
{
	static const uint64_t rules[] = {5, 0, 6};
	struct pages_stats stats;

	for (size_t with = 0; with < 3; with++) {
		struct elf_row rows[] = {{0x1234, 1, 0},
					 {0x5000, rules[with], 0},
					 {0x95000 + with, 2, 0},
					 {0xa0000, 3, 0},
					 {0xa0001, 0, 0}};

		round_trip(rows, 5, &stats);
		/* Pages 1 to 8 have no row of their own. */
		expect_eq(stats.pages, rules[with] ? 11 : 3);
	}
}

/* Addresses above 32 bits, and as much text as may be. */
TEST(huge_text)
{
	struct elf_row rows[] = {{UINT64_C(0xffff00000000fff0), 1, 0},
				 {UINT64_C(0xffff0001ffffffff), 0, 0},
				 {UINT64_C(0xffff0001fffffffe) + 2, 2, 3}};
	struct book b = {.n_max = UNWIND_RULES_MAX};
	struct pages_stats stats;

	expect_eq(make(&b, rows, 2, &stats), 0);
	expect_eq(stats.pages, 131072);
	expect_rule(&b, UINT64_C(0xffff0001fffffffe), &rows[0]);
	expect_rule(&b, UINT64_C(0xffff0001ffffffff), NULL);
	book_fini(&b);
	b = (struct book){.n_max = UNWIND_RULES_MAX};
	expect_eq(make(&b, rows, 3, NULL), -E2BIG);
	book_fini(&b);
}

/* What does not ascend is refused, and nothing is taken after it. */
TEST(rows_ascend)
{
	static const struct elf_row equal[] = {{100, 1, 0}, {100, 2, 0}};
	static const struct elf_row back[] = {{100, 0, 0}, {99, 2, 0}, {200, 1, 0}};
	struct book b = {.n_max = UNWIND_RULES_MAX};
	struct pages_maker *m = pages_new(number_rule, keep_page, &b);

	expect_eq(make(&b, equal, 2, NULL), -EINVAL);
	expect_eq(make(&b, back, 2, NULL), -EINVAL);
	expect_eq(pages_add(m, &back[0]), 0);
	expect_eq(pages_add(m, &back[1]), -EINVAL);
	expect_eq(pages_add(m, &back[2]), -EINVAL);
	expect_eq(pages_finish(m, &b.base), -EINVAL);
	expect_eq(b.pages.n, 0);
	pages_free(m);
	book_fini(&b);
}

/* No row, or none with a rule, is no page. */
TEST(nothing_is_no_page)
{
	static const struct elf_row rows[] = {{100, 0, 9}, {UINT64_C(1) << 60, 0, 0}};
	struct book b = {.n_max = UNWIND_RULES_MAX, .base = 1};

	expect_eq(make(&b, NULL, 0, NULL), 0);
	expect_eq(make(&b, rows, 2, NULL), 0);
	expect_eq(b.pages.n, 0);
	book_fini(&b);
}

/* Equal neighbours are one row. */
TEST(equal_rows_are_merged)
{
	static const struct elf_row rows[] = {
		{100, 1, 2}, {104, 1, 2}, {108, 1, 3}, {112, 0, 1}, {116, 0, 2}};
	struct book b = {.n_max = UNWIND_RULES_MAX};
	struct pages_stats stats;

	expect_eq(make(&b, rows, 5, &stats), 0);
	expect_eq(stats.rows, 3);
	expect_all(&b, rows, 5);
	book_fini(&b);
}

/* Of more than 256 rules in a page the last become "nothing is known", and are counted;
 * never one rule in place of another. */
TEST(a_page_holds_256_rules)
{
	static const struct {
		uint32_t n;
		bool zero; /* the first row has no rule */
		uint32_t lost;
	} cases[] = {{256, false, 0},
		     {255, true, 0},
		     {257, false, 2},
		     {256, true, 1},
		     {400, false, 145}};
	struct elf_row rows[1200];

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct book b = {.n_max = UNWIND_RULES_MAX};
		struct pages_stats stats;
		uint32_t known = cases[c].zero || cases[c].lost ? 255 : 256;

		for (uint32_t i = 0; i < 3 * cases[c].n; i++)
			rows[i] = (struct elf_row){0x10000 + cases[c].zero + i * 9,
						   1 + i % cases[c].n, 0};
		expect_eq(make(&b, rows, 3 * cases[c].n, &stats), 0);
		expect_eq(stats.lost, 3 * cases[c].lost);
		for (uint32_t i = 0; i < 3 * cases[c].n; i++)
			expect_rule(&b, rows[i].address + 8,
				    rows[i].rule <= known ? &rows[i] : NULL);
		book_fini(&b);
	}
}

/* Numbers that run out cost the rows that need new ones, and no other. */
TEST(numbers_run_out)
{
	struct elf_row rows[1000];
	struct book b = {.n_max = 100};
	struct pages_stats stats;

	for (uint32_t i = 0; i < 1000; i++)
		rows[i] = (struct elf_row){4096 + i * 300, 1 + i % 150, 0};
	expect_eq(make(&b, rows, 1000, &stats), 0);
	/* The first row of a page may be one that repeats a lost one. */
	expect(stats.lost >= 300 && stats.lost <= 300 + stats.pages);
	for (uint32_t i = 0; i < 1000; i++)
		expect_rule(&b, rows[i].address, rows[i].rule <= 100 ? &rows[i] : NULL);
	book_fini(&b);
}

static int refuse_page(void *context, uint32_t number, const void *bytes, size_t n,
		       const uint16_t *rules, size_t n_rules)
{
	return -E2BIG;
}

/* A callback's refusal ends the making, and is what the maker answers from there on. */
TEST(a_refusal_ends_the_making)
{
	static const struct elf_row rows[] = {{100, 1, 0}, {PAGE, 2, 0}, {PAGE + 1, 3, 0}};
	struct book b = {.n_max = UNWIND_RULES_MAX};
	struct pages_maker *m = pages_new(number_rule, refuse_page, &b);

	expect_eq(pages_add(m, &rows[0]), 0);
	expect_eq(pages_add(m, &rows[1]), -E2BIG);
	expect_eq(pages_add(m, &rows[2]), -E2BIG);
	expect_eq(pages_finish(m, &b.base), -E2BIG);
	pages_free(m);
	book_fini(&b);
}

/* The price of rows as compilers make them: distances of a few bytes within a function and wide
 * ones between some, few rules. All included it is at most 2.3 bytes. */
TEST(rows_cost_little)
{
	enum { N = 60000 };
	struct elf_row *rows = calloc(N, sizeof(*rows));
	uint64_t state = 99, address = 0x401020;
	struct pages_stats stats;

	for (size_t i = 0; i < N; i++) {
		uint64_t r = next_random(&state);

		rows[i] = (struct elf_row){address, 1 + i % 2 + 2 * (r % 40), 0};
		address += r % 100 < 90 ? 1 + (r >> 20) % 30 : 1 + (r >> 20) % 400;
	}
	round_trip(rows, N, &stats);
	printf("# %.3f bytes a row\n", (double)stats.bytes / (double)stats.rows);
	expect(stats.bytes * 100 <= stats.rows * 230);
	free(rows);
}

/* Changed and cut pages are read without leaving their bytes (under the sanitizer). */
TEST(hostile_pages_are_survived)
{
	struct elf_row rows[3000];
	struct book b = {.n_max = UNWIND_RULES_MAX};
	uint64_t state = 4711;

	for (uint32_t i = 0; i < 3000; i++)
		rows[i] = (struct elf_row){i * 20 + (i % 50 == 0), 1 + i % 200, 0};
	expect_eq(make(&b, rows, 3000, NULL), 0);
	for (uint32_t i = 0; i < 20000; i++) {
		uint64_t r = next_random(&state);
		size_t n = i % 3 == 0 ? r % (b.pages.p[0].n + 1) : b.pages.p[0].n;
		_cleanup_(freep) uint8_t *copy = malloc(n + 1);

		memcpy(copy, b.bytes.p, n);
		for (uint32_t k = 0; n > 0 && k < 1 + r % 4; k++) {
			uint64_t at = next_random(&state);

			copy[at % (k % 2 ? n : n < 64 ? n : 64)] = (uint8_t)(at >> 40);
		}
		copy = realloc(copy, n ? n : 1); /* to its exact size */
		pages_find(copy, n, (uint16_t)(r >> 16));
		pages_find(copy, n, 0xffff);
	}
	book_fini(&b);
}

static int make_some(void *context)
{
	static const struct elf_row rows[] = {{100, 1, 0}, {PAGE, 2, 0}, {3 * PAGE + 1, 3, 0}};
	struct book b = {.n_max = UNWIND_RULES_MAX};
	int r = make(&b, rows, 3, NULL);

	book_fini(&b);
	return r;
}

TEST(making_survives_out_of_memory)
{
	test_each_failing_allocation(make_some, NULL);
}
