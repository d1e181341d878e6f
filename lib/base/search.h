/* SPDX-License-Identifier: Apache-2.0 */
/* Order, and binary search in what is sorted: arrays, columns, or records that are decoded on the
 * way. */
#pragma once

#include <stddef.h>

/* The partition point: how many of the positions 0 … n - 1 come before the first for which `holds`
 * is false. `holds` is an expression of the position `i`, a name that the caller chooses. It must
 * hold for none behind the first one for which it does not. O(log n); evaluates `holds` at most
 * log2(n) + 1 times. The last position that holds is the result minus 1. */
#define search_partition(n, i, holds)                                                              \
	({                                                                                         \
		size_t low_ = 0, high_ = (n);                                                      \
		while (low_ < high_) {                                                             \
			size_t i = low_ + (high_ - low_) / 2;                                      \
			if (holds)                                                                 \
				low_ = i + 1;                                                      \
			else                                                                       \
				high_ = i;                                                         \
		}                                                                                  \
		low_;                                                                              \
	})

/* -1, 0 or 1, as qsort wants it. Several keys: compare(…) ?: compare(…). */
#define compare(a, b) (((a) > (b)) - ((a) < (b)))
