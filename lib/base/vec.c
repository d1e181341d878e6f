/* SPDX-License-Identifier: Apache-2.0 */
/* Growing arrays. Contract in vec.h. */
#include "base/vec.h"

#include "base/check.h"

#include <stdint.h>

bool vec_grow(void **p, size_t *capacity, size_t need, size_t size)
{
	size_t grown = *capacity ? *capacity : 8;
	void *moved;

	if (need <= *capacity)
		return true;
	check(size > 0);
	while (grown < need)
		if (__builtin_mul_overflow(grown, 2, &grown))
			return false;
	if (grown > SIZE_MAX / size)
		return false;
	moved = realloc(*p, grown * size);
	if (!moved)
		return false;
	*p = moved;
	*capacity = grown;
	return true;
}
