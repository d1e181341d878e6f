/* SPDX-License-Identifier: Apache-2.0 */
/* What an object's files say. Contract in object-symbols.h. */
#include "symbolize/parser/object-symbols.h"

#include "symbolize/parser/go-frames.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "elf/inflate.h"
#include "elf/linkage.h"

#include <errno.h>
#include <unistd.h>

#define CRC_MAX (UINT64_C(1) << 30) /* of a debug file whose CRC is computed */

/* Remembers that a part is left out for what it costs. */
static int note(struct tables *t, int r)
{
	if (r == -ETIME || (r == -E2BIG && !t->over))
		t->over = r;
	return r;
}

static int load_symbols(int fd, size_t max, struct elf_symbols *ret, struct error *err)
{
	struct elf_file f = ELF_FILE_NULL;
	int r = elf_file_open(&f, fd, err);

	if (r == 0)
		r = elf_symbols_load(ret, &f, max, err);
	elf_file_close(&f);
	return r;
}

/* What dwz has moved away is named by the file that it was moved out of. */
static int read_debug_links(struct tables *t)
{
	struct elf_file f = ELF_FILE_NULL;
	struct elf_debuglinks links;
	int r = elf_file_open(&f, t->fds[TABLES_DEBUG], NULL);

	if (r == 0)
		r = elf_debuglinks_read(&f, &links);
	if (r == 0 && !t->links.alt_build_id[0])
		memcpy(t->links.alt_build_id, links.alt_build_id, sizeof(links.alt_build_id));
	elf_file_close(&f);
	return r == -ENOMEM ? r : 1;
}

static int open_debug(struct tables *t, size_t max_symbols)
{
	int r = t->fds[TABLES_DEBUG] < 0
			? 0
			: elf_debuglink_belongs(&t->file, &t->links, t->fds[TABLES_DEBUG], CRC_MAX);

	if (r == 0 && t->fds[TABLES_DEBUG] >= 0)
		close(take_fd(t->fds[TABLES_DEBUG]));
	if (r == 1)
		r = read_debug_links(t);
	if (r <= 0 || t->own.source == ELF_SYMBOLS_SYMTAB)
		return r < 0 ? r : 0;
	r = note(t, load_symbols(t->fds[TABLES_DEBUG], max_symbols, &t->debug, NULL));
	/* A debug file's .dynsym has no bytes. */
	if (r == 0 && t->debug.source != ELF_SYMBOLS_SYMTAB)
		elf_symbols_free(&t->debug);
	return r == -ENOMEM ? r : 0;
}

static int open_small(struct tables *t, size_t max_symbols)
{
	int r;

	if (t->own.source == ELF_SYMBOLS_SYMTAB || t->debug.n)
		return 0;
	r = elf_minidebug_open(&t->file, &t->small_fd);
	if (r == 0)
		r = load_symbols(t->small_fd, max_symbols, &t->small, NULL);
	return note(t, r) == -ENOMEM ? r : 0;
}

static int open_go(struct tables *t)
{
	int r = pclntab_open(&t->go, &t->file, NULL);

	t->has_go = r == 0;
	return r == -ENOMEM ? r : 0;
}

/* What is no ELF file may be what a runtime tells of its code. */
static int open_file(struct tables *t, struct error *err)
{
	int r = elf_file_open(&t->file, t->fds[TABLES_FILE], err), jit;

	if (r != -ENOEXEC)
		return r;
	jit = note(t, jit_load(&t->jit, t->fds[TABLES_FILE], t->limits.max_bytes));
	t->is_jit = jit >= 0 || jit == -E2BIG;
	return t->is_jit ? 0 : jit == -ENOMEM ? jit : r;
}

static int open_all(struct tables *t, struct error *err)
{
	size_t max_symbols = t->limits.max_bytes / 16;
	int r = open_file(t, err);

	if (t->is_jit)
		return r;
	if (r == 0)
		r = elf_symbols_load(&t->own, &t->file, max_symbols, err);
	if (r == 0)
		r = elf_debuglinks_read(&t->file, &t->links);
	if (r == 0)
		r = open_debug(t, max_symbols);
	if (r == 0)
		r = open_small(t, max_symbols);
	return r < 0 ? r : open_go(t);
}

int tables_open(struct tables *t, int fds[TABLES_FILES], const struct tables_limits *limits,
		struct error *err)
{
	int r;

	*t = (struct tables){.limits = *limits, .file = ELF_FILE_NULL, .small_fd = -1};
	memcpy(t->fds, fds, sizeof(t->fds));
	check(t->fds[TABLES_FILE] >= 0);
	r = open_all(t, err);
	if (r < 0)
		tables_close(t);
	return r;
}

void tables_close(struct tables *t)
{
	dwarf_free(t->dwarf);
	t->dwarf = NULL;
	vec_each (&t->splits, fd)
		closep(fd);
	vec_free(&t->splits);
	if (t->has_go)
		pclntab_close(&t->go);
	t->has_go = false;
	elf_symbols_free(&t->own);
	elf_symbols_free(&t->debug);
	elf_symbols_free(&t->small);
	elf_functions_free(&t->functions);
	elf_file_close(&t->file);
	jit_free(&t->jit);
	buf_free(&t->name);
	closep(&t->small_fd);
	t->small_fd = -1;
	for (unsigned int i = 0; i < TABLES_FILES; i++) {
		closep(&t->fds[i]);
		t->fds[i] = -1;
	}
}

size_t tables_bytes(const struct tables *t)
{
	return sizeof(*t) + elf_symbols_bytes(&t->own) + elf_symbols_bytes(&t->debug) +
	       elf_symbols_bytes(&t->small) + elf_functions_bytes(&t->functions) +
	       (t->has_go ? 5 * WINDOW_PIECE : 0) + jit_bytes(&t->jit) +
	       (t->dwarf ? dwarf_bytes(t->dwarf) : 0);
}

size_t tables_n_fds(const struct tables *t)
{
	size_t n = t->splits.n + (t->small_fd >= 0) + (t->dwarf ? dwarf_n_fds(t->dwarf) : 0);

	for (unsigned int i = 0; i < TABLES_FILES; i++)
		n += t->fds[i] >= 0;
	return n;
}

int tables_wants(struct tables *t, struct buf *ret)
{
	const char *path;
	int r = 0;

	while (r == 0 && t->dwarf && (path = dwarf_wants(t->dwarf)))
		r = buf_append(ret, path, strlen(path) + 1);
	return r;
}

int tables_add_split(struct tables *t, int fd)
{
	int r = t->dwarf ? 0 : -ENOENT;

	if (r == 0 && !vec_push(&t->splits, fd))
		r = -ENOMEM;
	if (r < 0) {
		close(fd);
		return r;
	}
	r = dwarf_add_split(t->dwarf, fd);
	if (r < 0)
		close(t->splits.p[--t->splits.n]);
	return r;
}

void tables_grant(struct tables *t)
{
	if (t->dwarf)
		dwarf_grant(t->dwarf, t->limits.steps);
}

/* --- Where functions begin --- */

/* What cannot be read is not there. 0 or -ENOMEM. */
static int need_functions(struct tables *t)
{
	size_t max = t->limits.max_bytes / sizeof(struct elf_function);

	if (t->functions_tried || t->is_jit)
		return 0;
	if (note(t, elf_functions_load(&t->functions, &t->file, max)) == -ENOMEM)
		return -ENOMEM;
	t->functions_tried = true;
	return 0;
}

int tables_function(struct tables *t, uint64_t address, uint64_t *ret)
{
	const struct elf_function *found;

	if (need_functions(t) < 0)
		return -ENOMEM;
	found = elf_functions_find(&t->functions, address);
	if (!found)
		return -ENOENT;
	*ret = found->start;
	return 0;
}

/* --- Names --- */

struct named {
	const struct elf_symbols *symbols;
	int fd;
	enum tables_source source;
};

/* The linked name of the function into t->name, by one table. A symbol without a size names no
 * function that begins behind it. */
static int find_in(struct tables *t, const struct named *in, uint64_t address)
{
	struct elf_extent extent;
	int r = elf_symbols_find(in->symbols, in->fd, address, &t->name, &extent);

	if (r < 0 || !extent.open)
		return r;
	if (need_functions(t) < 0)
		return -ENOMEM;
	return elf_functions_begins(&t->functions, extent.address, address) ? -ENOENT : 0;
}

/* By the first table that has it. */
static int find_symbol(struct tables *t, uint64_t address, enum tables_source *source)
{
	const struct named order[] = {
		{&t->debug, t->fds[TABLES_DEBUG], FROM_DEBUG},
		{&t->own, t->fds[TABLES_FILE],
		 t->own.source == ELF_SYMBOLS_SYMTAB ? FROM_SYMTAB : FROM_DYNSYM},
		{&t->small, t->small_fd, FROM_MINIDEBUG},
	};
	int r = -ENOENT;

	for (size_t i = 0; r == -ENOENT && i < sizeof(order) / sizeof(order[0]); i++) {
		*source = order[i].source;
		r = find_in(t, &order[i], address);
	}
	if (r != -ENOENT)
		return r;
	*source = FROM_DYNSYM;
	r = elf_file_load_sections(&t->file, NULL);
	return r < 0 ? (r == -ENOMEM ? r : -ENOENT) : elf_linkage_name(&t->file, address, &t->name);
}

static int open_dwarf(struct tables *t, int fd)
{
	const struct dwarf_files files = {
		.fd = fd,
		.alt = t->fds[TABLES_ALT],
		.split = t->fds[TABLES_PACKAGE],
		.max_bytes = t->limits.max_bytes,
		.steps = t->limits.steps,
	};

	return fd < 0 ? -ENOENT : dwarf_new(&t->dwarf, &files, NULL);
}

static int need_dwarf(struct tables *t)
{
	int r;

	if (t->dwarf_tried)
		return t->dwarf ? 0 : t->dwarf_error;
	r = open_dwarf(t, t->fds[TABLES_FILE]);
	if (r == -ENOENT)
		r = open_dwarf(t, t->fds[TABLES_DEBUG]);
	if (r == -ENOMEM)
		return r;
	t->dwarf_tried = true;
	t->dwarf_error = r;
	return note(t, r);
}

static int dwarf_frames(struct tables *t, uint64_t address, struct dwarf_frames *ret)
{
	int r = t->limits.symbols_only ? -ENOENT : need_dwarf(t);

	if (r < 0)
		return r;
	r = dwarf_find(t->dwarf, address, ret);
	if (dwarf_is_cut(t->dwarf))
		note(t, -E2BIG);
	/* A file that asks for more than it may is not asked again. */
	if (note(t, r) == -ETIME) {
		dwarf_free(t->dwarf);
		t->dwarf = NULL;
		t->dwarf_error = r;
	}
	return r;
}

bool tables_lacks(struct tables *t)
{
	return (t->limits.lines || t->limits.inlines) && !t->limits.symbols_only && !t->is_jit &&
	       !t->has_go && need_dwarf(t) == -ENOENT;
}

/* Lines and inlined calls, as far as they are known and wanted. */
static int find_frames(struct tables *t, uint64_t address, bool named, struct dwarf_frames *ret,
		       enum tables_source *source)
{
	int r = -ENOENT;

	ret->list.n = 0;
	buf_clear(&ret->text);
	*source = FROM_GO;
	if (t->has_go && (t->limits.lines || t->limits.inlines || !named))
		r = go_frames(&t->go, address, t->limits.inlines, ret);
	if (r == 0 || r == -ENOMEM)
		return r;
	*source = FROM_DWARF;
	if (t->limits.lines || t->limits.inlines || !named)
		r = dwarf_frames(t, address, ret);
	if (r < 0)
		ret->list.n = 0;
	return r == -ENOMEM ? r : 0;
}

/* What was not asked for goes. */
static void trim(const struct tables *t, struct dwarf_frames *f)
{
	if (!t->limits.inlines && f->list.n > 1) {
		f->list.p[0] = f->list.p[f->list.n - 1];
		f->list.n = 1;
	}
	if (t->limits.lines)
		return;
	vec_each (&f->list, frame) {
		frame->file = (struct dwarf_text){0, 0};
		frame->line = frame->column = frame->start_line = 0;
	}
}

/* The function itself bears the linker's name: it tells clones apart, and is what other tools show.
 */
static int put_symbol(const struct tables *t, struct dwarf_frames *f)
{
	struct dwarf_frame *last;
	size_t at = f->text.n;

	if (!f->list.n && !vec_push(&f->list, (struct dwarf_frame){0}))
		return -ENOMEM;
	if (buf_append(&f->text, t->name.p, t->name.n) < 0)
		return -ENOMEM;
	check(f->list.n > 0);
	last = &f->list.p[f->list.n - 1];
	last->function = (struct dwarf_text){(uint32_t)at, (uint32_t)t->name.n};
	last->linked = true;
	return 0;
}

/* What is not there may have been written since. */
static int find_compiled(struct tables *t, uint64_t address, struct dwarf_frames *ret)
{
	struct dwarf_frame frame = {0};
	struct str name;

	ret->list.n = 0;
	buf_clear(&ret->text);
	if (!jit_find(&t->jit, address, &name)) {
		int r = note(t, jit_load(&t->jit, t->fds[TABLES_FILE], t->limits.max_bytes));

		if (r == -ENOMEM)
			return r;
		if (r <= 0 || !jit_find(&t->jit, address, &name))
			return -EAGAIN;
	}
	frame.function.n = (uint32_t)name.n;
	if (buf_append(&ret->text, name.p, name.n) < 0 || !vec_push(&ret->list, frame))
		return -ENOMEM;
	return 0;
}

int tables_find(struct tables *t, uint64_t address, struct dwarf_frames *ret,
		enum tables_source *source)
{
	enum tables_source lines;
	bool named;
	int r;

	*source = FROM_JIT;
	if (t->is_jit)
		return find_compiled(t, address, ret);
	r = find_symbol(t, address, source);
	named = r == 0;
	if (!named && r != -ENOENT)
		return r;
	r = find_frames(t, address, named, ret, &lines);
	if (r < 0)
		return r;
	trim(t, ret);
	if (named)
		return put_symbol(t, ret);
	*source = lines;
	/* A line without a function is no answer. */
	if (!ret->list.n || !ret->list.p[ret->list.n - 1].function.n)
		return -ENOENT;
	return 0;
}
