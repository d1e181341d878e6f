/* SPDX-License-Identifier: Apache-2.0 */
/* See table-memory.h. */
#include "self/table-memory.h"

#include "base/check.h"

#include <errno.h>
#include <sys/mman.h>

static void *map_zero(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static int slab_create(void *context, uint32_t slab)
{
	struct table_memory *m = context;

	check(slab < UNWIND_SLABS_MAX && !m->slabs[slab]);
	m->slabs[slab] = map_zero(SLABS_COST);
	return m->slabs[slab] ? 0 : -ENOMEM;
}

static int slab_map(void *context, uint32_t slab, void **ret)
{
	const struct table_memory *m = context;

	check(slab < UNWIND_SLABS_MAX && m->slabs[slab]);
	*ret = m->slabs[slab];
	return 0;
}

static void slab_unmap(void *context, uint32_t slab, void *p)
{
}

static void slab_destroy(void *context, uint32_t slab)
{
	struct table_memory *m = context;

	check(slab < UNWIND_SLABS_MAX && m->slabs[slab]);
	munmap(m->slabs[slab], SLABS_COST);
	m->slabs[slab] = NULL;
}

/* No program runs. */
static int quiesce(void *context)
{
	return 0;
}

int table_memory_init(struct table_memory *m)
{
	*m = (struct table_memory){.common = map_zero(sizeof(*m->common))};
	if (!m->common)
		return -ENOMEM;
	m->kernel = (struct unwind_kernel){
		.slabs = {m, slab_create, slab_map, slab_unmap, slab_destroy},
		.rules = m->common->rules,
		.spaces = m->common->spaces,
		.rows = m->common->rows,
		.chains = m->common->chains,
		.quiesce = quiesce,
	};
	return 0;
}

void table_memory_fini(struct table_memory *m)
{
	if (!m->common)
		return;
	for (uint32_t i = 0; i < UNWIND_SLABS_MAX; i++)
		if (m->slabs[i])
			slab_destroy(m, i);
	munmap(m->common, sizeof(*m->common));
	*m = (struct table_memory){0};
}
