/* SPDX-License-Identifier: Apache-2.0 */
/* See file-unwind.h. */
#include "ebpf/unwinding/file-unwind.h"

#include "ebpf/unwind-store/mapped-rows.h"
#include "ebpf/kernel/session.h"

#include "base/hash.h"

#include <stdlib.h>

static void close_file(struct file_unwind_file *f)
{
	elf_row_finder_close(f->finder);
	if (f->file)
		mapped_file_release(f->file);
	*f = (struct file_unwind_file){0};
}

void file_unwind_free(struct file_unwind *e)
{
	for (size_t i = 0; i < FILE_UNWIND_FILES; i++)
		close_file(&e->files[i]);
	free(e->rows);
	e->rows = NULL;
}

void file_unwind_rest(struct file_unwind *e)
{
	if (e->n_walks == 0)
		file_unwind_free(e);
	e->n_walks = 0;
}

/* A mapped file, or the vDSO, opened if it is new. */
static const struct file_unwind_file *
file_of(struct file_unwind *e, const struct andiron_extension *objects, struct mapped_file *file)
{
	struct file_unwind_file *f;
	int fd;

	for (size_t i = 0; i < FILE_UNWIND_FILES; i++)
		if (e->files[i].id && e->files[i].file == file)
			return &e->files[i];
	f = &e->files[e->n_opened++ % FILE_UNWIND_FILES];
	close_file(f);
	f->id = e->n_opened;
	f->file = file;
	if (file)
		mapped_file_retain(file);
	fd = mapped_rows_open(objects, file);
	if (fd >= 0 && elf_row_finder_open(&f->finder, fd) != 0)
		f->finder = NULL;
	return f;
}

struct file_unwind_way {
	struct file_unwind *unwind;
	const struct andiron_extension *objects;
	const struct mapset *maps;
};

/* The row of an address of the file; its rule is 0 where there is none. */
static const struct elf_row *row_at(struct file_unwind *e, const struct file_unwind_file *f,
				    uint64_t address)
{
	struct file_unwind_row *row = &e->rows[hash_u64(address + f->id) & (FILE_UNWIND_ROWS - 1)];

	if (row->id == f->id && row->row.address == address)
		return &row->row;
	row->id = f->id;
	if (elf_row_finder_find(f->finder, address, &row->row) != 1)
		row->row = (struct elf_row){.address = address};
	return &row->row;
}

static uint64_t find(void *context, uint64_t at, uint64_t *ret_aux)
{
	struct file_unwind_way *way = context;
	const struct mapping *m = mapset_find(way->maps, at);
	const struct file_unwind_file *f;
	const struct elf_row *row;

	if (!m || !(m->file || str_is(m->name, "[vdso]")))
		return 0;
	f = file_of(way->unwind, way->objects, m->file);
	if (!f->finder)
		return 0;
	row = row_at(way->unwind, f, mapping_address(m, at));
	*ret_aux = row->aux;
	return row->rule;
}

bool file_unwind_walk(struct file_unwind *e, const struct andiron_extension *objects,
		      const struct mapset *maps, const struct sampler_snapshot *snapshot,
		      const struct walk_stack stacks[SAMPLER_COPIES], struct andiron_walk *w)
{
	struct mapset own = *maps;
	struct file_unwind_way way = {e, objects, &own};
	struct walk_tables tables = {.context = &way, .find = find, .pc_mask = walk_pc_mask()};

	own.older = NULL;
	e->n_walks++;
	if (!e->rows)
		e->rows = calloc(FILE_UNWIND_ROWS, sizeof(*e->rows));
	if (!e->rows)
		return false;
	walk_snapshot(&tables, snapshot, stacks, 0, w);
	return w->end == UNWIND_END_COMPLETE || w->end == UNWIND_END_CUT;
}
