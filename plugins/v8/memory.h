/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a process, as a reader that may fail at any time: the process ends, its objects move,
 * and every byte may be forged. A budget bounds what one look at it may cost. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct v8_memory {
	/* All of [address, address + n), or false. */
	bool (*read)(void *context, uint64_t address, void *ret, size_t n);
	/* What is read from now on is as it is now. */
	void (*refresh)(void *context);
	void *context;
	uint64_t budget; /* a read takes one, and one for each MEMORY_UNIT bytes */
};

#define MEMORY_UNIT 256u

static inline bool memory_read(struct v8_memory *m, uint64_t address, void *ret, size_t n)
{
	uint64_t cost = 1 + n / MEMORY_UNIT;

	if (address >= 1ull << 56 || cost > m->budget)
		return false;
	m->budget -= cost;
	return m->read(m->context, address, ret, n);
}

static inline bool memory_word(struct v8_memory *m, uint64_t address, uint64_t *ret)
{
	return memory_read(m, address, ret, sizeof(*ret));
}
