/* SPDX-License-Identifier: Apache-2.0 */
/* See mapping-tables.h. */
#include "ebpf/unwind-store/mapping-tables.h"

#include "base/check.h"
#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void mapping_tables_init(struct mapping_tables *t, struct files *files, struct unwind_set *rows,
			 struct unwind_chain *chains)
{
	t->files = files;
	t->slabs = files->slabs;
	t->rows = rows;
	t->chains = chains;
	t->taken[0] = 1; /* 0 is no id */
	t->n_taken = 1;
}

static bool bit(const uint64_t *set, uint32_t id)
{
	return set[id / 64] >> id % 64 & 1;
}

static void set_bit(uint64_t *set, uint32_t id)
{
	set[id / 64] |= UINT64_C(1) << id % 64;
}

/* 0 if all are taken. */
static uint16_t free_id(const struct mapping_tables *t)
{
	uint32_t id = t->last_id;

	if (t->n_taken == MAPPING_TABLE_IDS)
		return 0;
	do
		id = (id + 1) % MAPPING_TABLE_IDS;
	while (bit(t->taken, id));
	return (uint16_t)id;
}

static uint16_t take_id(struct mapping_tables *t)
{
	uint16_t id = free_id(t);

	/* Those of 8,192 address spaces are few; the others wait to be forgotten. */
	if (id == 0 && t->files->host.reclaim(t->files->host.context) == 0)
		id = free_id(t);
	if (id) {
		set_bit(t->taken, id);
		t->n_taken++;
		t->last_id = id;
	}
	return id;
}

static void give_id(struct mapping_tables *t, uint16_t id)
{
	if (!id)
		return;
	check(bit(t->taken, id) && !bit(t->retired, id) && !bit(t->cached, id));
	set_bit(t->retired, id);
	t->n_retired++;
}

/* A word of a chain does not say whose it is. */
static void clear_chains(struct mapping_tables *t)
{
	for (uint32_t i = 0; i < UNWIND_CHAINS; i++)
		for (int k = 0; k < UNWIND_CHAIN_WORDS; k++)
			__atomic_store_n(&t->chains[i].words[k], 0, __ATOMIC_RELAXED);
}

/* An entry that is torn by a program that writes it just now is none. */
static void clear_rows(struct mapping_tables *t)
{
	for (uint32_t i = 0; i < UNWIND_SETS; i++) {
		struct unwind_set *set = &t->rows[i];

		for (int way = 0; way < UNWIND_WAYS; way++) {
			uint64_t key = __atomic_load_n(&set->check[way], __ATOMIC_RELAXED) ^
				       __atomic_load_n(&set->rule[way], __ATOMIC_RELAXED);

			if (key == 0 || !bit(t->cached, (uint32_t)(key >> 48)))
				continue;
			__atomic_store_n(&set->check[way], 0, __ATOMIC_RELAXED);
			__atomic_store_n(&set->rule[way], 0, __ATOMIC_RELAXED);
		}
	}
}

void mapping_tables_reclaim(struct mapping_tables *t)
{
	for (uint32_t i = 0; i < MAPPING_TABLE_IDS / 64; i++)
		t->cached[i] |= t->retired[i];
	memset(t->retired, 0, sizeof(t->retired));
	t->n_cached += t->n_retired;
	t->n_retired = 0;
	if (t->n_cached < MAPPING_TABLE_IDS / 2)
		return;
	clear_rows(t);
	clear_chains(t);
	for (uint32_t i = 0; i < MAPPING_TABLE_IDS / 64; i++)
		t->taken[i] &= ~t->cached[i];
	memset(t->cached, 0, sizeof(t->cached));
	check(t->n_taken > t->n_cached); /* 0 is taken forever */
	t->n_taken -= t->n_cached;
	t->n_cached = 0;
}

uint64_t mapping_table_word(const struct mapping_table *v)
{
	return v->chunk ? unwind_space_word(v->chunk, v->n, v->id) : 0;
}

static size_t chunk_bytes(size_t n)
{
	return n * (sizeof(uint64_t) + sizeof(struct unwind_mapping));
}

static void retire_chunk(struct mapping_tables *t, struct mapping_table *v)
{
	if (v->chunk)
		slabs_retire(t->slabs, v->chunk, chunk_bytes(v->n));
	v->chunk = v->n = 0;
}

static int put_entry(struct mapping_tables *t, uint64_t start, uint64_t end, uint16_t kind)
{
	struct mapping_table_entry entry = {start, {.end = end, .kind = kind}};

	if (start >= end)
		return 0;
	check(t->entries.n == 0 || t->entries.p[t->entries.n - 1].mapping.end <= start);
	if (t->entries.n == UNWIND_MAPPINGS_MAX) {
		t->n_cut++;
		return 0;
	}
	return vec_push(&t->entries, entry) ? 0 : -ENOMEM;
}

static uint64_t clip(uint64_t value, uint64_t from, uint64_t to)
{
	return value < from ? from : value > to ? to : value;
}

/* A part of a mapping that the file's table covers, if it has one: `from` and `to` are the file's
 * addresses. What it has no pages for is left before and behind. */
static int put_code(struct mapping_tables *t, const struct mapping_table_source *s, uint64_t from,
		    uint64_t to)
{
	const struct file_table *table = &s->file->table;
	uint64_t bias = s->start - s->address; /* modulo 2^64, as is all that it is added to */
	uint64_t first = from, last = from;
	size_t n;
	int r;

	if (!table->directory)
		return put_entry(t, from + bias, to + bias, file_kind(s->file));
	first = clip(table->base, from, to);
	last = clip(table->base + ((uint64_t)table->n_pages << UNWIND_PAGE_BITS), first, to);
	r = put_entry(t, from + bias, first + bias, UNWIND_KIND_UNKNOWN);
	n = t->entries.n;
	if (r == 0)
		r = put_entry(t, first + bias, last + bias, file_kind(s->file));
	if (r == 0 && t->entries.n > n) {
		t->entries.p[n].mapping.bias = bias + table->base;
		t->entries.p[n].mapping.pages = table->directory;
	}
	return r == 0 ? put_entry(t, last + bias, to + bias, UNWIND_KIND_UNKNOWN) : r;
}

/* Says who walks the entries from the n-th on. How their code is walked without a runtime stays
 * there: its program may ask for that. */
static void claim_entries(struct mapping_tables *t, size_t n, uint16_t slot)
{
	for (size_t i = n; i < t->entries.n; i++)
		t->entries.p[i].mapping.slot = slot;
}

/* A mapping of a file: what runtimes have claimed, and its own code between. */
static int put_file(struct mapping_tables *t, const struct mapping_table_source *s)
{
	uint64_t at = s->address, limit = s->address + (s->limit - s->start);
	int r = 0;

	for (size_t i = 0; r == 0 && at < limit && i < s->file->claims.n; i++) {
		const struct code_claim *c = &s->file->claims.p[i];
		uint64_t from = clip(c->from, at, limit), to = clip(c->to, at, limit);
		size_t n;

		if (from >= to)
			continue;
		r = put_code(t, s, at, from);
		n = t->entries.n;
		if (r == 0)
			r = put_code(t, s, from, to);
		claim_entries(t, n, c->slot);
		at = to;
	}
	return r == 0 ? put_code(t, s, at, limit) : r;
}

static bool is_table(uint16_t kind)
{
	return kind == UNWIND_KIND_TABLE || kind == UNWIND_KIND_AUX;
}

static int lay_out(struct mapping_tables *t, const struct mapping_table *v)
{
	int r = 0;

	t->entries.n = 0;
	for (size_t i = 0; r == 0 && i < v->sources.n; i++) {
		const struct mapping_table_source *s = &v->sources.p[i];
		size_t n = t->entries.n;

		r = s->file ? put_file(t, s) : put_entry(t, s->start, s->limit, (uint16_t)s->kind);
		if (s->slot)
			claim_entries(t, n, (uint16_t)s->slot);
	}
	return r;
}

static int alloc_chunk(struct mapping_tables *t, const struct mapping_table *v, uint32_t *ret)
{
	uint64_t evictions;
	int r;

	for (;;) {
		evictions = t->files->n_evictions;
		r = lay_out(t, v);
		if (r != 0)
			return r;
		if (t->entries.n == 0)
			return -ENOENT;
		r = files_alloc(t->files, chunk_bytes(t->entries.n), ret);
		/* Room may have been made by a file that this table shows. */
		if (r != 0 || evictions == t->files->n_evictions)
			return r;
		slabs_free(t->slabs, *ret, chunk_bytes(t->entries.n));
	}
}

/* Writes the table as it is now; without room it says nothing. */
static void write_chunk(struct mapping_tables *t, struct mapping_table *v)
{
	size_t n;
	uint32_t chunk;
	uint8_t *p = NULL;

	if (!v->id)
		v->id = take_id(t);
	if (v->id && alloc_chunk(t, v, &chunk) == 0) {
		n = t->entries.n;
		p = slabs_at(t->slabs, chunk);
		if (!p)
			slabs_free(t->slabs, chunk, chunk_bytes(n));
	}
	retire_chunk(t, v);
	if (!p)
		return;
	for (size_t i = 0; i < n; i++) {
		memcpy(p + i * sizeof(uint64_t), &t->entries.p[i].start, sizeof(uint64_t));
		memcpy(p + n * sizeof(uint64_t) + i * sizeof(struct unwind_mapping),
		       &t->entries.p[i].mapping, sizeof(struct unwind_mapping));
	}
	check(n > 0 && n <= UNWIND_MAPPINGS_MAX);
	v->chunk = chunk;
	v->n = (uint32_t)n;
}

static void hold_sources(const struct mapping_table *v, int by)
{
	vec_each (&v->sources, s) {
		check(by > 0 || !s->file || s->file->n_users > 0);
		if (s->file)
			s->file->n_users += (uint32_t)by;
	}
}

static uint64_t hash_sources(const struct mapping_table_source *p, size_t n)
{
	return hash_bytes(p, n * sizeof(*p));
}

struct sought {
	const struct mapping_tables *t;
	const struct mapping_table_source *p;
	size_t n;
};

static bool same_sources(const void *context, uint32_t position)
{
	const struct sought *sought = context;
	const struct mapping_table *v = sought->t->all.p[position];

	return v->sources.n == sought->n &&
	       (sought->n == 0 ||
		memcmp(v->sources.p, sought->p, sought->n * sizeof(*sought->p)) == 0);
}

void mapping_table_release(struct mapping_tables *t, struct mapping_table *v)
{
	struct mapping_table *last = t->all.p[t->all.n - 1];

	check(v->n_refs > 0);
	if (--v->n_refs > 0)
		return;
	check(t->all.p[v->position] == v && index_remove(&t->index, v->hash, v->position));
	if (last != v) {
		index_move(&t->index, last->hash, last->position, v->position);
		last->position = v->position;
		t->all.p[v->position] = last;
	}
	t->all.n--;
	retire_chunk(t, v);
	give_id(t, v->id);
	hold_sources(v, -1);
	vec_free(&v->sources);
	free(v);
}

void mapping_tables_fini(struct mapping_tables *t)
{
	check(t->all.n == 0);
	vec_free(&t->all);
	vec_free(&t->scratch);
	vec_free(&t->entries);
	index_free(&t->index);
}

/* Memory of no file, next to the one before: one mapping, however often it has grown. */
static bool continues(const struct mapping_table_source *last, const struct mapping_table_source *s)
{
	return !last->file && !s->file && last->kind == s->kind && last->slot == s->slot &&
	       last->limit == s->start;
}

/* Code of which not even frame pointers can be said. */
static bool is_unknown(struct str name)
{
	return str_is(name, "[vsyscall]") || str_is(name, MAPS_UNKNOWN_FILE);
}

/* Adds [from, limit) of a source, if that is any. */
static int add_part(struct mapping_tables *t, const struct mapping_table_source *s, uint64_t from,
		    uint64_t limit)
{
	struct mapping_table_source part = *s;

	if (from >= limit)
		return 0;
	part.start = from;
	part.limit = limit;
	if (s->file)
		part.address += from - s->start;
	if (t->scratch.n && continues(&t->scratch.p[t->scratch.n - 1], &part))
		t->scratch.p[t->scratch.n - 1].limit = limit;
	else if (!vec_push(&t->scratch, part))
		return -ENOMEM;
	return 0;
}

/* Adds what of a source is not claimed. */
static int add_source(struct mapping_tables *t, const struct mapset *set,
		      const struct mapping_table_source *s)
{
	uint64_t at = s->start;
	int r = 0;

	vec_each (&set->claims, c) {
		if (r != 0 || c->from >= s->limit)
			break;
		if (c->to <= at)
			continue;
		r = add_part(t, s, at, c->from);
		at = c->to;
	}
	return r == 0 ? add_part(t, s, at, s->limit) : r;
}

static int by_start(const void *a, const void *b)
{
	const struct mapping_table_source *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Addresses that runtimes have claimed, between the sources. Where such code is walked natively it
 * is by frame pointers, as all code of no file. */
static int add_claims(struct mapping_tables *t, const struct mapset *set)
{
	vec_each (&set->claims, c) {
		struct mapping_table_source s = {.start = c->from,
						 .limit = c->to,
						 .kind = UNWIND_KIND_FRAMES,
						 .slot = c->slot};

		if (!vec_push(&t->scratch, s))
			return -ENOMEM;
	}
	if (set->claims.n > 0)
		qsort(t->scratch.p, t->scratch.n, sizeof(*t->scratch.p), by_start);
	return 0;
}

static int read_set(struct mapping_tables *t, const struct mapset *set)
{
	t->scratch.n = 0;
	vec_each (&set->list, m) {
		struct mapping_table_source s = {.start = m->start, .limit = m->limit};
		bool vdso = !m->file && str_is(m->name, "[vdso]");
		int r;

		if (m->file || vdso) {
			s.file = files_get(t->files, m->file);
			if (!s.file)
				return -ENOMEM;
			s.address = mapping_address(m, m->start);
		} else {
			s.kind = is_unknown(m->name) ? UNWIND_KIND_UNKNOWN : UNWIND_KIND_FRAMES;
		}
		r = add_source(t, set, &s);
		if (r != 0)
			return r;
	}
	return add_claims(t, set);
}

/* Whether an address of `a` is the same in `b`. */
static bool agrees(const struct mapping_table_source *a, const struct mapping_table_source *b)
{
	return a->file == b->file && a->kind == b->kind && a->slot == b->slot &&
	       (!a->file || a->address - a->start == b->address - b->start);
}

/* Whether all that the table maps is mapped the same by the sources read. */
static bool only_gains(const struct mapping_tables *t, const struct mapping_table *v)
{
	size_t at = 0;

	vec_each (&v->sources, s) {
		uint64_t reached = s->start;

		while (reached < s->limit) {
			const struct mapping_table_source *now;

			while (at < t->scratch.n && t->scratch.p[at].limit <= reached)
				at++;
			now = &t->scratch.p[at];
			if (at == t->scratch.n || now->start > reached || !agrees(s, now))
				return false;
			reached = now->limit;
		}
	}
	return true;
}

/* Takes the sources read over; the table is in no index. */
static void take_sources(struct mapping_tables *t, struct mapping_table *v, uint64_t hash)
{
	hold_sources(v, -1);
	vec_free(&v->sources);
	v->sources.p = t->scratch.p;
	v->sources.n = t->scratch.n;
	v->sources.capacity = t->scratch.capacity;
	t->scratch.p = NULL;
	t->scratch.n = t->scratch.capacity = 0;
	hold_sources(v, 1);
	v->hash = hash;
	write_chunk(t, v);
}

static struct mapping_table *mapping_table_new(struct mapping_tables *t, uint64_t hash)
{
	struct mapping_table *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->n_refs = 1;
	v->position = (uint32_t)t->all.n;
	if (!vec_push(&t->all, v)) {
		free(v);
		return NULL;
	}
	if (index_add(&t->index, hash, v->position) != 0) {
		t->all.n--;
		free(v);
		return NULL;
	}
	take_sources(t, v, hash);
	return v;
}

/* Room for one more has been made by the removal, so adding cannot fail. */
static void rehash(struct mapping_tables *t, const struct mapping_table *v, uint64_t hash)
{
	check(index_remove(&t->index, v->hash, v->position));
	check(index_add(&t->index, hash, v->position) == 0);
}

int mapping_tables_get(struct mapping_tables *t, struct mapping_table *former,
		       const struct mapset *set, struct mapping_table **ret)
{
	struct sought sought = {.t = t};
	uint32_t position;
	uint64_t hash;
	struct mapping_table *v;

	if (read_set(t, set) != 0)
		return -ENOMEM;
	sought.p = t->scratch.p;
	sought.n = t->scratch.n;
	hash = hash_sources(sought.p, sought.n);
	position = index_find(&t->index, hash, same_sources, &sought);
	if (position != INDEX_NONE) {
		v = t->all.p[position];
		v->n_refs++;
	} else if (former && former->n_refs == 1 && only_gains(t, former)) {
		v = former;
		v->n_refs++;
		rehash(t, v, hash);
		take_sources(t, v, hash);
	} else {
		v = mapping_table_new(t, hash);
	}
	*ret = v;
	return v ? 0 : -ENOMEM;
}

static bool has_file(const struct mapping_table *v, const struct file *f)
{
	vec_each (&v->sources, s)
		if (s->file == f)
			return true;
	return false;
}

void mapping_tables_show(struct mapping_tables *t)
{
	for (size_t i = 0; i < t->all.n; i++) {
		struct mapping_table *v = t->all.p[i];
		bool changed = false, other = false;

		vec_each (&v->sources, s) {
			changed |= s->file && s->file->changed;
			other |= s->file && s->file->other;
		}
		if (!changed)
			continue;
		if (other) {
			give_id(t, v->id);
			v->id = 0;
		}
		write_chunk(t, v);
	}
}

static void hide_in(struct mapping_tables *t, struct mapping_table *v, const struct file *f)
{
	uint8_t *p = v->chunk ? slabs_at(t->slabs, v->chunk) : NULL;
	struct unwind_mapping *mappings;
	uint64_t *starts;
	size_t at = 0;

	if (!p) {
		retire_chunk(t, v);
		return;
	}
	starts = (uint64_t *)(void *)p;
	mappings = (struct unwind_mapping *)(void *)(starts + v->n);
	vec_each (&v->sources, s) {
		while (at < v->n && starts[at] < s->start)
			at++;
		for (; at < v->n && starts[at] < s->limit; at++)
			if (s->file == f && is_table(mappings[at].kind))
				__atomic_store_n(&mappings[at].kind, file_kind(f),
						 __ATOMIC_RELEASE);
	}
}

void mapping_tables_hide(struct mapping_tables *t, const struct file *f)
{
	vec_each (&t->all, v)
		if (has_file(*v, f))
			hide_in(t, *v, f);
}

void mapping_tables_retry(struct mapping_tables *t)
{
	for (size_t i = 0; i < t->all.n; i++)
		if (!t->all.p[i]->chunk)
			write_chunk(t, t->all.p[i]);
}
