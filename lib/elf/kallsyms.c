/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/kallsyms. Contract in kallsyms.h.
 *
 * The kernel lists its own symbols by address, and data behind text: the first symbol that is no
 * function after one that is marks the end of code, and is kept for that alone. Modules come in any
 * order. */
#include "elf/kallsyms.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "elf/symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define CHUNK       ((size_t)65536)
#define MAX_LINE    ((size_t)1024)
#define MAX_SYMBOLS ((size_t)1 << 20)
#define MAX_NAMES   ((size_t)64 << 20)
#define MAX_LAST    UINT64_C(65536)

struct loader {
	struct kallsyms k;
	bool in_text, any_address;
	uint16_t module; /* of the last line */
};

static int add(struct loader *l, uint64_t address, uint32_t name, bool local)
{
	struct kallsyms_symbol s = {address, name, l->module, local};

	if (l->k.symbols.n >= MAX_SYMBOLS)
		return -E2BIG;
	return vec_push(&l->k.symbols, s) ? 0 : -ENOMEM;
}

static int enter_module(struct loader *l, struct str module)
{
	uint32_t id;

	if (str_eq(module, intern_get(&l->k.modules, l->module)))
		return 0;
	id = intern_add(&l->k.modules, module);
	if (id == INDEX_NONE)
		return -ENOMEM;
	if (id > UINT16_MAX)
		return -E2BIG;
	l->module = (uint16_t)id;
	l->in_text = false;
	return 0;
}

static int add_function(struct loader *l, uint64_t address, char type, struct str name)
{
	uint32_t at = (uint32_t)l->k.names.n;
	int r = buf_str_append(&l->k.names, name);

	if (r == 0)
		r = buf_putc(&l->k.names, '\0');
	l->in_text = true;
	l->any_address |= address != 0;
	return r < 0 ? r : add(l, address, at, type == 't');
}

/* "ffffffff81000000 T _stext" or "… t nf_hook\t[nf_tables]" */
static int take_line(struct loader *l, struct str line)
{
	struct str address = str_cut(&line, ' '), type = str_cut(&line, ' ');
	struct str name = str_cut(&line, '\t'), module = STR("");
	uint64_t value;
	int r;

	if (!str_hex(address, &value) || type.n != 1 || name.n == 0)
		return -EINVAL;
	if (line.n > 2 && line.p[0] == '[' && line.p[line.n - 1] == ']')
		module = (struct str){line.p + 1, line.n - 2};
	r = enter_module(l, module);
	if (r < 0)
		return r;
	/* "__pfx_NAME" is the padding in front of NAME: half of the list. */
	if (strchr("tTwW", type.p[0]) && !str_starts(name, STR("__pfx_")))
		return add_function(l, value, type.p[0], name);
	if (!l->in_text)
		return 0;
	l->in_text = false;
	return add(l, value, KALLSYMS_END, false);
}

/* Takes all whole lines of [p, +n); returns the bytes used, or an errno. */
static ssize_t take_lines(struct loader *l, const char *p, size_t n)
{
	size_t used = 0;

	for (;;) {
		struct str rest = {p + used, n - used};
		size_t line = str_find(rest, '\n');
		int r;

		if (line == rest.n)
			return line > MAX_LINE ? -EINVAL : (ssize_t)used;
		r = line > MAX_LINE ? -EINVAL : take_line(l, str_first(rest, line));
		if (r < 0)
			return r;
		used += line + 1;
	}
}

static int stream(struct loader *l, int fd)
{
	_cleanup_(freep) char *chunk = malloc(CHUNK);
	size_t held = 0;
	off_t at = 0;

	if (!chunk)
		return -ENOMEM;
	for (;;) {
		ssize_t n = pread(fd, chunk + held, CHUNK - held, at), used;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return held ? -EINVAL : 0;
		held += (size_t)n;
		at += n;
		used = take_lines(l, chunk, held);
		if (used < 0)
			return (int)used;
		held -= (size_t)used;
		check(held <= MAX_LINE);
		memmove(chunk, chunk + used, held);
	}
}

/* Functions before the mark that ends code at the same address. */
static int by_address(const void *x, const void *y)
{
	const struct kallsyms_symbol *a = x, *b = y;

	return compare(a->address, b->address) ?: compare(a->name, b->name);
}

static void finish(struct kallsyms *k)
{
	void *smaller;
	size_t i = 1;

	while (i < k->symbols.n && by_address(&k->symbols.p[i - 1], &k->symbols.p[i]) <= 0)
		i++;
	if (i < k->symbols.n)
		qsort(k->symbols.p, k->symbols.n, sizeof(*k->symbols.p), by_address);
	/* Both grew by doubling; a failure to shrink changes nothing. */
	smaller = realloc(k->symbols.p, k->symbols.n * sizeof(*k->symbols.p));
	if (smaller) {
		k->symbols.p = smaller;
		k->symbols.capacity = k->symbols.n;
	}
	smaller = realloc(k->names.p, k->names.n);
	if (smaller) {
		k->names.p = smaller;
		k->names.capacity = k->names.n;
	}
}

int kallsyms_load(struct kallsyms *ret, int fd, struct error *err)
{
	struct loader l = {.k = {.names = {.limit = MAX_NAMES}}};
	int r = intern_add(&l.k.modules, STR("")) == INDEX_NONE ? -ENOMEM : stream(&l, fd);

	if (r == 0 && l.k.symbols.n == 0)
		r = error_set(err, -EINVAL, "the list of kernel symbols has no functions");
	else if (r == 0 && !l.any_address)
		r = error_set(
			err, -EACCES,
			"the kernel hides the addresses of its symbols (kernel.kptr_restrict); "
			"set it to 0 or 1 and run with CAP_SYSLOG to name kernel functions");
	else if (r == -EINVAL)
		error_set(err, r, "a line of the list of kernel symbols is not understood");
	else if (r < 0)
		error_errno(err, r, "cannot read the list of kernel symbols");
	if (r < 0) {
		kallsyms_free(&l.k);
		return r;
	}
	finish(&l.k);
	*ret = l.k;
	return 0;
}

void kallsyms_free(struct kallsyms *k)
{
	vec_free(&k->symbols);
	buf_free(&k->names);
	intern_free(&k->modules);
	*k = KALLSYMS_NULL;
}

size_t kallsyms_bytes(const struct kallsyms *k)
{
	return k->symbols.capacity * sizeof(*k->symbols.p) + k->names.capacity +
	       k->modules.arena.bytes;
}

/* Whether a function that starts at entry `at`, the last of its address, runs up to here. */
static bool reaches(const struct kallsyms *k, size_t at, uint64_t address)
{
	const struct kallsyms_symbol *s = &k->symbols.p[at];
	bool last = at + 1 == k->symbols.n || s[1].module != s->module;

	return !last || address - s->address < MAX_LAST;
}

static struct str name_of(const struct kallsyms *k, const struct kallsyms_symbol *s)
{
	check(s->name < k->names.n);
	return str_of(k->names.p + s->name);
}

bool kallsyms_find(const struct kallsyms *k, uint64_t address, struct str *name, struct str *module)
{
	const struct kallsyms_symbol *best = NULL;
	size_t end = search_partition(k->symbols.n, i, k->symbols.p[i].address <= address);

	if (end == 0 || !reaches(k, end - 1, address))
		return false;
	address = k->symbols.p[end - 1].address;
	for (; end && k->symbols.p[end - 1].address == address; end--) {
		const struct kallsyms_symbol *s = &k->symbols.p[end - 1];

		if (s->name == KALLSYMS_END)
			continue;
		if (!best || s->local < best->local ||
		    (s->local == best->local && elf_name_better(name_of(k, s), name_of(k, best))))
			best = s;
	}
	if (!best || address == 0)
		return false;
	*name = name_of(k, best);
	*module = intern_get(&k->modules, best->module);
	return true;
}
