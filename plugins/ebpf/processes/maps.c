/* SPDX-License-Identifier: Apache-2.0 */
/* See maps.h. */
#include "ebpf/processes/maps.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/search.h"

#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define PAGE 4096 /* the kernel's, on the machines that we run on */

static bool cut_hex(struct str *rest, char end, uint64_t *ret)
{
	return str_hex(str_cut(rest, end), ret);
}

static bool cut_u64(struct str *rest, char end, uint64_t *ret)
{
	return str_u64(str_cut(rest, end), ret);
}

bool maps_parse_line(struct str line, struct maps_line *ret)
{
	struct maps_line m = {0};
	uint64_t major, minor;
	struct str access;

	if (!cut_hex(&line, '-', &m.start) || !cut_hex(&line, ' ', &m.limit))
		return false;
	access = str_cut(&line, ' ');
	if (access.n != 4 || m.limit <= m.start)
		return false;
	m.executable = access.p[2] == 'x';
	m.writable = access.p[1] == 'w';
	if (!cut_hex(&line, ' ', &m.offset) || !cut_hex(&line, ':', &major) ||
	    !cut_hex(&line, ' ', &minor) || !cut_u64(&line, ' ', &m.inode))
		return false;
	m.device = makedev((unsigned int)major, (unsigned int)minor);
	while (line.n && line.p[0] == ' ')
		line = str_skip(line, 1);
	m.path = line;
	if (str_ends(m.path, STR(" (deleted)")))
		m.path.n -= sizeof(" (deleted)") - 1;
	*ret = m;
	return true;
}

static struct mapset *mapset_new(void)
{
	struct mapset *set = calloc(1, sizeof(*set));

	if (set)
		set->whole = true;
	return set;
}

void mapset_free(struct mapset *set)
{
	while (set) {
		struct mapset *older = set->older;

		vec_each (&set->list, m)
			if (m->file)
				mapped_file_release(m->file);
		vec_free(&set->list);
		vec_free(&set->claims);
		arena_free(&set->arena);
		free(set);
		set = older;
	}
}

/* The names that most processes have need no memory. */
static struct str common_name(struct str name)
{
	static const char *const names[] = {"[vdso]", "[vsyscall]", "[heap]", "[stack]"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_is(name, names[i]))
			return str_of(names[i]);
	return STR_NULL;
}

static int add(struct mapset *set, const struct maps_line *line, struct mapped_file *file)
{
	struct mapping m = {line->start, line->limit, line->offset, file, STR("[anon]"), 0};

	check(m.limit > m.start);
	if (file)
		m.name = STR_NULL;
	else if (line->path.n) {
		m.name = common_name(line->path);
		if (!m.name.n)
			m.name = arena_str(&set->arena, line->path);
		if (!m.name.p)
			return -1;
	}
	/* [vsyscall] stands in every text, and is in no process's memory. */
	if (!line->writable && !str_is(line->path, "[vsyscall]"))
		set->exec_pages += (uint32_t)((m.limit - m.start) / PAGE);
	return vec_push(&set->list, m) ? 0 : -1;
}

/* Memory of the process's own, also where it has given it a name (PR_SET_VMA_ANON_NAME), shares it
 * with its children ("/dev/zero"), or has mapped it twice, to write and to run it, as .NET does. */
static bool is_anonymous(const struct maps_line *l)
{
	static const char *const names[] = {"//anon", "/dev/zero", "/memfd:doublemapper"};

	if (l->path.n == 0 || str_starts(l->path, STR("[anon")))
		return l->inode == 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_is(l->path, names[i]))
			return true;
	return false;
}

struct reader {
	struct mapset *set;
	struct mapped_files *files;
	maps_open_fn open_file;
	void *context;
	const struct mapset *like, *before;
};

static const struct mapping *find_in(const struct mapset *set, uint64_t pc)
{
	size_t at = search_partition(set->list.n, i, set->list.p[i].limit <= pc);

	return at < set->list.n && set->list.p[at].start <= pc ? &set->list.p[at] : NULL;
}

/* The mapping of a file that had this very line. */
static const struct mapping *same_line(const struct mapset *like, uint64_t start, uint64_t line)
{
	const struct mapping *m = like ? find_in(like, start) : NULL;

	return m && m->file && m->line == line && mapped_file_is_elf(m->file) ? m : NULL;
}

/* The file that the same mapping had before, or NULL. Where that is known from the kernel's list,
 * it had no line. Some file systems (btrfs) say another device of an open file than of a mapping:
 * there the line alone decides. */
static struct mapped_file *file_before(const struct mapset *before, const struct maps_line *l,
				       uint64_t line)
{
	const struct mapping *m = before && l->inode ? find_in(before, l->start) : NULL;

	if (!m || !m->file || !mapped_file_is_elf(m->file) || m->start != l->start ||
	    m->limit != l->limit || m->offset != l->offset ||
	    (m->line != line && !mapped_file_is(m->file, l->device, l->inode)))
		return NULL;
	mapped_file_retain(m->file);
	return m->file;
}

/* The file of a line, or, where it has none, the source of its JIT symbols; with `dump_only` no
 * perf map. */
static struct mapped_file *file_of_line(struct reader *r, struct maps_line *l, bool dump_only)
{
	struct mapped_file *file = NULL;
	char reopen[4352] = "";
	int fd = r->open_file(r->context, l, reopen, sizeof(reopen));
	struct str path = l->inode ? l->path : str_of(reopen);

	if (fd < 0)
		return NULL;
	if (!dump_only || str_ends(path, STR(".dump")))
		file = mapped_file_get(r->files, fd, path, str_of(reopen));
	if (file && l->inode == 0)
		l->offset = l->start;
	close(fd);
	return file;
}

/* Code of no file that a perf map or a jitdump names has that as its file, in which addresses are
 * the process's own. So has code out of a file that is not ELF: what .NET finds compiled in its
 * DLLs, which name nothing, is named by its jitdump, and not by its perf map. */
static int add_line(struct reader *r, const struct maps_line *line, uint64_t hash)
{
	const struct mapping *same = same_line(r->like, line->start, hash);
	struct maps_line l = *line, jit_line = *line;
	struct mapped_file *file = NULL, *better = NULL;
	bool anonymous = is_anonymous(&l);

	if (anonymous)
		l.inode = 0;
	if (anonymous && !str_starts(l.path, STR("[anon")))
		l.path = STR("");
	jit_line.inode = 0;
	if (same) {
		file = same->file;
		mapped_file_retain(file);
	} else if (l.inode != 0 || anonymous) {
		file = file_of_line(r, &l, false);
	}
	if (!file)
		file = file_before(r->before, &l, hash);
	if (file && l.inode != 0 && !mapped_file_is_elf(file))
		better = file_of_line(r, &jit_line, true);
	if (better) {
		mapped_file_release(file);
		file = better;
		l = jit_line;
	}
	if (add(r->set, &l, file) != 0) {
		if (file)
			mapped_file_release(file);
		return -1;
	}
	r->set->list.p[r->set->list.n - 1].line = hash;
	r->set->whole &= file || l.inode == 0;
	return 0;
}

struct mapset *mapset_parse(struct str text, struct mapped_files *files, maps_open_fn open_file,
			    void *context, const struct mapset *like, const struct mapset *before)
{
	struct mapset *set = mapset_new();
	struct reader r = {set, files, open_file, context, like, before};
	uint64_t last = 0;

	if (set)
		set->text = hash_str(text);
	while (set && text.n && set->list.n < MAPS_MAX) {
		struct str whole = str_cut(&text, '\n');
		struct maps_line line;

		/* The kernel lists them in order; a text that does not would break the search. */
		if (!maps_parse_line(whole, &line) || !line.executable || line.start < last)
			continue;
		last = line.limit;
		if (add_line(&r, &line, hash_str(whole)) != 0) {
			mapset_free(set);
			return NULL;
		}
	}
	return set;
}

static struct mapped_file *file_of_mapping(const struct sampler_mapping *m,
					   struct mapped_files *files)
{
	struct andiron_object_key key = {
		.device = makedev(m->device >> 20, m->device & 0xfffff),
		.inode = m->inode,
		.generation = m->inode_generation,
		.change_ns = m->change_ns,
	};

	return m->inode ? mapped_files_find(files, &key) : NULL;
}

struct mapset *mapset_take(const struct sampler_mapped *mapped, struct mapped_files *files)
{
	struct mapset *set = mapset_new();
	uint64_t last = 0;

	if (set)
		set->whole = mapped->total == mapped->n;
	for (uint32_t i = 0; set && i < mapped->n && i < SAMPLER_MAPPED_MAX; i++) {
		const struct sampler_mapping *m = &mapped->list[i];
		struct maps_line line = {
			.start = m->start,
			.limit = m->end,
			.offset = m->offset,
			.inode = m->inode,
			.writable = (m->flags & SAMPLER_MAPPED_WRITABLE) != 0,
			.path = m->flags & SAMPLER_MAPPED_VDSO ? STR("[vdso]")
				: m->inode                     ? STR(MAPS_UNKNOWN_FILE)
							       : STR_NULL,
		};
		struct mapped_file *file;

		if (line.start < last || line.limit <= line.start)
			continue;
		last = line.limit;
		file = file_of_mapping(m, files);
		set->whole &= file || m->inode == 0;
		if (add(set, &line, file) != 0) {
			if (file)
				mapped_file_release(file);
			mapset_free(set);
			return NULL;
		}
	}
	return set;
}

bool mapset_equal(const struct mapset *a, const struct mapset *b)
{
	if (a->list.n != b->list.n || a->generation != b->generation || a->whole != b->whole ||
	    a->inherited != b->inherited || a->exec_pages != b->exec_pages ||
	    !str_eq(a->exe, b->exe))
		return false;
	for (size_t i = 0; i < a->list.n; i++) {
		const struct mapping *x = &a->list.p[i], *y = &b->list.p[i];

		if (x->start != y->start || x->limit != y->limit || x->offset != y->offset ||
		    x->file != y->file || !str_eq(x->name, y->name))
			return false;
	}
	return true;
}

void mapset_keep_text(struct mapset *set, const struct mapset *same)
{
	set->text = same->text;
	set->asked = same->asked;
	for (size_t i = 0; i < set->list.n; i++)
		set->list.p[i].line = same->list.p[i].line;
}

struct mapset *mapset_copy(const struct mapset *set)
{
	struct mapset *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return NULL;
	copy->exec_pages = set->exec_pages;
	copy->whole = set->whole;
	copy->generation = set->generation;
	copy->exe = arena_str(&copy->arena, set->exe); /* none where memory is short */
	vec_each (&set->list, m) {
		struct mapping one = *m;

		if (m->name.n)
			one.name = arena_str(&copy->arena, m->name);
		if ((m->name.n && !one.name.p) || !vec_push(&copy->list, one)) {
			mapset_free(copy);
			return NULL;
		}
		if (one.file)
			mapped_file_retain(one.file);
	}
	vec_each (&set->claims, c)
		if (!vec_push(&copy->claims, *c)) {
			mapset_free(copy);
			return NULL;
		}
	return copy;
}

void mapset_forget_claims(struct mapset *set)
{
	for (; set; set = set->older) {
		set->claimed = false;
		set->claims.n = 0;
	}
}

bool mapping_has_jit_source(const struct mapping *m)
{
	return m->file && m->offset == m->start && !mapped_file_is_elf(m->file);
}

/* The source of JIT symbols: addresses in it are the process's own. */
static struct mapped_file *jit_source_of(const struct mapset *set)
{
	vec_each (&set->list, m)
		if (mapping_has_jit_source(m))
			return m->file;
	return NULL;
}

void mapset_keep_jit_sources(struct mapset *set, const struct mapset *older)
{
	struct mapped_file *source = jit_source_of(older);

	vec_each (&set->list, m) {
		if (!source || m->file || !str_starts(m->name, STR("[anon")))
			continue;
		mapped_file_retain(source);
		m->file = source;
		m->offset = m->start;
		m->name = STR_NULL;
	}
}

const struct mapping *mapset_find(const struct mapset *set, uint64_t pc)
{
	const struct mapping *m = NULL;

	for (; set && !m; set = set->older)
		m = find_in(set, pc);
	return m;
}

const struct mapping *mapset_find_exec(const struct mapset *set, uint32_t exec, uint64_t pc)
{
	const struct mapping *m = NULL;

	for (const struct mapset *s = set; s && !m && exec; s = s->older)
		if (sampler_stack_exec(s->generation) == exec)
			m = find_in(s, pc);
	return m ? m : mapset_find(set, pc);
}

uint64_t mapping_address(const struct mapping *m, uint64_t pc)
{
	check(pc >= m->start && pc < m->limit);
	if (m->file)
		return mapped_file_address(m->file, pc - m->start + m->offset);
	if (str_is(m->name, "[vdso]"))
		return pc - m->start;
	return pc;
}
