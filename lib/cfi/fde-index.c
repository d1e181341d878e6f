/* SPDX-License-Identifier: Apache-2.0 */
/* Functions by address. Contract in fde-index.h.
 *
 * The survey passes over the section once. A header that leaves functions out, names others or is
 * not sorted would give rows that are silently wrong; so it is compared with the section: both
 * sides are summed up, entry by entry, to a number that does not depend on order. (Who makes a file
 * in which two different sums agree gets wrong rows for his own file, still bounded and
 * ascending.) */
#include "cfi/fde-index.h"

#include "base/check.h"
#include "base/file.h"
#include "base/search.h"

#include <errno.h>
#include <stdlib.h>

#define HDR_BYTES   12
#define ENTRY_BYTES 8
/* DW_EH_PE_*: what ld, gold, lld and mold write, and what binary search needs. */
#define PE_TABLE        0x3b /* relative to the header, 4 bytes signed */
#define PE_COUNT        0x03 /* 4 bytes */
#define PE_FRAMES_PCREL 0x1b

static uint64_t mix(uint64_t start, uint64_t offset)
{
	uint64_t h = (start ^ offset << 40 ^ offset) * UINT64_C(0x9e3779b97f4a7c15);

	return (h ^ h >> 32) * UINT64_C(0xbf58476d1ce4e5b9);
}

/* The file's bytes behind the header; false: there is none. */
static bool hdr_place(const struct elf_file *f, uint64_t *offset, uint64_t *size, uint64_t *address)
{
	const Elf64_Shdr *s = elf_file_section(f, ".eh_frame_hdr");
	const Elf64_Phdr *p = elf_file_segment(f, PT_GNU_EH_FRAME);

	if (s && s->sh_type != SHT_NOBITS) {
		*offset = s->sh_offset;
		*size = s->sh_size;
		*address = s->sh_addr;
		return true;
	}
	if (p) {
		*offset = p->p_offset;
		*size = p->p_filesz;
		*address = p->p_vaddr;
	}
	return p;
}

/* Finds .eh_frame_hdr by its section or segment; ret->n is 0 where it is not usable, and
 * *ret_frames then still the address of .eh_frame if it is given, else 0. 0 or an errno. */
static int find_hdr(const struct elf_file *f, struct rows_hdr *ret, uint64_t *ret_frames)
{
	uint64_t offset, size, address;
	uint8_t head[HDR_BYTES];
	int32_t frames;
	uint32_t n;
	int r;

	ret->n = ret->n_chunk = 0;
	*ret_frames = 0;
	if (!hdr_place(f, &offset, &size, &address) || size < HDR_BYTES ||
	    !elf_file_holds(f, offset, size))
		return 0;
	r = file_pread(f->fd, head, sizeof(head), offset);
	if (r < 0)
		return r;
	memcpy(&frames, head + 4, 4);
	memcpy(&n, head + 8, 4);
	if (head[0] != 1 || head[1] != PE_FRAMES_PCREL)
		return 0;
	*ret_frames = address + 4 + (uint64_t)(int64_t)frames;
	if (head[2] != PE_COUNT || head[3] != PE_TABLE || n > (size - HDR_BYTES) / ENTRY_BYTES)
		return 0;
	ret->fd = f->fd;
	ret->offset = offset + HDR_BYTES;
	ret->address = address;
	ret->n = n;
	return 0;
}

int rows_frames_open(struct cfi_section *s, const struct elf_file *f, struct rows_hdr *ret_hdr)
{
	const Elf64_Shdr *header = elf_file_section(f, ".eh_frame");
	struct elf_range rest;
	uint64_t address;
	int r = find_hdr(f, ret_hdr, &address);

	if (r < 0)
		return r;
	if (header)
		return cfi_section_open(s, f, header);
	/* Without section headers: from where its header points to the segment's end. */
	if (!address || elf_segment_range(f, address, &rest) < 0)
		return -ENOEXEC;
	return cfi_section_open_range(s, f, rest.offset, rest.size, address);
}

/* Entry i of the header: where the function begins, and its record. */
static int hdr_entry(struct rows_hdr *h, uint64_t i, uint64_t *start, uint64_t *record)
{
	if (i - h->first >= h->n_chunk) {
		uint64_t first = i - i % ROWS_HDR_CHUNK, left = h->n - first;
		int r;

		check(i < h->n);
		h->first = first;
		h->n_chunk = 0;
		left = left < ROWS_HDR_CHUNK ? left : ROWS_HDR_CHUNK;
		r = file_pread(h->fd, h->chunk, (size_t)left * ENTRY_BYTES,
			       h->offset + first * ENTRY_BYTES);
		if (r < 0)
			return r;
		h->n_chunk = left;
	}
	*start = h->address + (uint64_t)(int64_t)h->chunk[i - h->first][0];
	*record = h->address + (uint64_t)(int64_t)h->chunk[i - h->first][1];
	return 0;
}

int rows_hdr_find(struct rows_hdr *h, uint64_t address, uint64_t *ret_start, uint64_t *ret_record)
{
	int r = 0;
	/* Where an entry cannot be read, the search ends. */
	size_t n = search_partition((size_t)h->n, i,
				    r == 0 && (r = hdr_entry(h, i, ret_start, ret_record)) == 0 &&
					    *ret_start <= address);

	if (r < 0 || n == 0)
		return r;
	r = hdr_entry(h, n - 1, ret_start, ret_record);
	return r < 0 ? r : 1;
}

/* The sum over the header; -EBADMSG: it is not strictly ascending. */
static int sum_hdr(struct rows_order *o, uint64_t *ret)
{
	uint64_t sum = 0, before = 0;

	for (uint64_t i = 0; i < o->hdr.n; i++) {
		uint64_t start, record;
		int r = hdr_entry(&o->hdr, i, &start, &record);

		if (r < 0)
			return r;
		if (i && start <= before)
			return -EBADMSG;
		before = start;
		sum += mix(start, record - o->section.address);
	}
	*ret = sum;
	return 0;
}

/* What a pass over the section finds. */
struct survey {
	const struct rows_machine *m;
	struct cfi_run *run;
	uint64_t n, sum, empty, broken;
	bool aux;
};

/* Whether any CFA of a function goes by way of a preserved register. */
static bool function_needs_aux(const struct survey *s, const struct cfi_fde *fde)
{
	if (!rows_needs_aux(s->m, &fde->cie->initial) &&
	    !cfi_may_define_cfa_by(fde, s->m->preserved_bits))
		return false;
	cfi_run_begin(s->run, fde);
	while (cfi_run_next(s->run) == 1) {
		if (s->run->changed && rows_needs_aux(s->m, &s->run->row))
			return true;
		s->run->changed = false;
	}
	return false;
}

static int survey_section(struct rows_order *o, struct survey *s)
{
	struct cfi_fde fde = {0};
	int r;

	while ((r = cfi_section_next(&o->section, &fde)) != -ENODATA) {
		if (r < 0 && r != -EBADMSG)
			return r;
		s->broken += r < 0;
		if (r != 1)
			continue;
		s->n++;
		s->empty += fde.start == fde.end;
		s->sum += mix(fde.start, fde.offset);
		if (!s->aux)
			s->aux = function_needs_aux(s, &fde);
	}
	return 0;
}

static int by_start(const void *x, const void *y)
{
	const struct rows_index *a = x, *b = y;

	return compare(a->start, b->start) ?: compare(a->offset, b->offset);
}

/* The same functions again, unless the file has changed meanwhile: never more than `max`. */
static int make_index(struct rows_order *o, size_t max)
{
	struct cfi_fde fde = {0};
	bool sorted = true;
	int r;

	o->index = malloc((max ? max : 1) * sizeof(*o->index));
	if (!o->index)
		return -ENOMEM;
	while (o->n < max && (r = cfi_section_next(&o->section, &fde)) != -ENODATA) {
		if (r < 0 && r != -EBADMSG)
			return r;
		if (r != 1 || fde.start == fde.end)
			continue;
		sorted = sorted && (o->n == 0 || o->index[o->n - 1].start <= fde.start);
		o->index[o->n++] = (struct rows_index){fde.start, (uint32_t)fde.offset};
	}
	check(o->n <= max);
	if (!sorted)
		qsort(o->index, (size_t)o->n, sizeof(*o->index), by_start);
	return 0;
}

int rows_order_survey(struct rows_order *o, const struct rows_machine *m, size_t max_functions,
		      struct cfi_run *run)
{
	struct survey s = {.m = m, .run = run};
	uint64_t sum = 0;
	int r;

	memset(run->watch, 0, sizeof(run->watch));
	o->index = NULL;
	o->n = o->at = 0;
	r = survey_section(o, &s);
	if (r < 0)
		return r;
	o->broken = s.broken;
	o->aux = s.aux;
	if (s.n && s.n == o->hdr.n && !s.empty && !s.broken) {
		r = sum_hdr(o, &sum);
		if (r < 0 && r != -EBADMSG)
			return r;
		if (r == 0 && sum == s.sum) {
			o->n = o->hdr.n;
			return 0;
		}
	}
	check(s.empty <= s.n);
	if (s.n - s.empty > max_functions)
		return -E2BIG;
	return make_index(o, (size_t)(s.n - s.empty));
}

void rows_order_free(struct rows_order *o)
{
	free(o->index);
	o->index = NULL;
	cfi_section_close(&o->section);
}

static int entry(struct rows_order *o, uint64_t *start, uint64_t *offset)
{
	int r;

	if (o->index) {
		*start = o->index[o->at].start;
		*offset = o->index[o->at].offset;
		return 0;
	}
	r = hdr_entry(&o->hdr, o->at, start, offset);
	if (r == 0)
		*offset -= o->section.address;
	return r;
}

int rows_order_peek(struct rows_order *o, uint64_t *ret)
{
	uint64_t offset;
	int r;

	if (o->at == o->n)
		return 0;
	r = entry(o, ret, &offset);
	return r < 0 ? r : 1;
}

int rows_order_take(struct rows_order *o, struct cfi_fde *ret)
{
	uint64_t start;
	int r = entry(o, &start, &ret->next);

	o->at++;
	if (r < 0)
		return r;
	r = cfi_section_next(&o->section, ret);
	if (r == 1 && ret->start == start)
		return 1;
	/* The file has changed since the survey. */
	return r >= 0 || r == -ENODATA ? -EBADMSG : r;
}
