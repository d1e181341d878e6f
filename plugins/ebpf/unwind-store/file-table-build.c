/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file's rows, made into its table. Rows are streamed into pages, and pages into slabs, so
 * nothing of a table's size is ever held. When the budget ends in the middle, what was made is
 * given back at once (nobody has seen it), the rest of the rows only tells how much it would have
 * been, and the file is partial from then on.
 */
#include "ebpf/unwind-store/file-tables.h"

#include "base/check.h"
#include "base/clock.h"
#include "unwind/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifdef __aarch64__
#define X86 false
#else
#define X86 true
#endif

#define BACKOFF_MAX 64u
/* A millisecond's worth or two. */
#define MEANWHILE_ROWS 2048
/* No file needs more; who wants more may not take them from all others. */
#define FILE_RULES_MAX (UNWIND_RULES_MAX / 4)

struct build {
	struct files *t;
	struct file *f;
	struct pages_maker *maker;
	struct file_table fresh;
	VEC(uint32_t) refs; /* what becomes the list of pages */
	size_t n_kept;      /* pages of the former table */
	uint64_t first;     /* address of the first row with a rule */
	uint64_t need, lost;
	bool begun;
	bool partial; /* only what is wanted */
	bool full;    /* the budget has ended */
	bool starved; /* so have the numbers of rules */
};

static void look_meanwhile(const struct files *t)
{
	if (t->meanwhile)
		t->meanwhile(t->meanwhile_context);
}

static void on_meanwhile(void *context)
{
	look_meanwhile(((struct build *)context)->t);
}

static int on_row(void *context, const struct elf_row *row)
{
	struct build *b = context;

	if (++b->t->n_rows % MEANWHILE_ROWS == 0)
		look_meanwhile(b->t);
	if (!b->begun && row->rule) {
		b->begun = true;
		b->first = row->address & ~((UINT64_C(1) << UNWIND_PAGE_BITS) - 1);
	}
	b->fresh.aux |= row->rule && row->aux;
	return pages_add(b->maker, row);
}

static int32_t on_number(void *context, uint64_t rule, uint64_t aux)
{
	struct build *b = context;
	int32_t number;

	if (b->full)
		return 0;
	if (b->fresh.rules.n >= FILE_RULES_MAX)
		return rulebook_find(b->t->rules, rule, aux);
	number = rulebook_number(b->t->rules, rule, aux);
	b->starved |= number == -ENOSPC;
	return number;
}

static int retain_rule(struct build *b, uint16_t number)
{
	uint64_t *word = &b->t->known[number / 64], bit = UINT64_C(1) << number % 64;

	if (number == 0 || *word & bit)
		return 0;
	if (!vec_push(&b->fresh.rules, number))
		return -ENOMEM;
	rulebook_retain(b->t->rules, number);
	*word |= bit;
	return 0;
}

/* The table's list of pages, up to a page. */
static int reach(struct build *b, uint32_t number)
{
	size_t n = b->refs.n;

	if (number < n)
		return 0;
	if (!vec_reserve(&b->refs, number + 1 - n))
		return -ENOMEM;
	memset(b->refs.p + n, 0, (number + 1 - n) * sizeof(*b->refs.p));
	b->refs.n = number + 1;
	return 0;
}

/* A chunk with these bytes. */
static int put_chunk(struct files *t, const void *bytes, size_t n, uint32_t *ret)
{
	uint32_t ref;
	int r = files_alloc(t, n, &ref);
	void *p;

	if (r != 0)
		return r;
	p = slabs_at(t->slabs, ref);
	if (!p) {
		slabs_free(t->slabs, ref, n);
		return -ENOMEM;
	}
	memcpy(p, bytes, n);
	*ret = ref;
	return 0;
}

/* Gives back what nobody has seen; pages kept from the former table stay. */
static void drop_fresh(struct build *b)
{
	for (size_t i = b->n_kept; i < b->fresh.pages.n; i++)
		slabs_free(b->t->slabs, b->fresh.pages.p[i].ref, b->fresh.pages.p[i].n);
	vec_each(&b->fresh.rules, number)
		rulebook_release(b->t->rules, *number);
	if (b->fresh.directory)
		slabs_free(b->t->slabs, b->fresh.directory, b->fresh.n_pages * sizeof(uint32_t));
	vec_free(&b->fresh.pages);
	vec_free(&b->fresh.rules);
	b->fresh.directory = 0;
	b->n_kept = 0;
	b->refs.n = 0;
}

static int keep_page(struct build *b, uint32_t number, const void *bytes, size_t n)
{
	struct file_page page = {number, 0, (uint32_t)n};
	struct unwind_page head;
	int r;

	if (!vec_reserve(&b->fresh.pages, 1))
		return -ENOMEM;
	r = put_chunk(b->t, bytes, n, &page.ref);
	if (r != 0)
		return r;
	b->fresh.pages.p[b->fresh.pages.n++] = page;
	b->refs.p[number] = page.ref;
	memcpy(&head, bytes, sizeof(head));
	b->fresh.rows += head.n_rows;
	return 0;
}

static int on_page(void *context, uint32_t number, const void *bytes, size_t n,
		   const uint16_t *rules, size_t n_rules)
{
	struct build *b = context;
	uint64_t address = b->first + ((uint64_t)number << UNWIND_PAGE_BITS);
	int r = 0;

	b->need += n;
	if (b->full)
		return 0;
	r = reach(b, number);
	if (r != 0)
		return r;
	if (b->refs.p[number] || (b->partial && !file_wants(b->f, address))) {
		rulebook_settle(b->t->rules); /* those of this page */
		return 0;
	}
	for (size_t i = 0; r == 0 && i < n_rules; i++)
		r = retain_rule(b, rules[i]);
	if (r == 0)
		r = keep_page(b, number, bytes, n);
	if (r != -ENOSPC)
		return r;
	b->full = true;
	if (!b->partial)
		drop_fresh(b);
	return 0;
}

/* One row: the caller's frame is where the frame pointer points. */
static int make_frames_page(struct files *t)
{
#ifdef __aarch64__
	uint64_t rule = unwind_rule(UNWIND_ARM_FP, UNWIND_CFA_REG, UNWIND_RA_FP, -2, 16);
#else
	uint64_t rule = unwind_rule(UNWIND_X86_RBP, UNWIND_CFA_REG, UNWIND_RA_CFA, -2, 16);
#endif
	struct {
		struct unwind_page head;
		struct unwind_block block;
		uint16_t rule;
		uint8_t gap, number;
	} page = {.head = {1, 1, 1}};
	int32_t number = rulebook_number(t->rules, rule, unwind_aux_lost(X86));
	int r;

	_Static_assert(sizeof(page) == FILES_FRAMES_BYTES, "as the walker reads it");
	if (number < 0)
		return number;
	rulebook_retain(t->rules, (uint16_t)number);
	page.rule = (uint16_t)number;
	r = put_chunk(t, &page, sizeof(page), &t->frames_page);
	if (r == 0)
		t->frames_rule = (uint16_t)number;
	else
		rulebook_release(t->rules, (uint16_t)number);
	return r;
}

/* A partial table says of all else in its text that it is walked by frame pointers. */
static int fill_holes(struct build *b)
{
	int r = b->t->frames_page ? 0 : make_frames_page(b->t);

	for (size_t i = 0; r == 0 && i < b->refs.n; i++)
		if (!b->refs.p[i])
			b->refs.p[i] = b->t->frames_page;
	return r;
}

/* Pages that are there already need not be made again. */
static int keep_former(struct build *b)
{
	const struct file_table *table = &b->f->table;
	int r = 0;

	vec_each(&table->pages, p) {
		r = reach(b, p->number);
		if (r != 0 || !vec_push(&b->fresh.pages, *p))
			return -ENOMEM;
		b->refs.p[p->number] = p->ref;
		b->n_kept++;
	}
	vec_each(&table->rules, number)
		if (retain_rule(b, *number) != 0)
			return -ENOMEM;
	b->fresh.rows = table->rows;
	return 0;
}

static int read_rows(struct build *b)
{
	const struct elf_rows_options options = {.aux = b->f->want_aux, .meanwhile = on_meanwhile};
	struct pages_stats stats = {0};
	struct error err = ERROR_NULL;
	uint64_t base;
	int r;

	b->maker = pages_new(on_number, on_page, b);
	if (!b->maker)
		return -ENOMEM;
	r = b->t->read(b->t->read_context, b->f->image, &options, on_row, b, &err);
	if (r == 0)
		r = pages_finish(b->maker, &base);
	pages_get_stats(b->maker, &stats);
	pages_free(b->maker);
	check(r != 0 || stats.pages == 0 || base == b->first);
	if (r == 0 && b->n_kept && base != b->f->table.base)
		r = -ESTALE; /* another file than it was */
	b->fresh.base = b->first;
	if (!b->partial)
		b->fresh.rows = stats.rows; /* without those that only repeat */
	b->lost = stats.lost;
	return r == 0 && stats.pages == 0 ? -ENODATA : r;
}

/* The list, and with it the whole, of which the walker knows nothing yet. */
static int finish(struct build *b)
{
	struct file_table *fresh = &b->fresh;
	int r = b->partial ? fill_holes(b) : 0;

	if (r != 0)
		return r;
	fresh->n_pages = (uint32_t)b->refs.n;
	r = put_chunk(b->t, b->refs.p, b->refs.n * sizeof(*b->refs.p), &fresh->directory);
	fresh->bytes = b->refs.n * sizeof(*b->refs.p);
	vec_each(&fresh->pages, p)
		fresh->bytes += p->n;
	return r;
}

static void refuse(struct files *t, struct file *f, int r)
{
	if (r == -ENOMEM) { /* it may go better then */
		t->n_no_memory++;
		f->retry = t->now + 1;
		return;
	}
	if (f->state == FILE_WHOLE || f->state == FILE_PARTIAL)
		return; /* what is there stays right */
	f->state = FILE_REFUSED;
	f->refusal = r == -ENODATA                    ? UNWIND_REFUSED_NO_ROWS
		     : r == -ENOEXEC || r == -ENOTSUP ? UNWIND_REFUSED_NOT_ELF
		     : r == -E2BIG                    ? UNWIND_REFUSED_TOO_LARGE
						      : UNWIND_REFUSED_UNREADABLE;
}

/* 0: there is a fresh table; 1: the budget has no room for it; or a negative errno. */
static int make(struct build *b, struct files *t, struct file *f, bool partial)
{
	int r = 0;

	*b = (struct build){.t = t, .f = f, .partial = partial, .fresh = {.aux = f->want_aux}};
	memset(t->known, 0, sizeof(t->known));
	/* Pages without auxiliary words would say that all registers are kept. */
	if (partial && (f->table.aux || !f->want_aux))
		r = keep_former(b);
	if (r == 0)
		r = read_rows(b);
	if (r == 0)
		f->need = b->need;
	if (r == 0 && (!b->full || (partial && b->fresh.pages.n > b->n_kept)))
		r = finish(b);
	else if (r == 0)
		r = 1;
	if (r == -ENOSPC)
		r = 1;
	if (r != 0)
		drop_fresh(b);
	rulebook_settle(t->rules);
	vec_free(&b->refs);
	return r;
}

/* The same; where numbers of rules have run out tables make room that are not hit, once. */
static int try(struct build *b, struct files *t, struct file *f, bool partial)
{
	int r = make(b, t, f, partial);

	if (r < 0 || !b->starved || !files_make_room(t))
		return r;
	drop_fresh(b);
	rulebook_settle(t->rules);
	return make(b, t, f, partial);
}

/* Puts the fresh table where the former one was. */
static void accept(struct build *b)
{
	struct file *f = b->f;

	check(f->former.directory == 0);
	f->former = f->table;
	f->table = b->fresh;
	if (b->n_kept)
		f->former.pages.n = 0;
	f->state = b->partial ? FILE_PARTIAL : FILE_WHOLE;
	b->t->n_lost += b->lost;
	f->made = ++b->t->n_made;
	f->used = b->t->now;
	if (!b->partial)
		vec_free(&f->wanted);
}

void files_build(struct files *t, struct file *f)
{
	int64_t start = clock_mono();
	bool partial = f->state == FILE_PARTIAL && f->need > files_room(t);
	uint16_t before = file_kind(f);
	struct build b;
	int r;

	check(!t->busy && f->former.directory == 0);
	look_meanwhile(t);
	t->busy = f;
	f->news = false;
	r = try(&b, t, f, partial);
	if (r == 1 && !partial) {
		f->state = FILE_PARTIAL;
		if (f->wanted.n)
			r = try(&b, t, f, true);
	}
	t->busy = NULL;
	t->n_read++;
	t->read_ns += (uint64_t)(clock_mono() - start);
	if (r == 0)
		accept(&b);
	if (r < 0)
		refuse(t, f, r);
	if (f->state == FILE_PARTIAL || f->state == FILE_REFUSED) {
		f->retry = t->now + f->backoff;
		f->backoff = f->backoff < BACKOFF_MAX ? 2 * f->backoff : BACKOFF_MAX;
	}
	/* By frame pointers is an answer, too, and now there is another. */
	f->changed |= r == 0 || file_kind(f) != before;
	f->other |= r == 0 && before != UNWIND_KIND_UNKNOWN;
}
