/* SPDX-License-Identifier: Apache-2.0 */
/* The table of names is the only long run of relocations 24 bytes apart that has the first
 * builtin's name. */
#include "v8/builtins.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY    24u
#define SHORTEST 1000u
#define LAYOUT   24u /* behind three checksums */
#define FIRST    "DeoptimizationEntry_Eager"
#define NAME     96u
#define READ     16384u /* names, until the first one is found */

struct relocations {
	Elf64_Rela *list;
	uint32_t *runs; /* how many follow each other from here on, ENTRY bytes apart */
	uint32_t n;
};

static void relocations_close(struct relocations *r)
{
	free(r->list);
	free(r->runs);
}

static bool relocations_open(struct relocations *r, const struct elf_file *f)
{
	uint64_t bytes = f->dynamic.rela_bytes;

	*r = (struct relocations){.n = (uint32_t)(bytes / sizeof(*r->list))};
	if (bytes == 0 || bytes > ELF_FILE_TABLE)
		return false;
	r->list = malloc(bytes);
	r->runs = calloc(r->n, sizeof(*r->runs));
	if (r->list && r->runs && elf_read_all(f, f->dynamic.rela, r->list, bytes))
		return true;
	relocations_close(r);
	return false;
}

/* The one whose place is ENTRY bytes behind that of `at`; they ascend. 0: none. */
static uint32_t relocations_next(const struct relocations *r, uint32_t at)
{
	for (uint32_t i = at + 1; i < r->n && i <= at + ENTRY / 8; i++)
		if (r->list[i].r_offset - r->list[at].r_offset == ENTRY)
			return i;
	return 0;
}

static bool name_read(const struct elf_file *f, const Elf64_Rela *r, char *ret)
{
	size_t n = elf_read(f, (uint64_t)r->r_addend, ret, NAME);

	return n > 0 && memchr(ret, '\0', n) && ret[0] != '\0';
}

/* Where the table of names begins; n: there is none. */
static uint32_t relocations_find(struct relocations *r, const struct elf_file *f)
{
	uint32_t n_read = 0;
	char name[NAME];

	for (uint32_t i = r->n; i-- > 0 && n_read < READ;) {
		uint32_t next = relocations_next(r, i);

		r->runs[i] = next ? r->runs[next] + 1 : 1;
		if (r->runs[i] < SHORTEST)
			continue;
		n_read++;
		if (name_read(f, &r->list[i], name) && strcmp(name, FIRST) == 0)
			return i;
	}
	return r->n;
}

/* Offsets of builtins, if a description has so many words: they ascend, and each ends before the
 * next one. */
static bool layout_fits(const uint32_t *words, uint32_t n, uint32_t stride, uint32_t blob_bytes)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t *at = words + i * stride;
		uint32_t limit = i + 1 < n ? at[stride] : blob_bytes;

		if (at[0] > limit || at[1] > limit - at[0])
			return false;
	}
	return words[0] == 0 && words[stride] != 0;
}

uint32_t builtins_each(const struct elf_file *f, uint64_t data, uint32_t blob_bytes,
		       void (*add)(void *context, const char *name, uint32_t offset), void *context)
{
	static const uint32_t strides[] = {3, 7, 8};
	uint32_t at, n = 0, stride = 0, added = 0;
	struct relocations r;
	uint32_t *words = NULL;
	char name[NAME];

	if (!relocations_open(&r, f))
		return 0;
	at = relocations_find(&r, f);
	if (at < r.n)
		n = r.runs[at] < BUILTINS_MAX ? r.runs[at] : BUILTINS_MAX;
	for (uint32_t i = 0; n > 0 && i < 3 && stride == 0; i++) {
		size_t bytes = 4ull * strides[i] * n;

		free(words);
		words = malloc(bytes);
		if (words && elf_read_all(f, data + LAYOUT, words, bytes) &&
		    layout_fits(words, n, strides[i], blob_bytes))
			stride = strides[i];
	}
	for (uint32_t i = 0; stride != 0 && i < n; i++, at = relocations_next(&r, at))
		if (name_read(f, &r.list[at], name)) {
			add(context, name, words[i * stride]);
			added++;
		}
	free(words);
	relocations_close(&r);
	return added;
}

static int compare_builtins(const void *a, const void *b)
{
	const struct v8_builtin *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Handlers of bytecodes stand together. */
static void find_handlers(struct v8_binary *b)
{
	uint32_t from = 0, best = 0;

	for (uint32_t i = 0; i <= b->n_builtins; i++) {
		const char *name = i < b->n_builtins ? b->names + b->builtins[i].name : "";
		size_t n = strlen(name);

		if (n > 7 && strcmp(name + n - 7, "Handler") == 0)
			continue;
		if (i - from > best) {
			best = i - from;
			b->layout.handlers_from = b->builtins[from].start;
			b->layout.handlers_to = i < b->n_builtins ? b->builtins[i].start
								  : (uint32_t)b->blob_bytes;
		}
		from = i + 1;
	}
	if (best < 100)
		b->layout.handlers_from = b->layout.handlers_to = 0;
}

void builtins_sort(struct v8_binary *b)
{
	if (b->n_builtins > 0)
		qsort(b->builtins, b->n_builtins, sizeof(*b->builtins), compare_builtins);
	find_handlers(b);
}
