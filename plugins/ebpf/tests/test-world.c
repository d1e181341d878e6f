/* SPDX-License-Identifier: Apache-2.0 */
/* See test-world.h. */
#include "ebpf/tests/test-world.h"

#include "base/check.h"
#include "testing/test.h"
#include "unwind/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int32_t intern(void *self, int32_t fd, const struct andiron_str *path,
		      const struct andiron_str *reopen, uint64_t *ret_object)
{
	struct world *w = self;

	/* The path is the number. */
	*ret_object = strtoull(path->ptr, NULL, 10) + 1;
	w->n_interned++;
	return 0;
}

static int32_t identify(void *self, uint64_t object, const struct andiron_str *gnu_build_id,
			const struct andiron_str *go_build_id, const struct andiron_str *file_id)
{
	return 0;
}

static void release(void *self, uint64_t object)
{
	((struct world *)self)->n_released++;
}

static const struct andiron_objects service = {
	.size = sizeof(service), .intern = intern, .identify = identify, .release = release};

static struct unwind_entry entry_of(const struct world_file *f, uint64_t row)
{
	uint64_t number = 1 + f->salt + (f->n_rules ? row % f->n_rules : row);

	return (struct unwind_entry){unwind_rule(7, UNWIND_CFA_REG, UNWIND_RA_CFA, UNWIND_FP_SAME,
						 (int32_t)(8 * number)),
				     f->aux ? number : 0};
}

static int read_rows(void *context, const struct mapped_file *file,
		     const struct elf_rows_options *options, elf_row_fn fn, void *fn_context,
		     struct error *err)
{
	struct world *w = context;
	struct world_file *f = &w->files[file ? mapped_file_object(file) - 1 : 0];
	struct elf_row row;
	int r = 0;

	f->n_read++;
	if (f->error)
		return f->error;
	for (uint32_t i = 0; r == 0 && i < f->n; i++) {
		struct unwind_entry e = entry_of(f, i);

		row = (struct elf_row){f->first + i * f->step, e.rule,
				       options->aux ? i + 1 : e.aux};
		r = fn(fn_context, &row);
	}
	row = (struct elf_row){f->first + f->n * f->step, 0, 0};
	return r == 0 ? fn(fn_context, &row) : r;
}

int world_init(struct world *w, uint64_t budget_bytes)
{
	struct andiron_extension objects = {.self = w, .table = &service};
	struct unwind_kernel kernel;
	struct unwind_options options = {budget_bytes, read_rows, w};

	memset(w, 0, sizeof(*w));
	test_kernel_init(&w->kernel);
	kernel = test_kernel_all(&w->kernel);
	w->mapped_files = mapped_files_new(&objects);
	w->store = w->mapped_files ? unwind_new(&kernel, &options) : NULL;
	if (w->store)
		return 0;
	world_fini(w);
	return -ENOMEM;
}

void world_fini(struct world *w)
{
	unwind_free(w->store);
	for (uint32_t i = 0; i < WORLD_FILES; i++)
		if (w->files[i].file)
			mapped_file_release(w->files[i].file);
	mapped_files_free(w->mapped_files);
	expect_eq(w->n_interned, w->n_released);
	test_kernel_fini(&w->kernel);
}

int world_file(struct world *w, uint32_t number, uint64_t first, uint64_t step, uint32_t n)
{
	char name[16];
	int fd = memfd_create("file", MFD_CLOEXEC);

	expect(number < WORLD_FILES && fd >= 0);
	snprintf(name, sizeof(name), "%u", number);
	w->files[number] = (struct world_file){
		.file = mapped_file_get(w->mapped_files, fd, str_of(name), STR_NULL),
		.first = first,
		.step = step,
		.n = n,
		.n_rules = 100,
	};
	close(fd);
	return w->files[number].file ? 0 : -ENOMEM;
}

struct unwind_entry world_entry(const struct world *w, uint32_t number, uint64_t address)
{
	const struct world_file *f = &w->files[number];

	if (address < f->first || address >= f->first + f->n * f->step)
		return (struct unwind_entry){0};
	return entry_of(f, (address - f->first) / f->step);
}

struct sampler_process_key world_key(uint32_t tgid)
{
	return (struct sampler_process_key){.start_ns = 1000000 + tgid * UINT64_C(977),
					    .tgid = tgid};
}

bool world_add(struct world *w, struct mapset *set, uint32_t number, uint64_t start, uint64_t bytes,
	       uint64_t offset)
{
	struct mapping m = {.start = start, .limit = start + bytes, .offset = offset};

	if (number == WORLD_ANON) {
		m.name = STR("[anon]");
	} else if (number == WORLD_VDSO) {
		m.name = STR("[vdso]");
	} else {
		m.file = w->files[number].file;
		check(m.file);
	}
	if (!vec_push(&set->list, m))
		return false;
	if (m.file)
		mapped_file_retain(m.file);
	set->exec_pages += (uint32_t)(bytes / 4096);
	return true;
}

int world_map(struct world *w, uint32_t tgid, const struct mapset *set)
{
	struct sampler_process_key key = world_key(tgid);

	return world_map_layout(w, &key, 1, set);
}

int world_map_layout(struct world *w, const struct sampler_process_key *key, uint64_t layout,
		     const struct mapset *set)
{
	int r;

	while ((r = unwind_map(w->store, key, layout, set)) == 1)
		unwind_wait(w->store);
	return r;
}

void world_tick(struct world *w)
{
	unwind_tick(w->store);
	unwind_wait(w->store);
}

uint64_t world_word(const struct world *w, uint32_t tgid)
{
	struct sampler_process_key key = world_key(tgid);

	return unwind_word(w->store, &key, 1);
}

uint64_t world_by_frames(void)
{
#ifdef __aarch64__
	return unwind_rule(UNWIND_ARM_FP, UNWIND_CFA_REG, UNWIND_RA_FP, -2, 16);
#else
	return unwind_rule(UNWIND_X86_RBP, UNWIND_CFA_REG, UNWIND_RA_CFA, -2, 16);
#endif
}

uint64_t world_step(struct world *w, uint64_t word, uint64_t pc)
{
	uint64_t key = unwind_row_key(pc, (uint32_t)(word >> 48));
	struct unwind_set *set = &w->kernel.rows[unwind_row_set(key, pc)];
	uint32_t way = pc & (UNWIND_WAYS - 1);
	struct unwind_found found;
	uint64_t rule = 0;

	/* A row of one byte. */
	key |= (pc & 0xff) * 0x101;
	for (int i = 0; i < UNWIND_WAYS; i++)
		if (set->rule[i] && (set->check[i] ^ set->rule[i]) == key)
			return set->rule[i];
	if (!test_kernel_walk(&w->kernel, word, pc, &found))
		return 0;
	if (found.kind == UNWIND_KIND_FRAMES)
		rule = world_by_frames();
	else if (found.kind != UNWIND_KIND_UNKNOWN)
		rule = found.entry.rule;
	if (rule && found.kind != UNWIND_KIND_AUX) {
		set->check[way] = key ^ rule;
		set->rule[way] = rule;
	}
	return rule;
}

struct mapset *world_set(void)
{
	return calloc(1, sizeof(struct mapset));
}

struct unwind_found world_find(struct world *w, uint32_t tgid, uint64_t pc)
{
	struct sampler_process_key key = world_key(tgid);
	struct unwind_found found = {0};

	expect_eq(test_kernel_look_up(&w->kernel, &key, pc, &found), 0);
	return found;
}

void world_expect_rows(struct world *w, uint32_t tgid, uint32_t number, uint64_t start,
		       uint64_t bytes, uint64_t offset)
{
	for (uint64_t at = 0; at < bytes; at += 1 + bytes / 3001) {
		struct unwind_found found = world_find(w, tgid, start + at);
		struct unwind_entry e = world_entry(w, number, offset + at);

		if (found.entry.rule != e.rule || found.entry.aux != e.aux)
			test_fail(__FILE__, __LINE__,
				  "file %u at %#llx: rule %#llx, expected %#llx", number,
				  (unsigned long long)(offset + at),
				  (unsigned long long)found.entry.rule, (unsigned long long)e.rule);
	}
}

struct unwind_stats world_stats(const struct world *w)
{
	struct unwind_stats s;

	unwind_get_stats(w->store, &s);
	return s;
}

struct world *world_new(uint64_t budget_bytes)
{
	struct world *w = malloc(sizeof(*w));

	expect_eq(world_init(w, budget_bytes), 0);
	return w;
}

void world_free(struct world *w)
{
	world_fini(w);
	free(w);
}

void world_map_one(struct world *w, uint32_t tgid, uint32_t number, uint64_t start, uint64_t bytes,
		   uint64_t offset)
{
	struct mapset *set = world_set();

	expect(world_add(w, set, number, start, bytes, offset));
	expect_eq(world_map(w, tgid, set), 0);
	mapset_free(set);
}

uint32_t world_id(const struct world *w, uint32_t tgid)
{
	return (uint32_t)(world_word(w, tgid) >> 48);
}

void world_fill(struct world *w, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		/* 60,000 rows are 130 KB: eight files to a slab. */
		world_file(w, i, 0x1000, 9, 60000);
		world_map_one(w, i, i, WORLD_TEXT, 0x90000, 0);
	}
}
