/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a process, as a reader that may fail at any time: the process ends, its objects move,
 * and every byte may be forged. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct v8_memory {
	/* All of [address, address + n), or false. */
	bool (*read)(const struct v8_memory *m, uint64_t address, void *ret, size_t n);
	uint32_t pid;
};

/* The memory of a living process. */
void memory_init(struct v8_memory *m, uint32_t pid);

static inline bool memory_read(const struct v8_memory *m, uint64_t address, void *ret, size_t n)
{
	return address < 1ull << 56 && m->read(m, address, ret, n);
}

static inline bool memory_word(const struct v8_memory *m, uint64_t address, uint64_t *ret)
{
	return memory_read(m, address, ret, sizeof(*ret));
}
