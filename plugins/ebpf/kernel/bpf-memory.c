/* SPDX-License-Identifier: Apache-2.0 */
/* See bpf-memory.h. */
#include "ebpf/kernel/bpf-memory.h"

#include "base/check.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int bpf_memory_map(int fd, size_t bytes, void *ret)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, (bytes + page - 1) / page * page, PROT_READ | PROT_WRITE, MAP_SHARED,
		       fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	memcpy(ret, &p, sizeof(p));
	return 0;
}

static int slab_create(void *context, uint32_t slab)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	struct bpf_memory *m = context;
	int fd, r;

	check(slab < UNWIND_SLABS_MAX && m->slabs[slab] < 0);
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "unwind_slab", sizeof(uint32_t), SLABS_COST, 1,
			    &opts);
	if (fd < 0)
		return fd;
	r = bpf_map_update_elem(m->maps.slabs, &slab, &fd, BPF_ANY);
	if (r != 0) {
		close(fd);
		return r;
	}
	m->slabs[slab] = fd;
	return 0;
}

static int slab_map(void *context, uint32_t slab, void **ret)
{
	const struct bpf_memory *m = context;

	check(slab < UNWIND_SLABS_MAX && m->slabs[slab] >= 0);
	return bpf_memory_map(m->slabs[slab], SLABS_COST, ret);
}

static void slab_unmap(void *context, uint32_t slab, void *p)
{
	munmap(p, SLABS_COST); /* rounds up by itself */
}

static void slab_destroy(void *context, uint32_t slab)
{
	struct bpf_memory *m = context;

	check(slab < UNWIND_SLABS_MAX && m->slabs[slab] >= 0);
	bpf_map_delete_elem(m->maps.slabs, &slab);
	close(m->slabs[slab]);
	m->slabs[slab] = -1;
}

int bpf_memory_init(struct bpf_memory *m, const struct bpf_memory_maps *maps)
{
	int r;

	check(!m->common && maps->quiesce);
	*m = (struct bpf_memory){.maps = *maps};
	for (uint32_t i = 0; i < UNWIND_SLABS_MAX; i++)
		m->slabs[i] = -1;
	m->kernel = (struct unwind_kernel){
		.slabs = {m, slab_create, slab_map, slab_unmap, slab_destroy},
		.quiesce = maps->quiesce,
		.context = maps->context,
	};
	r = bpf_memory_map(maps->common, sizeof(*m->common), &m->common);
	if (r != 0)
		return r;
	m->kernel.rules = m->common->rules;
	m->kernel.spaces = m->common->spaces;
	m->kernel.rows = m->common->rows;
	m->kernel.chains = m->common->chains;
	return 0;
}

void bpf_memory_fini(struct bpf_memory *m)
{
	if (!m->common)
		return;
	munmap(m->common, sizeof(*m->common));
	m->common = NULL;
	m->kernel = (struct unwind_kernel){0};
	for (uint32_t i = 0; i < UNWIND_SLABS_MAX; i++)
		if (m->slabs[i] >= 0) {
			close(m->slabs[i]);
			m->slabs[i] = -1;
		}
}
