/* SPDX-License-Identifier: Apache-2.0 */
/* See test-kernel.h. Its memory is the system's, not the failing allocator's. */
#include "test-kernel.h"

#include "base/test.h"

#include <errno.h>
#include <sys/mman.h>

static void *memory(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	expect(p != MAP_FAILED);
	return p;
}

#define RULES_BYTES ((UNWIND_RULES_MAX + 1) * sizeof(struct unwind_entry))
#define SPACES_BYTES (UNWIND_SPACES * sizeof(struct unwind_space))
#define RETURNS_BYTES (UNWIND_SETS * sizeof(struct unwind_set))

void test_kernel_init(struct test_kernel *k)
{
	*k = (struct test_kernel){.creates_left = UINT32_MAX};
	k->rules = memory(RULES_BYTES);
	k->spaces = memory(SPACES_BYTES);
	k->returns = memory(RETURNS_BYTES);
}

void test_kernel_fini(struct test_kernel *k)
{
	expect_eq(k->n_slabs, 0);
	expect_eq(k->n_mapped, 0);
	munmap(k->rules, RULES_BYTES);
	munmap(k->spaces, SPACES_BYTES);
	munmap(k->returns, RETURNS_BYTES);
}

static int create(void *context, uint32_t slab)
{
	struct test_kernel *k = context;

	expect(!k->slabs[slab]);
	if (k->creates_left == 0)
		return -ENOMEM;
	k->creates_left--;
	k->slabs[slab] = memory(SLABS_COST);
	mprotect(k->slabs[slab], SLABS_COST, PROT_NONE);
	if (++k->n_slabs > k->n_slabs_most)
		k->n_slabs_most = k->n_slabs;
	return 0;
}

static int map(void *context, uint32_t slab, void **ret)
{
	struct test_kernel *k = context;

	expect(k->slabs[slab] && !k->mapped[slab]);
	if (k->map_fails)
		return -ENOMEM;
	k->mapped[slab] = true;
	if (++k->n_mapped > k->n_mapped_most)
		k->n_mapped_most = k->n_mapped;
	mprotect(k->slabs[slab], SLABS_COST, PROT_READ | PROT_WRITE);
	*ret = k->slabs[slab];
	return 0;
}

static void unmap(void *context, uint32_t slab, void *p)
{
	struct test_kernel *k = context;

	expect(k->mapped[slab] && p == k->slabs[slab]);
	mprotect(p, SLABS_COST, PROT_NONE);
	k->mapped[slab] = false;
	k->n_mapped--;
}

static void destroy(void *context, uint32_t slab)
{
	struct test_kernel *k = context;

	expect(k->slabs[slab] && !k->mapped[slab]);
	munmap(k->slabs[slab], SLABS_COST);
	k->slabs[slab] = NULL;
	k->n_slabs--;
}

struct slabs_kernel test_kernel_slabs(struct test_kernel *k)
{
	return (struct slabs_kernel){k, create, map, unmap, destroy};
}

int test_kernel_quiesce(void *context)
{
	struct test_kernel *k = context;

	if (k->quiesce_fails)
		return -EINTR;
	k->n_quiesces++;
	return 0;
}
