/* SPDX-License-Identifier: Apache-2.0 */
/* See test-kernel.h. Its memory is the system's, not the failing allocator's. */
#include "ebpf/tests/test-kernel.h"

#include "testing/test.h"
#include "unwind/tests/page-find.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *memory(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	expect(p != MAP_FAILED);
	return p;
}

#define RULES_BYTES          ((UNWIND_RULES_MAX + 1) * sizeof(struct unwind_entry))
#define ADDRESS_SPACES_BYTES (UNWIND_SPACES * sizeof(struct unwind_space))
#define ROWS_BYTES           (UNWIND_SETS * sizeof(struct unwind_set))
#define CHAINS_BYTES         (UNWIND_CHAINS * sizeof(struct unwind_chain))

void test_kernel_init(struct test_kernel *k)
{
	*k = (struct test_kernel){.creates_left = UINT32_MAX};
	k->rules = memory(RULES_BYTES);
	k->spaces = memory(ADDRESS_SPACES_BYTES);
	k->rows = memory(ROWS_BYTES);
	k->chains = memory(CHAINS_BYTES);
}

void test_kernel_fini(struct test_kernel *k)
{
	expect_eq(k->n_slabs, 0);
	expect_eq(k->n_mapped, 0);
	munmap(k->rules, RULES_BYTES);
	munmap(k->spaces, ADDRESS_SPACES_BYTES);
	munmap(k->rows, ROWS_BYTES);
	munmap(k->chains, CHAINS_BYTES);
}

static int create(void *context, uint32_t slab)
{
	struct test_kernel *k = context;
	int fd;

	expect(!k->seen[slab]);
	if (k->creates_left == 0)
		return -ENOMEM;
	k->creates_left--;
	fd = memfd_create("slab", MFD_CLOEXEC);
	expect(fd >= 0 && ftruncate(fd, SLABS_COST) == 0);
	k->fds[slab] = fd;
	k->seen[slab] = mmap(NULL, SLABS_COST, PROT_READ, MAP_SHARED, fd, 0);
	expect(k->seen[slab] != MAP_FAILED);
	if (++k->n_slabs > k->n_slabs_most)
		k->n_slabs_most = k->n_slabs;
	return 0;
}

static int map(void *context, uint32_t slab, void **ret)
{
	struct test_kernel *k = context;

	expect(k->seen[slab] != NULL);
	if (k->map_fails)
		return -ENOMEM;
	if (++k->n_mapped > k->n_mapped_most)
		k->n_mapped_most = k->n_mapped;
	*ret = mmap(NULL, SLABS_COST, PROT_READ | PROT_WRITE, MAP_SHARED, k->fds[slab], 0);
	expect(*ret != MAP_FAILED);
	return 0;
}

static void unmap(void *context, uint32_t slab, void *p)
{
	struct test_kernel *k = context;

	expect(munmap(p, SLABS_COST) == 0);
	k->n_mapped--;
}

static void destroy(void *context, uint32_t slab)
{
	struct test_kernel *k = context;

	expect(k->seen[slab] != NULL);
	munmap((void *)(uintptr_t)k->seen[slab], SLABS_COST);
	close(k->fds[slab]);
	k->seen[slab] = NULL;
	k->n_slabs--;
}

struct slabs_kernel test_kernel_slabs(struct test_kernel *k)
{
	return (struct slabs_kernel){k, create, map, unmap, destroy};
}

static int quiesce(void *context)
{
	struct test_kernel *k = context;

	if (k->quiesce_fails)
		return -EINTR;
	if (k->on_quiesce)
		k->on_quiesce(k->context);
	k->n_quiesces++;
	return 0;
}

struct unwind_kernel test_kernel_all(struct test_kernel *k)
{
	return (struct unwind_kernel){
		.slabs = test_kernel_slabs(k),
		.rules = k->rules,
		.spaces = k->spaces,
		.rows = k->rows,
		.chains = k->chains,
		.quiesce = quiesce,
		.context = k,
	};
}

static const uint8_t *seen(const struct test_kernel *k, uint32_t ref)
{
	const uint8_t *slab = k->seen[unwind_ref_slab(ref)];

	expect(ref != 0 && slab != NULL); /* a program would read nonsense here */
	return slab + unwind_ref_offset(ref);
}

bool test_kernel_walk(const struct test_kernel *k, uint64_t word, uint64_t pc,
		      struct unwind_found *ret)
{
	uint32_t n = word >> 32 & 0xffff, i = 0, ref;
	const uint64_t *starts = (const void *)seen(k, (uint32_t)word);
	const struct unwind_mapping *mappings = (const void *)(starts + n);
	struct unwind_mapping m;

	*ret = (struct unwind_found){.space = (uint16_t)(word >> 48)};
	for (uint32_t at = 1; at < n; at++)
		expect(starts[at] >= mappings[at - 1].end);
	while (i < n && starts[i] <= pc)
		i++;
	if (i == 0 || pc >= mappings[i - 1].end)
		return false;
	m = mappings[i - 1];
	ret->kind = m.kind;
	ret->slot = m.slot;
	if (m.kind != UNWIND_KIND_TABLE && m.kind != UNWIND_KIND_AUX)
		return true;
	memcpy(&ref, seen(k, m.pages) + sizeof(ref) * (size_t)((pc - m.bias) >> UNWIND_PAGE_BITS),
	       4);
	if (ref)
		ret->number = pages_find(seen(k, ref), SLABS_COST - unwind_ref_offset(ref),
					 (uint16_t)(pc - m.bias));
	ret->entry = k->rules[ret->number];
	expect((ret->number == 0) == (ret->entry.rule == 0));
	return true;
}

int test_kernel_look_up(const struct test_kernel *k, const struct sampler_process_key *key,
			uint64_t pc, struct unwind_found *ret)
{
	uint32_t hash = unwind_space_hash(key->start_ns, key->tgid);

	for (uint32_t probe = 0; probe < UNWIND_PROBES; probe++) {
		const struct unwind_space *s = &k->spaces[unwind_space_slot(hash, probe)];

		if (s->word && s->tgid == key->tgid && s->start_ns == key->start_ns)
			return test_kernel_walk(k, s->word, pc, ret) ? 0 : -ENOENT;
	}
	return -ESRCH;
}
