/* SPDX-License-Identifier: Apache-2.0 */
/* Functions by call-frame information. Contract in functions.h. */
#include "cfi/functions.h"

#include "base/check.h"
#include "base/search.h"
#include "base/vec.h"
#include "cfi/fde-index.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_RECORDS (1u << 24) /* of a section: a second, about */
#define MAX_NEST    32

struct gathered {
	VEC(struct elf_function) list;
	bool sorted;
};

static int gather(struct cfi_section *s, size_t max, struct gathered *g)
{
	struct cfi_fde fde = {0};
	uint32_t n = 0;
	int r;

	while ((r = cfi_section_next(s, &fde)) != -ENODATA) {
		if (r < 0 && r != -EBADMSG)
			return r;
		if (++n > MAX_RECORDS)
			return -E2BIG;
		if (r != 1 || fde.start >= fde.end)
			continue;
		if (g->list.n >= max)
			return -E2BIG;
		g->sorted &= g->list.n == 0 || g->list.p[g->list.n - 1].start <= fde.start;
		if (!vec_push(&g->list, ((struct elf_function){fde.start, fde.end - fde.start})))
			return -ENOMEM;
	}
	return 0;
}

static int by_start(const void *x, const void *y)
{
	const struct elf_function *a = x, *b = y;

	return compare(a->start, b->start) ?: compare(b->size, a->size);
}

static int open_section(struct cfi_section *s, const struct elf_file *f, bool debug)
{
	const Elf64_Shdr *header;
	struct rows_hdr hdr;

	if (!debug)
		return rows_frames_open(s, f, &hdr);
	header = elf_file_section(f, ".debug_frame");
	return header ? cfi_section_open(s, f, header) : -ENOEXEC;
}

int elf_functions_load(struct elf_functions *ret, struct elf_file *f, size_t max)
{
	struct gathered g = {.sorted = true};
	int r = elf_file_load_sections(f, NULL);

	for (int debug = 0; r == 0 && debug < 2 && g.list.n == 0; debug++) {
		struct cfi_section section = CFI_SECTION_NULL;

		r = open_section(&section, f, debug);
		if (r == 0)
			r = gather(&section, max, &g);
		else if (cfi_is_absent(r))
			r = 0;
		cfi_section_close(&section);
	}
	if (r < 0) {
		vec_free(&g.list);
		return r;
	}
	check(g.list.n <= max);
	if (!g.sorted)
		qsort(g.list.p, g.list.n, sizeof(*g.list.p), by_start);
	*ret = (struct elf_functions){g.list.p, g.list.n};
	return 0;
}

void elf_functions_free(struct elf_functions *t)
{
	free(t->list);
	*t = ELF_FUNCTIONS_NULL;
}

size_t elf_functions_bytes(const struct elf_functions *t)
{
	return t->n * sizeof(*t->list);
}

const struct elf_function *elf_functions_find(const struct elf_functions *t, uint64_t address)
{
	size_t low = search_partition(t->n, i, t->list[i].start <= address);

	for (size_t tries = 0; low && tries < MAX_NEST; tries++, low--)
		if (address - t->list[low - 1].start < t->list[low - 1].size)
			return &t->list[low - 1];
	return NULL;
}

bool elf_functions_begins(const struct elf_functions *t, uint64_t after, uint64_t address)
{
	size_t n = search_partition(t->n, i, t->list[i].start <= address);

	return n && t->list[n - 1].start > after;
}
