/* SPDX-License-Identifier: Apache-2.0 */
/* See file-tables.h. How a table is made stands in file-table-build.c. */
#include "ebpf/unwind-store/file-tables.h"

#include "base/check.h"
#include "base/search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A file that nobody maps is kept for so many intervals: programs are started again. */
#define KEEP_INTERVALS 40
/* More than these pages of a partial table are not asked for at once. */
#define WANTED_MAX 16384u
/* At least this share of the budget makes room at a time. */
#define EVICT_SHARE 16

int files_init(struct files *t, const struct files_host *host, struct slabs *slabs,
	       struct rule_table *rules, const struct unwind_options *options)
{
	*t = (struct files){
		.host = *host,
		.slabs = slabs,
		.rules = rules,
		.reader = file_reader_new(options->read, options->read_context),
		.now = 2, /* so that "never" is not "recently" */
	};
	return t->reader ? 0 : -ENOMEM;
}

struct file *files_get(struct files *t, struct mapped_file *mapped)
{
	struct file *f = mapped ? mapped_file_unwind(mapped) : t->vdso;

	if (f)
		return f;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->position = (uint32_t)t->all.n;
	f->seen = t->now;
	f->backoff = 1;
	if (!vec_push(&t->all, f)) {
		free(f);
		return NULL;
	}
	f->mapped = mapped;
	if (mapped) {
		mapped_file_retain(mapped);
		mapped_file_set_unwind(mapped, f);
	} else {
		t->vdso = f;
	}
	return f;
}

uint16_t file_kind(const struct file *f)
{
	if (f->table.directory)
		return f->table.aux ? UNWIND_KIND_AUX : UNWIND_KIND_TABLE;
	return f->state == FILE_UNREAD || f->state == FILE_EVICTED ? UNWIND_KIND_UNKNOWN
								   : UNWIND_KIND_FRAMES;
}

static void table_retire(struct files *t, struct file_table *table)
{
	vec_each (&table->pages, p)
		slabs_retire(t->slabs, p->ref, p->n);
	vec_each (&table->rules, number)
		rule_table_release(t->rules, *number);
	if (table->directory)
		slabs_retire(t->slabs, table->directory, table->n_pages * sizeof(uint32_t));
	vec_free(&table->pages);
	vec_free(&table->rules);
	*table = (struct file_table){0};
}

void files_settle(struct files *t, struct file *f)
{
	table_retire(t, &f->former);
	f->changed = f->other = false;
}

static void forget(struct files *t, struct file *f)
{
	struct file *last = t->all.p[t->all.n - 1];

	check(f->n_users == 0 && t->all.p[f->position] == f);
	table_retire(t, &f->table);
	table_retire(t, &f->former);
	vec_free(&f->requested);
	vec_free(&f->claims);
	last->position = f->position;
	t->all.p[f->position] = last;
	t->all.n--;
	if (f->mapped) {
		mapped_file_set_unwind(f->mapped, NULL);
		mapped_file_release(f->mapped);
	} else {
		t->vdso = NULL;
	}
	free(f);
}

void files_fini(struct files *t)
{
	file_reader_free(t->reader);
	if (t->busy)
		build_drop(&t->build);
	while (t->all.n)
		forget(t, t->all.p[t->all.n - 1]);
	vec_free(&t->all);
	if (t->frames_page)
		slabs_retire(t->slabs, t->frames_page, FILES_FRAMES_BYTES);
	if (t->frames_rule)
		rule_table_release(t->rules, t->frames_rule);
	t->frames_page = t->frames_rule = 0;
}

static bool may_go(const struct files *t, const struct file *f)
{
	return f->table.directory && f != t->busy && f != t->vdso && f->hit + 1 < t->now;
}

static struct file *least_wanted(const struct files *t)
{
	struct file *least = NULL;

	vec_each (&t->all, p) {
		struct file *f = *p;

		if (!may_go(t, f))
			continue;
		if (!least || f->used < least->used ||
		    (f->used == least->used && f->made < least->made))
			least = f;
	}
	return least;
}

static void evict(struct files *t, struct file *f)
{
	struct file_table gone = f->table;

	check(gone.directory && f != t->busy);

	f->table = (struct file_table){0};
	if (f->state == FILE_WHOLE)
		f->state = FILE_EVICTED;
	f->requested.n = 0;
	f->requested_more = false;
	t->host.hide(t->host.context, f);
	table_retire(t, &gone);
	t->n_evictions++;
}

/* Evicts until so much waits to be freed, or nothing may go; then frees it. */
static int evict_some(struct files *t, uint64_t bytes)
{
	struct file *f;

	while (t->slabs->retired_bytes < bytes && (f = least_wanted(t)))
		evict(t, f);
	if (t->slabs->retired_bytes == 0 || t->host.reclaim(t->host.context) != 0)
		return -ENOSPC;
	return 0;
}

static uint64_t share(const struct files *t)
{
	return t->slabs->max * SLABS_COST / EVICT_SHARE;
}

int files_alloc(struct files *t, size_t n, uint32_t *ret_ref)
{
	int r;

	while ((r = slabs_alloc(t->slabs, n, ret_ref)) == -ENOSPC)
		if (evict_some(t, share(t) + n) != 0)
			return -ENOSPC;
	return r;
}

bool files_make_room(struct files *t)
{
	return evict_some(t, t->slabs->retired_bytes + share(t)) == 0;
}

uint64_t files_room(const struct files *t)
{
	uint64_t room = (t->slabs->max - t->slabs->n) * (uint64_t)UNWIND_SLAB_BYTES +
			t->slabs->free.total * 8 + t->slabs->retired_bytes;

	vec_each (&t->all, f)
		if (may_go(t, *f))
			room += (*f)->table.bytes;
	return room;
}

bool files_is_due(const struct files *t, const struct file *f)
{
	if (f->pending || t->now < f->retry)
		return false;
	if (f->state == FILE_UNREAD)
		return f->n_users > 0;
	if (f->want_aux && f->table.directory && !f->table.aux)
		return true;
	/* What could not be opened once may be there again. */
	if (f->state == FILE_REFUSED)
		return f->n_users > 0 && f->refusal == UNWIND_REFUSED_UNREADABLE;
	return (f->state == FILE_EVICTED || f->state == FILE_PARTIAL) && f->requested_more;
}

/* Where in `requested` an address is, or would be. */
static size_t requested_at(const struct file *f, uint64_t page)
{
	return search_partition(f->requested.n, i, f->requested.p[i] < page);
}

bool file_wants(const struct file *f, uint64_t address)
{
	uint64_t page = address >> UNWIND_PAGE_BITS;
	size_t at = requested_at(f, page);

	return at < f->requested.n && f->requested.p[at] == page;
}

void files_hit(struct files *t, struct file *f, uint64_t address)
{
	uint64_t page = address >> UNWIND_PAGE_BITS;
	size_t at;

	f->hit = f->used = t->now;
	if (f->state != FILE_PARTIAL && f->state != FILE_EVICTED)
		return;
	at = requested_at(f, page);
	if ((at < f->requested.n && f->requested.p[at] == page) || f->requested.n >= WANTED_MAX)
		return;
	if (!vec_reserve(&f->requested, 1)) {
		t->n_no_memory++;
		return;
	}
	memmove(f->requested.p + at + 1, f->requested.p + at, (f->requested.n - at) * sizeof(page));
	f->requested.p[at] = page;
	f->requested.n++;
	f->requested_more = true;
}

void files_age(struct files *t)
{
	t->now++;
	for (size_t i = t->all.n; i-- > 0;) {
		struct file *f = t->all.p[i];

		if (f->n_users > 0)
			f->seen = t->now;
		else if (f != t->vdso && !f->pending && f->claims.n == 0 &&
			 t->now - f->seen > KEEP_INTERVALS)
			forget(t, f);
	}
}

int file_claim(struct file *f, const struct code_claim *claims, size_t n)
{
	if (n > f->claims.n && !vec_reserve(&f->claims, n - f->claims.n))
		return -ENOMEM;
	if (n)
		memcpy(f->claims.p, claims, n * sizeof(*claims));
	f->claims.n = n;
	/* What was walked by a table or not at all has another answer now, or none. */
	f->changed = f->other = true;
	return 0;
}
