/* SPDX-License-Identifier: Apache-2.0 */
/* Perf maps and jitdumps, also such as grow while they are read. */
#include "fuzz.h"

#include "base/check.h"
#include "elf/jit.h"

static void use(const struct jit *j)
{
	struct str name;

	check(jit_bytes(j) <= (size_t)4 << 20);
	for (size_t i = 0; i < j->list.n && i < 1000; i++)
		jit_find(j, j->list.p[i].address, &name);
	jit_find(j, 0, &name);
	jit_find(j, UINT64_MAX, &name);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct jit j = JIT_NULL;

	jit_load(&j, fuzz_file(bytes, n / 2), (size_t)1 << 20);
	use(&j);
	jit_load(&j, fuzz_file(bytes, n), (size_t)1 << 20);
	use(&j);
	jit_free(&j);
	return 0;
}
