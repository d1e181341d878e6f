/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in losses.h. */
#include "cli/report/losses.h"

#include <stddef.h>

static bool read_loss(struct str comment, struct loss *ret)
{
	static const struct str lost = {"andiron: lost ", 14}, samples = {"samples: ", 9};
	struct str rest = str_skip(comment, lost.n);
	struct str number = str_cut(&rest, ' ');

	if (!str_starts(comment, lost) || !str_u64(number, &ret->samples) ||
	    !str_starts(rest, samples))
		return false;
	ret->reason = str_skip(rest, samples.n);
	return true;
}

bool losses_is(struct str comment)
{
	struct loss loss;

	return read_loss(comment, &loss);
}

void losses_read(struct losses *l, const struct profile *p)
{
	l->n = 0;
	for (size_t i = 0; i < p->n_comments; i++) {
		struct loss loss;
		size_t k = 0;

		if (!read_loss(p->comments[i], &loss))
			continue;
		while (k < l->n && !str_eq(l->list[k].reason, loss.reason))
			k++;
		if (k >= LOSSES_MAX - 1) {
			loss.reason = STR("other reasons");
			k = LOSSES_MAX - 1;
		}
		if (k == l->n)
			l->list[l->n++] = (struct loss){loss.reason, 0};
		if (__builtin_add_overflow(l->list[k].samples, loss.samples, &l->list[k].samples))
			l->list[k].samples = UINT64_MAX;
	}
}
