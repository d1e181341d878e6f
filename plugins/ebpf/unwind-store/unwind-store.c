/* SPDX-License-Identifier: Apache-2.0 */
/* See unwind-store.h. This file ties the parts together: what is given up by any of them waits for
 * the same quiesce, before which all words that lead to it have been replaced. */
#include "ebpf/unwind-store/unwind-store.h"

#include "ebpf/unwind-store/file-tables.h"
#include "ebpf/unwind-store/rule-table.h"
#include "ebpf/unwind-store/address-spaces.h"
#include "ebpf/unwind-store/mapping-tables.h"

#include "base/check.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

struct unwind {
	struct unwind_kernel kernel;
	struct files_host host;
	struct slabs slabs;
	struct rule_table rules;
	struct files files;
	struct mapping_tables mapping_tables;
	struct address_spaces address_spaces;
	uint64_t n_quiesces, n_no_memory;
};

static void free_retired(struct unwind *u)
{
	slabs_reclaim(&u->slabs);
	rule_table_reclaim(&u->rules);
	mapping_tables_reclaim(&u->mapping_tables);
	address_spaces_reclaim(&u->address_spaces);
}

static int reclaim(void *context)
{
	struct unwind *u = context;
	int r;

	address_spaces_refresh(&u->address_spaces);
	r = u->kernel.quiesce(u->kernel.context);
	if (r != 0)
		return r;
	u->n_quiesces++;
	free_retired(u);
	return 0;
}

static void hide(void *context, const struct file *f)
{
	struct unwind *u = context;

	mapping_tables_hide(&u->mapping_tables, f);
}

struct unwind *unwind_new(const struct unwind_kernel *kernel, const struct unwind_options *options)
{
	struct unwind *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->kernel = *kernel;
	u->host = (struct files_host){u, reclaim, hide};
	slabs_init(&u->slabs, &kernel->slabs, options->budget_bytes);
	rule_table_init(&u->rules, kernel->rules);
	if (files_init(&u->files, &u->host, &u->slabs, &u->rules, options) != 0) {
		free(u);
		return NULL;
	}
	mapping_tables_init(&u->mapping_tables, &u->files, kernel->rows, kernel->chains);
	address_spaces_init(&u->address_spaces, kernel->spaces, &u->mapping_tables, &u->host);
	return u;
}

void unwind_free(struct unwind *u)
{
	if (!u)
		return;
	address_spaces_fini(&u->address_spaces);
	mapping_tables_fini(&u->mapping_tables);
	files_fini(&u->files);
	free_retired(u);
	check(u->slabs.used_bytes == 0 && u->rules.n == 0);
	slabs_fini(&u->slabs);
	rule_table_fini(&u->rules);
	free(u);
}

/* Lets the walker see what was read. */
static void show_files(struct unwind *u)
{
	bool any = false;

	vec_each (&u->files.all, f)
		any |= (*f)->changed;
	if (!any)
		return;
	mapping_tables_show(&u->mapping_tables);
	address_spaces_refresh(&u->address_spaces);
	vec_each (&u->files.all, f)
		if ((*f)->changed)
			files_settle(&u->files, *f);
}

bool unwind_reading(const struct unwind *u)
{
	return u->files.n_pending > 0;
}

uint64_t unwind_made(const struct unwind *u)
{
	return u->files.n_made;
}

int unwind_fd(const struct unwind *u)
{
	return file_reader_fd(u->files.reader);
}

bool unwind_take(struct unwind *u)
{
	bool any = files_take(&u->files);

	if (any)
		show_files(u);
	return any;
}

void unwind_wait(struct unwind *u)
{
	struct pollfd p = {.fd = unwind_fd(u), .events = POLLIN};

	while (unwind_reading(u)) {
		poll(&p, 1, -1);
		unwind_take(u);
	}
}

/* Has the files of a mapping table read that nobody has read yet; whether there are any. */
static bool request_unread(struct unwind *u, const struct mapping_table *v)
{
	bool any = false;

	vec_each (&v->sources, s) {
		if (!s->file || s->file->state != FILE_UNREAD)
			continue;
		if (s->file->pending ||
		    (files_is_due(&u->files, s->file) && files_request(&u->files, s->file, 0) == 0))
			any = true;
	}
	return any;
}

int unwind_map(struct unwind *u, const struct sampler_process_key *key, uint64_t generation,
	       const struct mapset *set)
{
	struct mapping_table *former = address_spaces_table(&u->address_spaces, key), *v = NULL;
	int r = mapping_tables_get(&u->mapping_tables, former, set, &v);

	if (r == 0)
		r = request_unread(u, v) ? 1
					 : address_spaces_set(&u->address_spaces, key, generation,
							      set->exec_pages, v);
	if (r != 0) {
		if (v)
			mapping_table_release(&u->mapping_tables, v);
		u->n_no_memory += r == -ENOMEM;
		return r;
	}
	if (former)
		mapping_table_release(&u->mapping_tables, former);
	/* Programs that are started and end by the thousand may not fill slabs until the interval
	 * ends. */
	if (u->slabs.retired_bytes > UNWIND_SLAB_BYTES)
		reclaim(u);
	return 0;
}

void unwind_unmap(struct unwind *u, const struct sampler_process_key *key)
{
	address_spaces_remove(&u->address_spaces, key);
}

void unwind_touch(struct unwind *u, const struct sampler_process_key *key)
{
	address_spaces_touch(&u->address_spaces, key);
}

bool unwind_knows(const struct unwind *u, const struct sampler_process_key *key,
		  uint64_t generation)
{
	return address_spaces_has(&u->address_spaces, key, generation);
}

void unwind_used(struct unwind *u, const struct mapped_file *mapped, uint64_t address)
{
	struct file *f = mapped_file_unwind(mapped);

	if (f)
		files_hit(&u->files, f, address);
}

void unwind_want_registers(struct unwind *u, const struct mapped_file *mapped)
{
	struct file *f = mapped ? mapped_file_unwind(mapped) : u->files.vdso;

	if (f)
		f->want_aux = true;
}

int unwind_claim(struct unwind *u, struct mapped_file *mapped, const struct code_claim *claims,
		 size_t n)
{
	struct file *f;
	int r;

	for (size_t i = 0; i < n; i++)
		if (n > UNWIND_CLAIMS_MAX || claims[i].from >= claims[i].to ||
		    (i > 0 && claims[i].from < claims[i - 1].to))
			return -EINVAL;
	f = files_get(&u->files, mapped);
	r = f ? file_claim(f, claims, n) : -ENOMEM;
	if (r == 0)
		show_files(u);
	return r;
}

static bool anything_retired(const struct unwind *u)
{
	return u->slabs.retired.n > 0 || u->address_spaces.n_retired > 0 ||
	       u->mapping_tables.n_retired > 0 || rule_table_has_idle(&u->rules);
}

void unwind_tick(struct unwind *u)
{
	files_age(&u->files);
	for (size_t i = 0; i < u->files.all.n; i++)
		if (files_is_due(&u->files, u->files.all.p[i]))
			files_request(&u->files, u->files.all.p[i], 0);
	if (anything_retired(u))
		reclaim(u);
	mapping_tables_retry(&u->mapping_tables);
	address_spaces_refresh(&u->address_spaces);
	slabs_rest(&u->slabs);
}

static void count_files(const struct unwind *u, struct unwind_stats *s)
{
	vec_each (&u->files.all, p) {
		const struct file *f = *p;

		s->files += f->state != FILE_UNREAD;
		s->tables += f->table.directory != 0;
		s->aux += f->table.aux;
		s->aux_asked += f->table.aux && f->want_aux;
		s->degraded += f->state == FILE_PARTIAL;
		s->rows += f->table.rows;
		s->bytes += f->table.bytes;
		if (f->state == FILE_REFUSED)
			s->refused[f->refusal]++;
	}
}

void unwind_get_stats(const struct unwind *u, struct unwind_stats *ret)
{
	struct unwind_stats s = {
		.slabs = u->slabs.n,
		.slab_bytes = u->slabs.n * SLABS_COST,
		.rules = u->rules.n,
		.address_spaces = u->address_spaces.n,
		.mapping_tables = u->mapping_tables.all.n,
		.read_ns = u->files.read_ns,
		.rows_lost = u->files.n_lost,
		.evictions = u->files.n_evictions,
		.address_spaces_replaced = u->address_spaces.n_replaced,
		.mappings_cut = u->mapping_tables.n_cut,
		.quiesces = u->n_quiesces,
		.no_memory = u->n_no_memory + u->files.n_no_memory,
	};

	count_files(u, &s);
	vec_each (&u->mapping_tables.all, v)
		s.mappings += (*v)->n;
	*ret = s;
}

uint64_t unwind_word(const struct unwind *u, const struct sampler_process_key *key,
		     uint64_t generation)
{
	const struct mapping_table *v = address_spaces_table(&u->address_spaces, key);

	return v && address_spaces_has(&u->address_spaces, key, generation) ? mapping_table_word(v)
									    : 0;
}

const uint8_t *unwind_slab(struct unwind *u, uint32_t number)
{
	return number < UNWIND_SLABS_MAX && u->slabs.all[number].there
		       ? slabs_base(&u->slabs, number)
		       : NULL;
}
