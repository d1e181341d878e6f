/* SPDX-License-Identifier: Apache-2.0 */
/* Finding runtime.moduledata. A position-independent program has its pointers either in place (Go's
 * own linker writes both), or only as addends of its relocations (GNU ld), so words are read with
 * the relocations laid over them. */
#include "gosym/go-module.h"

#include "base/check.h"
#include "elf/file.h"
#include "elf/window.h"

#include <errno.h>

#define MAX_CANDIDATES 8
#define WORD_TEXT      22 /* words of moduledata before `text`, since Go 1.16 */
#define N_WORDS        48

struct scan {
	const struct elf_file *f;
	const struct gomodule_sought *sought;
	struct elf_range relocations;
	struct gomodule *ret;
	unsigned int n_candidates;
};

static bool is_relative(const struct elf_file *f, uint64_t info)
{
	uint32_t type = ELF64_R_TYPE(info);

	switch (f->machine) {
	case EM_X86_64:
		return type == R_X86_64_RELATIVE;
	case EM_AARCH64:
		return type == R_AARCH64_RELATIVE;
	case EM_RISCV:
		return type == R_RISCV_RELATIVE;
	default:
		return false;
	}
}

/* DT_RELA and its size, by the dynamic segment: there without sections too. */
static int find_relocations(const struct elf_file *f, struct elf_range *ret)
{
	Elf64_Dyn entries[ELF_DYNAMIC_MAX];
	uint64_t address = 0, size = 0;
	int n = elf_file_dynamic(f, entries);

	for (int i = 0; i < n && entries[i].d_tag != DT_NULL; i++) {
		if (entries[i].d_tag == DT_RELA)
			address = entries[i].d_un.d_ptr;
		if (entries[i].d_tag == DT_RELASZ)
			size = entries[i].d_un.d_val;
	}
	if (n < 0 || !size || elf_segment_range(f, address, ret) < 0)
		return n < 0 ? n : 0;
	if (ret->size > size)
		ret->size = size;
	if (ret->size > GOMODULE_SCAN_MAX)
		ret->size = GOMODULE_SCAN_MAX;
	return 0;
}

/* For each relocation to a fixed place: fn; until it returns other than 0. */
typedef int (*relocation_fn)(void *context, uint64_t at, uint64_t value);

static int each_relocation(struct scan *s, relocation_fn fn, void *context)
{
	const size_t whole = WINDOW_PIECE / sizeof(Elf64_Rela) * sizeof(Elf64_Rela);
	struct window w = window_of(s->f->fd, s->relocations.offset, s->relocations.size);
	int r = 0;

	for (uint64_t at = 0; r == 0 && w.size - at >= sizeof(Elf64_Rela);) {
		const unsigned char *p;
		int got = window_some(&w, at, whole, &p);

		if (got < 0)
			r = got;
		for (int i = 0; r == 0 && i + (int)sizeof(Elf64_Rela) <= got;
		     i += (int)sizeof(Elf64_Rela)) {
			Elf64_Rela rela;

			memcpy(&rela, p + i, sizeof(rela));
			if (is_relative(s->f, rela.r_info))
				r = fn(context, rela.r_offset, (uint64_t)rela.r_addend);
		}
		at += whole;
		if (at > w.size)
			break;
	}
	window_free(&w);
	return r;
}

struct words {
	uint64_t address;
	uint64_t value[N_WORDS];
};

static int lay_over(void *context, uint64_t at, uint64_t value)
{
	struct words *words = context;
	uint64_t i = (at - words->address) / 8;

	if (at >= words->address && i < N_WORDS && (at - words->address) % 8 == 0)
		words->value[i] = value;
	return 0;
}

static int read_words(struct scan *s, struct words *words)
{
	struct elf_range range;
	struct window w;
	int r = elf_segment_range(s->f, words->address, &range);

	if (r < 0)
		return r;
	w = window_of(s->f->fd, range.offset, range.size);
	for (size_t i = 0; r == 0 && i < N_WORDS; i++)
		r = window_u64(&w, i * 8, &words->value[i]);
	window_free(&w);
	if (r < 0)
		return r == -ENOEXEC ? -ENOENT : r;
	return each_relocation(s, lay_over, words);
}

/* 1 where the module is at `address`, and *s->ret says so; else 0. */
static int try_module(struct scan *s, uint64_t address)
{
	struct words words = {.address = address};
	int r;

	if (s->n_candidates++ >= MAX_CANDIDATES)
		return 0;
	r = read_words(s, &words);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	check(s->sought->functions_data_word < N_WORDS);
	if (words.value[0] != s->sought->header || words.value[1] != s->sought->names ||
	    words.value[WORD_TEXT] >= words.value[WORD_TEXT + 1])
		return 0;
	*s->ret = (struct gomodule){
		.text = words.value[WORD_TEXT],
		.end_text = words.value[WORD_TEXT + 1],
		.functions_data = words.value[s->sought->functions_data_word],
	};
	return 1;
}

static int try_relocation(void *context, uint64_t at, uint64_t value)
{
	struct scan *s = context;

	return value == s->sought->header ? try_module(s, at) : 0;
}

/* Looks for a word in place that points to the header. */
static int scan_segment(struct scan *s, const Elf64_Phdr *segment, struct elf_range bytes)
{
	uint64_t skip = -segment->p_vaddr % 8;
	struct window w;
	int r = 0;

	if (bytes.size <= skip)
		return 0;
	w = window_of(s->f->fd, bytes.offset + skip, bytes.size - skip);
	for (uint64_t at = 0; r == 0 && at < w.size; at += WINDOW_PIECE) {
		const unsigned char *p;
		int got = window_some(&w, at, WINDOW_PIECE, &p);

		if (got < 0)
			r = got;
		for (int i = 0; r == 0 && i + 8 <= got; i += 8)
			if (memcmp(p + i, &s->sought->header, 8) == 0)
				r = try_module(s, segment->p_vaddr + skip + at + (uint64_t)i);
	}
	window_free(&w);
	return r;
}

static int scan_segments(struct scan *s)
{
	uint64_t left = GOMODULE_SCAN_MAX;

	for (size_t i = 0; i < s->f->n_segments; i++) {
		const Elf64_Phdr *p = &s->f->segments[i];
		struct elf_range bytes = elf_segment_bytes(s->f, i);
		int r;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_W))
			continue;
		bytes.size = bytes.size < left ? bytes.size : left;
		left -= bytes.size;
		r = scan_segment(s, p, bytes);
		if (r)
			return r;
	}
	return 0;
}

int gomodule_find(const struct elf_file *f, const struct gomodule_sought *sought,
		  struct gomodule *ret)
{
	struct scan s = {.f = f, .sought = sought, .ret = ret};
	const Elf64_Shdr *own = elf_file_section(f, ".go.module"); /* since Go 1.26 */
	int r = find_relocations(f, &s.relocations);

	if (r == 0 && own)
		r = try_module(&s, own->sh_addr);
	if (r == 0)
		r = scan_segments(&s);
	if (r == 0 && s.relocations.size)
		r = each_relocation(&s, try_relocation, &s);
	return r < 0 ? r : r == 1 ? 0 : -ENOENT;
}
