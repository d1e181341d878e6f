/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of code points. Contract in charset.h. */
#include "regex/charset.h"

#include "base/check.h"
#include "base/search.h"
#include "regex/unicode.h"

#include <errno.h>
#include <stdlib.h>

int charset_add(struct charset *set, uint32_t first, uint32_t last)
{
	check(first <= last && last <= RUNE_MAX);
	return vec_push(set, ((struct range){first, last})) ? 0 : -ENOMEM;
}

int charset_add_all(struct charset *set, const struct range *ranges, size_t n)
{
	int r = 0;

	for (size_t i = 0; !r && i < n; i++)
		r = charset_add(set, ranges[i].first, ranges[i].last);
	return r;
}

static int by_first(const void *left, const void *right)
{
	const struct range *a = left, *b = right;

	return compare(a->first, b->first);
}

static bool is_sorted(const struct charset *set)
{
	for (size_t i = 1; i < set->n; i++)
		if (set->p[i].first < set->p[i - 1].first)
			return false;
	return true;
}

void charset_clean(struct charset *set)
{
	size_t n = 0;

	if (!is_sorted(set))
		qsort(set->p, set->n, sizeof(*set->p), by_first);
	vec_each (set, range) {
		if (n && range->first <= set->p[n - 1].last + 1) {
			if (range->last > set->p[n - 1].last)
				set->p[n - 1].last = range->last;
		} else {
			set->p[n++] = *range;
		}
	}
	set->n = n;
}

int charset_negate(struct charset *set)
{
	struct charset others = {0};
	uint32_t next = 0;
	int r = 0;

	charset_clean(set);
	vec_each (set, range) {
		if (!r && range->first > next)
			r = charset_add(&others, next, range->first - 1);
		next = range->last + 1;
	}
	if (!r && next <= RUNE_MAX)
		r = charset_add(&others, next, RUNE_MAX);
	if (r) {
		vec_free(&others);
		return r;
	}
	vec_free(set);
	*set = others;
	return 0;
}
