/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a file, made into the pages that walkers read (bpf/include/bpfwire/unwind-tables.h), and
 * read back. Knows neither slabs nor the kernel: a page is a run of bytes, rules are numbered by
 * whoever keeps them. */
#pragma once

#include "base/buf.h"
#include "unwind/rows.h"

/* The number of a rule with its auxiliary word; 0..UNWIND_RULES_MAX, or a negative errno, which
 * ends the making (-ENOSPC: the rule becomes 0 and is counted). Asked for each of a page's rules,
 * right before the page is given out; never for rule 0. */
typedef int32_t (*pages_number_fn)(void *context, uint64_t rule, uint64_t aux);

/* A finished page: its number counts from `base`, see pages_finish; ascending, without those that
 * have no rule. `n` is a multiple of 8. Borrowed. */
typedef int (*pages_page_fn)(void *context, uint32_t number, const void *bytes, size_t n,
			     const uint16_t *rules, size_t n_rules);

struct pages_maker;

struct pages_stats {
	uint64_t rows;   /* as given, merged */
	uint64_t filled; /* more, because a gap was too wide; first ones of a page not counted */
	uint64_t pages;
	uint64_t bytes; /* of the pages, their 8-byte alignment included */
	uint64_t lost;  /* rows whose rule was lost: numbers or a page's 256 rules ran out */
};

/* NULL when memory is short. A page is given out when the rows have left it. 600 KB, of which is
 * touched what the largest page needs. */
struct pages_maker *pages_new(pages_number_fn number, pages_page_fn page, void *context);
void pages_free(struct pages_maker *m);

/* An elf_row_fn, with the maker as its context. Ascending addresses. 0, -ENOMEM,
 * -E2BIG (more than 8 GiB of text), -EINVAL (not ascending), or what a callback returned. Amortised
 * O(1). */
int pages_add(void *maker, const struct elf_row *row);

/* Gives out the last page; the last row holds to its end. *ret_base is the address where page 0
 * begins, a multiple of 64 KiB. */
int pages_finish(struct pages_maker *m, uint64_t *ret_base);
void pages_get_stats(const struct pages_maker *m, struct pages_stats *ret);

/* Puts numbers[i] in place of rule number i throughout a page that a maker has made; numbers[0] is
 * 0. */
void pages_renumber(void *bytes, size_t n, const uint16_t *numbers);
/* How many of its rows have that number. O(rows). */
uint64_t pages_rows_of(const void *bytes, size_t n, uint16_t number);
