/* SPDX-License-Identifier: Apache-2.0 */
/* See trampolines.h. */
#include "python/trampolines.h"

#include "runtime-kit/target-memory.h"

#include <string.h>

#define READS_MAX 32u /* of programs with another compiler, which may have thousands of mappings */

bool trampoline_known(const unsigned char *code)
{
#if defined(__x86_64__)
	/* A target of indirect calls where CPython is built so; then a word is made room for, and
	 * the loop is called, which is in the fourth argument. */
	if (memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0)
		code += 4;
	return memcmp(code, "\x48\x83\xec\x08\xff\xd1", 6) == 0 ||
	       memcmp(code, "\x55\x48\x89\xe5\xff\xd1", 6) == 0;
#else
	(void)code;
	return false;
#endif
}

static bool is_possible(const struct andiron_runtime_mapping *m)
{
	return m->object == 0 && m->limit - m->start >= TRAMPOLINE_ARENA;
}

bool trampolines_possible(const struct andiron_runtime_mapping *mappings, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (is_possible(&mappings[i]))
			return true;
	return false;
}

int32_t trampolines_claim(struct target_reader *reader,
			  const struct andiron_runtime_process *process,
			  const struct andiron_runtime_mapping *mappings, uint64_t n,
			  struct andiron_runtime_claim *ret, uint64_t max)
{
	struct target_memory *memory;
	unsigned char code[TRAMPOLINE_BYTES];
	uint32_t n_reads = 0;
	int32_t count = 0;

	if (target_memory_open(reader, process, &memory) != 0)
		return 0;
	target_reader_refresh(reader);
	for (uint64_t i = 0; i < n && (uint64_t)count < max && n_reads < READS_MAX; i++) {
		if (!is_possible(&mappings[i]))
			continue;
		n_reads++;
		if (target_memory_read(memory, mappings[i].start, code, sizeof(code)) == 0 &&
		    trampoline_known(code))
			ret[count++] = (struct andiron_runtime_claim){0, mappings[i].start,
								      mappings[i].limit};
	}
	target_memory_close(memory);
	return count;
}
