/* SPDX-License-Identifier: Apache-2.0 */
/* See interpreter.h. A binary is known by its dynamic symbols, which stripping leaves and which a
 * hash table finds in a few reads; by .symtab where it exports none. */
#include "python/interpreter.h"

#include "python/layouts.h"
#include "python/versions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOP      "_PyEval_EvalFrameDefault"
#define RUNTIME   "_PyRuntime"
#define VERSION   "Py_Version"
#define CODE_MAX  (1u << 20) /* of the loop, in which jumps are searched */
#define JUMPS_MAX 4096u      /* of those that lead out of it; each costs a search in a table */
#define CFAS_MAX  256u
#define TEXTS_MAX (32u << 20) /* of constants, in which the version is searched */
#define CHUNK     (1u << 18)
#define MERGED    48u  /* arguments pushed for a call move the stack pointer by as much */
#define ENTRY_MAX 256u /* of the loop, until it executes its first instruction of bytecode */

struct search {
	struct interpreter *found; /* or NULL: parts of the loop are not of interest */
	struct elf_symbol runtime, loop, version;
};

static void add_code(struct interpreter *p, uint64_t from, uint64_t to)
{
	if (from == 0 || from >= to || to > UINT32_MAX || p->n_codes >= INTERPRETER_CODES)
		return;
	for (uint32_t k = 0; k < p->n_codes; k++)
		if (p->codes[k].from < to && from < p->codes[k].to)
			return;
	p->codes[p->n_codes++] = (struct elf_code){from, to};
}

/* Symbols of .symtab: what the dynamic ones lacked, and parts of the loop that stand elsewhere. */
static void take_symbols(const struct elf_file *i, struct search *s)
{
	static const char *const begins[] = {LOOP, RUNTIME, VERSION, NULL};
	size_t n = strlen(LOOP);
	struct elf_symbols list;
	struct elf_symbol symbol;
	const char *name;

	if (!elf_symbols_open(&list, i, begins))
		return;
	while (elf_symbols_next(&list, &name, &symbol)) {
		if (s->runtime.address == 0 && strcmp(name, RUNTIME) == 0)
			s->runtime = symbol;
		if (s->version.address == 0 && strcmp(name, VERSION) == 0)
			s->version = symbol;
		if (s->loop.address == 0 && strcmp(name, LOOP) == 0)
			s->loop = symbol;
		if (s->found && strncmp(name, LOOP, n) == 0 && name[n] == '.' && symbol.size > 0)
			add_code(s->found, symbol.address, symbol.address + symbol.size);
	}
	elf_symbols_close(&list);
}

/* To 3.10 the version is a constant text only. */
static uint32_t find_version_text(const struct elf_file *i)
{
	char *bytes = malloc(CHUNK + VERSION_TEXT_MAX);
	struct version_texts texts = {0};
	uint64_t left = TEXTS_MAX;

	for (uint32_t k = 0; bytes && k < i->n_segments; k++) {
		const Elf64_Phdr *p = &i->segments[k];

		if (p->p_type != PT_LOAD || p->p_flags & PF_W)
			continue;
		for (uint64_t at = 0; at < p->p_filesz && left >= CHUNK; at += CHUNK, left -= CHUNK)
			version_texts_add(&texts, bytes,
					  elf_read(i, p->p_vaddr + at, bytes,
						   CHUNK + VERSION_TEXT_MAX));
	}
	free(bytes);
	return version_texts_agreed(&texts);
}

/* The rule that most of the loop's main part has. */
static bool find_usual_cfa(const struct elf_cfa *list, size_t n, struct elf_cfa *ret)
{
	uint64_t most = 0;

	for (size_t k = 0; k < n; k++) {
		uint64_t sum = 0;

		for (size_t m = 0; m < n; m++)
			if (list[m].reg == list[k].reg && list[m].offset == list[k].offset)
				sum += list[m].to - list[m].from;
		if (sum > most) {
			most = sum;
			*ret = list[k];
		}
	}
	return most > 0;
}

#if defined(__aarch64__)
#define FP_REG 29u
#else
#define FP_REG 6u
#endif

/* Adds where this code has whole machine frames. */
static void add_bodies(struct python_layout *l, const struct elf_cfa *list, size_t n,
		       const struct elf_cfa *usual)
{
	for (size_t k = 0; k < n; k++) {
		struct python_body *last = l->n_bodies > 0 ? &l->bodies[l->n_bodies - 1] : NULL;

		if (list[k].reg != usual->reg || list[k].offset < usual->offset ||
		    list[k].offset > usual->offset + MERGED)
			continue;
		if (last && last->to == list[k].from)
			last->to = (uint32_t)list[k].to;
		else if (l->n_bodies < PYTHON_BODIES)
			l->bodies[l->n_bodies++] =
				(struct python_body){(uint32_t)list[k].from, (uint32_t)list[k].to};
	}
}

static bool is_found(const struct interpreter *p, uint64_t address)
{
	for (uint32_t k = 0; k < p->n_codes; k++)
		if (address >= p->codes[k].from && address < p->codes[k].to)
			return true;
	return false;
}

/* Whether `target` is in a part of the loop that the compiler has put elsewhere: such a part begins
 * with a whole frame, as no function does. */
static void try_part(const struct elf_file *i, struct interpreter *p, uint64_t target,
		     const struct elf_cfa *usual)
{
	struct elf_cfa list[4];
	struct elf_code code;

	if (!elf_function(i, target, &code) || elf_cfas(i, target, list, 4) == 0 ||
	    list[0].reg != usual->reg || list[0].offset != usual->offset)
		return;
	add_code(p, code.from, code.to);
}

/* Where the loop jumps to. A stripped file has no name for what stands elsewhere. */
static void find_parts(const struct elf_file *i, struct interpreter *p, const struct elf_cfa *usual)
{
	uint64_t from = p->codes[0].from, n = p->codes[0].to - from;
	unsigned char *bytes = n <= CODE_MAX ? malloc(n) : NULL;
	uint32_t tried = 0;

	if (!bytes || elf_read(i, from, bytes, n) != n)
		n = 0;
#if defined(__x86_64__)
	for (uint64_t at = 0; at + 6 <= n && tried < JUMPS_MAX; at++) {
		uint64_t skip = bytes[at] == 0xe9                                     ? 1
				: bytes[at] == 0x0f && (bytes[at + 1] & 0xf0) == 0x80 ? 2
										      : 0;
		uint64_t target;
		int32_t by;

		if (skip == 0)
			continue;
		memcpy(&by, bytes + at + skip, sizeof(by));
		target = from + at + skip + 4 + (uint64_t)(int64_t)by;
		if (is_found(p, target))
			continue;
		try_part(i, p, target, usual);
		tried++;
	}
#endif
	(void)tried;
	free(bytes);
}

/* How much of this code is behind none of its calls and jumps to an address in a register. */
static size_t straight_code(const struct elf_file *i, uint64_t from, const unsigned char *code,
			    size_t n)
{
	size_t at = 0;
#if defined(__x86_64__)
	unsigned char byte;
	int32_t by;

	for (; at + 6 <= n; at++) {
		if (code[at] == 0xff && (code[at + 1] & 0x38) == 0x20)
			break;
		if (code[at] != 0xe8)
			continue;
		memcpy(&by, code + at + 1, sizeof(by));
		if (elf_read(i, from + at + 5 + (uint64_t)(int64_t)by, &byte, 1) == 1)
			break;
	}
#else
	uint32_t one;

	for (; at + sizeof(one) <= n; at += sizeof(one)) {
		memcpy(&one, code + at, sizeof(one));
		if ((one & 0xfffffc1f) == 0xd61f0000 || one >> 26 == 0x25)
			break;
	}
#endif
	return at;
}

/* In 3.11 and 3.12 the thread knows of a CFrame before it names a frame. What it names until then
 * is left from a call before, and often a frame. So the loop counts as entered only at its first
 * dispatch, or at the first call, in which all is set. */
static void skip_entry(const struct elf_file *i, struct python_layout *l)
{
	struct python_body *b = &l->bodies[0];
	unsigned char code[ENTRY_MAX];

	if (l->kind == PYTHON_CFRAMES && l->n_bodies > 0 && b->to - b->from > sizeof(code) &&
	    elf_read(i, b->from, code, sizeof(code)) == sizeof(code))
		b->from += (uint32_t)straight_code(i, b->from, code, sizeof(code));
}

/* Where the machine frames of the loop are whole, and how large they are. */
static bool read_frames(const struct elf_file *i, struct interpreter *p)
{
	struct elf_cfa list[CFAS_MAX], usual;
	size_t n = elf_cfas(i, p->codes[0].from, list, CFAS_MAX);

	if (!find_usual_cfa(list, n, &usual) || usual.offset > 1u << 16 ||
	    (usual.reg != FP_REG && usual.offset < 64))
		return false;
	p->layout.cfa_offset = usual.offset;
	p->layout.cfa_fp = usual.reg == FP_REG ? PYTHON_FP : 0;
	add_bodies(&p->layout, list, n, &usual);
	skip_entry(i, &p->layout);
	if (p->n_codes == 1 && elf_has_table(i)) /* each search takes too long */
		find_parts(i, p, &usual);
	for (uint32_t k = 1; k < p->n_codes; k++)
		add_bodies(&p->layout, list, elf_cfas(i, p->codes[k].from, list, CFAS_MAX), &usual);
	return true;
}

/* 3.6 has no _PyRuntime. A function returns the head of its list of interpreters: where it loads
 * that from, if it does nothing else. 0: it is compiled otherwise. */
static uint64_t find_list(const struct elf_file *i)
{
	struct elf_symbol head;
	unsigned char code[16];
	int32_t by;

	if (!elf_dynamic_symbol(i, "PyInterpreterState_Head", &head) ||
	    elf_read(i, head.address, code, sizeof(code)) != sizeof(code))
		return 0;
#if defined(__x86_64__)
	for (uint64_t at = 0; at <= 4; at += 4)
		if (memcmp(code + at, "\x48\x8b\x05", 3) == 0 && code[at + 7] == 0xc3) {
			memcpy(&by, code + at + 3, sizeof(by));
			return head.address + at + 7 + (uint64_t)(int64_t)by;
		}
#else
	(void)by;
#endif
	return 0;
}

static const char *read_layout(const struct elf_file *i, const struct search *s,
			       struct interpreter *p)
{
	unsigned char bytes[LAYOUT_OFFSETS_BYTES];
	uint64_t version = 0;

	if (elf_read(i, s->runtime.address, bytes, sizeof(bytes)) == sizeof(bytes) &&
	    memcmp(bytes, "xdebugpy", 8) == 0) {
		const char *missing = layout_of_runtime(bytes, sizeof(bytes), &p->layout);

		if (!missing)
			tasks_of_runtime(bytes, sizeof(bytes), &p->layout, &p->tasks);
		return missing;
	}
	if (s->version.address != 0)
		elf_read(i, s->version.address, &version, sizeof(version));
	else
		version = find_version_text(i);
	if (version == 0)
		return "which version it is";
	if (!layout_of_version((uint32_t)version, &p->layout))
		return "a table for this version";
	if (p->layout.runtime_current && find_list(i) != 0) {
		p->layout.runtime_current = 0;
		p->runtime = find_list(i);
	}
	return NULL;
}

/* Which symbols it has. A program that exports none is an interpreter where many of its names begin
 * as those of CPython do. */
static bool find_symbols(const struct elf_file *i, struct search *s)
{
	elf_dynamic_symbol(i, LOOP, &s->loop);
	if (!elf_dynamic_symbol(i, RUNTIME, &s->runtime))
		elf_dynamic_symbol(i, "_PyThreadState_Current", &s->runtime);
	elf_dynamic_symbol(i, VERSION, &s->version);
	if (s->loop.address == 0 && s->runtime.address == 0 && !elf_names_have(i, "_Py"))
		return false;
	if (s->loop.address == 0 || s->runtime.address == 0 || s->found)
		take_symbols(i, s);
	return s->loop.address != 0 && s->runtime.address != 0;
}

int interpreter_recognized(int fd)
{
	struct elf_file *i = malloc(sizeof(*i));
	struct search s = {.found = NULL};
	int ret = i ? elf_open(i, fd) && find_symbols(i, &s) : -ENOMEM;

	free(i);
	return ret;
}

bool interpreter_read(int fd, struct interpreter *ret)
{
	struct elf_file *i = malloc(sizeof(*i));
	struct search s = {.found = ret};
	struct elf_code code;
	const char *missing = NULL;
	uint64_t to;

	memset(ret, 0, sizeof(*ret));
	if (!i || !elf_open(i, fd) || !find_symbols(i, &s)) {
		free(i);
		return false;
	}
	to = s.loop.address + s.loop.size;
	if (elf_function(i, s.loop.address, &code) && code.to > to)
		to = code.to;
	add_code(ret, s.loop.address, to);
	if (ret->n_codes == 0) {
		free(i);
		return false;
	}
	/* The main part is the first one. */
	code = ret->codes[ret->n_codes - 1];
	memmove(ret->codes + 1, ret->codes, (ret->n_codes - 1) * sizeof(code));
	ret->codes[0] = code;
	ret->runtime = s.runtime.address;
	missing = read_layout(i, &s, ret);
	if (!missing && !read_frames(i, ret))
		missing = "how large the loop's machine frame is";
	if (missing) {
		snprintf(ret->why, sizeof(ret->why), "%s", missing);
		ret->layout.kind = PYTHON_UNKNOWN;
	}
	free(i);
	return true;
}
