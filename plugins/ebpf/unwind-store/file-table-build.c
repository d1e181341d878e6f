/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a file's table of the pages that the reader has read (file-reader.h). Pages go into slabs
 * as they come, so nothing of a table's size is held elsewhere; no walker is led to them before the
 * table is whole. When the budget ends in the middle, what was made is given back at once, the rest
 * of the pages only shows how much it would have been, and the file is partial from then on. */
#include "ebpf/unwind-store/file-tables.h"

#include "base/check.h"
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
/* No file needs more; who wants more may not take them from all others. */
#define FILE_RULES_MAX (UNWIND_RULES_MAX / 4)

/* Modes of a request: only what is requested; once more, since numbers of rules had run out. */
#define MODE_PARTIAL 1u
#define MODE_AGAIN   2u

static int32_t number_of(struct build *b, uint64_t rule, uint64_t aux)
{
	int32_t number;

	if (b->fresh.rules.n >= FILE_RULES_MAX)
		return rule_table_find(b->t->rules, rule, aux);
	number = rule_table_number(b->t->rules, rule, aux);
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
	rule_table_retain(b->t->rules, number);
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

void build_drop(struct build *b)
{
	for (size_t i = b->n_kept; i < b->fresh.pages.n; i++)
		slabs_free(b->t->slabs, b->fresh.pages.p[i].ref, b->fresh.pages.p[i].n);
	vec_each (&b->fresh.rules, number)
		rule_table_release(b->t->rules, *number);
	if (b->fresh.directory)
		slabs_free(b->t->slabs, b->fresh.directory, b->fresh.n_pages * sizeof(uint32_t));
	vec_free(&b->fresh.pages);
	vec_free(&b->fresh.rules);
	b->fresh.directory = 0;
	b->n_kept = 0;
	vec_free(&b->refs);
}

static int keep_page(struct build *b, uint32_t number, const void *bytes, size_t n)
{
	struct file_page page = {number, 0, (uint32_t)n};
	struct unwind_page head;
	int r;

	check(number < b->refs.n && n >= sizeof(head));
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

/* Writes the numbers of a page's rules into it, and retains them. */
static int number_rules(struct build *b, const struct file_reading *page)
{
	uint16_t numbers[UNWIND_PAGE_RULES + 1] = {0};
	int r = 0;

	check(page->n_rules < sizeof(numbers) / sizeof(numbers[0]));
	for (size_t i = 0; i < page->n_rules; i++) {
		int32_t number = number_of(b, page->rules[i].rule, page->rules[i].aux);

		if (number == -ENOSPC)
			b->lost += pages_rows_of(page->bytes, page->n, (uint16_t)(i + 1));
		else if (number < 0)
			return number;
		else
			numbers[i + 1] = (uint16_t)number;
	}
	pages_renumber(page->bytes, page->n, numbers);
	for (size_t i = 1; r == 0 && i <= page->n_rules; i++)
		r = retain_rule(b, numbers[i]);
	return r;
}

static int add_page(struct build *b, const struct file_reading *page)
{
	uint64_t address = page->base + ((uint64_t)page->number << UNWIND_PAGE_BITS);
	int r = 0;

	b->need += page->n;
	if (b->full)
		return 0;
	r = reach(b, page->number);
	if (r != 0)
		return r;
	if (b->refs.p[page->number] || (b->partial && !file_wants(b->f, address)))
		return 0;
	r = number_rules(b, page);
	if (r == 0)
		r = keep_page(b, page->number, page->bytes, page->n);
	rule_table_settle(b->t->rules);
	if (r != -ENOSPC)
		return r;
	b->full = true;
	if (!b->partial)
		build_drop(b);
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
	int32_t number = rule_table_number(t->rules, rule, unwind_aux_lost(X86));
	int r;

	_Static_assert(sizeof(page) == FILES_FRAMES_BYTES, "as the walker reads it");
	if (number < 0)
		return number;
	rule_table_retain(t->rules, (uint16_t)number);
	page.rule = (uint16_t)number;
	r = put_chunk(t, &page, sizeof(page), &t->frames_page);
	if (r == 0)
		t->frames_rule = (uint16_t)number;
	else
		rule_table_release(t->rules, (uint16_t)number);
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

	vec_each (&table->pages, p) {
		r = reach(b, p->number);
		if (r != 0 || !vec_push(&b->fresh.pages, *p))
			return -ENOMEM;
		b->refs.p[p->number] = p->ref;
		b->n_kept++;
	}
	vec_each (&table->rules, number)
		if (retain_rule(b, *number) != 0)
			return -ENOMEM;
	b->fresh.rows = table->rows;
	return 0;
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
	vec_each (&fresh->pages, p)
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

/* Puts the fresh table where the former one was. */
static void accept(struct build *b)
{
	struct file *f = b->f;

	check(f->former.directory == 0 && b->fresh.directory);
	f->former = f->table;
	f->table = b->fresh;
	if (b->n_kept)
		f->former.pages.n = 0;
	f->state = b->partial ? FILE_PARTIAL : FILE_WHOLE;
	b->t->n_lost += b->lost;
	f->made = ++b->t->n_made;
	f->used = b->t->now;
	if (!b->partial)
		vec_free(&f->requested);
}

static void set_pending(struct files *t, struct file *f, bool pending)
{
	t->n_pending += pending;
	t->n_pending -= f->pending;
	f->pending = pending;
}

int files_request(struct files *t, struct file *f, uint32_t mode)
{
	const struct file_request request = {f, f->mapped, f->want_aux, mode};
	int r = f->pending ? 0 : file_reader_add(t->reader, &request);

	if (r == 0) {
		set_pending(t, f, true);
	} else {
		t->n_no_memory++;
		f->retry = t->now + 1;
	}
	return r;
}

static void begin(struct files *t, const struct file_request *request)
{
	struct file *f = request->owner;
	struct build *b = &t->build;

	check(!t->busy && f->pending && f->former.directory == 0);
	*b = (struct build){.t = t, .f = f, .fresh = {.aux = request->aux}};
	b->partial = request->mode & MODE_PARTIAL ||
		     (f->state == FILE_PARTIAL && f->need > files_room(t));
	b->before = file_kind(f);
	memset(t->known, 0, sizeof(t->known));
	t->busy = f;
	f->requested_more = false;
	/* Pages without auxiliary words would say that all registers are kept. */
	if (b->partial && (f->table.aux || !request->aux))
		b->result = keep_former(b);
}

/* What came of the build. 0: there is a fresh table; 1: the budget has no room for it; or a
 * negative errno. */
static int conclude(struct build *b, const struct file_reading *end)
{
	int r = b->result ? b->result : end->result;

	if (r == 0 && b->n_kept && end->pages && end->base != b->f->table.base)
		r = -ESTALE; /* another file than it was */
	if (r == 0 && end->pages == 0)
		r = -ENODATA;
	b->fresh.base = end->base;
	b->fresh.aux |= end->any_aux;
	if (!b->partial)
		b->fresh.rows = end->rows; /* without those that only repeat */
	b->lost += end->lost;
	if (r != 0)
		return r;
	b->f->need = b->need;
	if (b->full && (!b->partial || b->fresh.pages.n == b->n_kept))
		return 1;
	r = finish(b);
	return r == -ENOSPC ? 1 : r;
}

/* Whether the file is read once more, and so has not ended: where numbers of rules have run out
 * tables make room that are not hit, once; where the budget has, only what is requested is kept. */
static bool read_again(struct build *b, uint32_t mode, int r)
{
	struct file *f = b->f;

	if (r >= 0 && b->starved && !(mode & MODE_AGAIN) && files_make_room(b->t)) {
		build_drop(b);
		mode = MODE_AGAIN | (b->partial ? MODE_PARTIAL : 0);
	} else if (r == 1 && !b->partial) {
		f->state = FILE_PARTIAL;
		mode = MODE_PARTIAL;
		if (!f->requested.n)
			return false;
	} else {
		return false;
	}
	set_pending(b->t, f, false);
	return files_request(b->t, f, mode) == 0;
}

static void end(struct files *t, const struct file_reading *reading)
{
	struct build *b = &t->build;
	struct file *f = b->f;
	int r = conclude(b, reading);
	bool again;

	check(f == t->busy && f->pending);
	if (r != 0)
		build_drop(b);
	rule_table_settle(t->rules);
	vec_free(&b->refs);
	t->n_read++;
	t->read_ns += reading->ns;
	again = read_again(b, reading->request.mode, r);
	t->busy = NULL;
	if (again)
		return;
	set_pending(t, f, false);
	if (r == 0 && !b->fresh.directory)
		r = -ENOMEM; /* it was to be read again, and could not be */
	if (r == 0)
		accept(b);
	if (r < 0)
		refuse(t, f, r);
	if (f->state == FILE_PARTIAL || f->state == FILE_REFUSED) {
		f->retry = t->now + f->backoff;
		f->backoff = f->backoff < BACKOFF_MAX ? 2 * f->backoff : BACKOFF_MAX;
	}
	/* By frame pointers is an answer, too, and now there is another. */
	f->changed |= r == 0 || file_kind(f) != b->before;
	f->other |= r == 0 && b->before != UNWIND_KIND_UNKNOWN;
}

bool files_take(struct files *t)
{
	struct file_reading reading;
	bool any = false;

	while (file_reader_take(t->reader, &reading)) {
		struct build *b = &t->build;

		if (!t->busy)
			begin(t, &reading.request);
		check(b->f == reading.request.owner);
		if (reading.ended) {
			end(t, &reading);
			any = true;
		} else if (b->result == 0) {
			b->result = add_page(b, &reading);
		}
	}
	return any;
}
