/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses to frames. Contract in dwarf.h. */
#include "dwarf/dwarf.h"

#include "base/check.h"
#include "base/search.h"
#include "dwarf/dw.h"
#include "dwarf/functions.h"
#include "dwarf/lines.h"
#include "dwarf/names.h"
#include "dwarf/split.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_UNIT_RANGES 65536u
#define MAX_CANDIDATES  8 /* units that claim one address */
#define MAX_BACK        64

struct unit_span {
	uint64_t low, high;
	uint32_t unit;
};

/* A unit whose functions and lines are in memory. */
struct loaded {
	uint32_t unit;
	int functions_error, lines_error; /* 0: there */
	uint64_t used;
	size_t bytes;
	struct unit u;        /* that holds the entries */
	struct unit lines_of; /* the skeleton, or the same */
	struct functions functions;
	struct lines lines;
	struct inlines inlines; /* of the function asked for last */
	int inlines_error;
};

struct dwarf {
	struct dwarf_file main, alt;
	struct split split;
	bool has_alt;
	bool cut;      /* something was too large to keep */
	size_t n_said; /* of what is wanted */
	size_t max_bytes;
	uint64_t steps;
	VEC(struct unit_span) spans; /* by low */
	VEC(struct loaded *) loaded;
	size_t loaded_bytes;
	uint64_t uses;
	struct dwarf_name name;
};

/* --- Which unit --- */

static int by_low(const void *x, const void *y)
{
	const struct unit_span *a = x, *b = y;

	return compare(a->low, b->low) ?: compare(b->high, a->high) ?: compare(a->unit, b->unit);
}

static int add_span(struct dwarf *d, uint64_t low, uint64_t high, uint32_t unit)
{
	if (d->spans.n >= d->max_bytes / 4 / sizeof(*d->spans.p))
		return -E2BIG;
	return vec_push(&d->spans, ((struct unit_span){low, high, unit})) ? 0 : -ENOMEM;
}

/* What is broken or too large in one unit leaves the others as they are. */
static int pass_over(struct dwarf *d, int r)
{
	d->cut |= r == -E2BIG;
	return r == -ENOMEM || r == -ETIME ? r : 0;
}

/* A unit with lines that does not say where its code is: its functions do. */
static int add_functions(struct dwarf *d, const struct unit *u, uint32_t unit)
{
	struct functions f;
	int r = functions_load(&f, u, &d->steps);

	if (r < 0)
		return pass_over(d, r);
	for (size_t i = 0; r == 0 && i < f.list.n; i++)
		r = add_span(d, f.list.p[i].low, f.list.p[i].high, unit);
	vec_free(&f.list);
	return r;
}

static size_t max_rows(const struct dwarf *d)
{
	return d->max_bytes / 2 / sizeof(struct line_row);
}

/* A table of lines alone: where its code is, only its rows say. One that is broken is passed over.
 */
static int add_lines(struct dwarf *d, const struct unit *u, uint32_t unit)
{
	struct lines l;
	int r = lines_load(&l, u, max_rows(d), &d->steps);

	if (r < 0)
		return pass_over(d, r);
	for (size_t i = 0; r == 0 && i < l.sequences.n; i++)
		r = add_span(d, l.sequences.p[i].low, l.sequences.p[i].high, unit);
	lines_free(&l);
	return r;
}

static bool says_nothing_of_code(const struct unit *u)
{
	return u->head->type == DW_UT_compile && die_has(&u->root, DIE_STMT_LIST) &&
	       !die_has(&u->root, DIE_HIGH_PC) && !die_has(&u->root, DIE_RANGES);
}

static int add_unit(struct dwarf *d, uint32_t i, struct spans *spans)
{
	const struct unit_head *head = &d->main.units.p[i];
	struct unit u;
	int r;

	if (head->type == DW_UT_partial)
		return 0;
	if (d->steps < 64)
		return -ETIME;
	d->steps -= 64;
	r = unit_open(&u, &d->main, head, d->has_alt ? &d->alt : NULL);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (head->type == DW_UT_lines)
		return add_lines(d, &u, i);
	r = unit_ranges(&u, &u.root, MAX_UNIT_RANGES, spans);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (!spans->list.n && says_nothing_of_code(&u))
		return add_functions(d, &u, i);
	for (size_t k = 0; r == 0 && k < spans->list.n; k++)
		r = add_span(d, spans->list.p[k].low, spans->list.p[k].high, i);
	return r;
}

static int add_units(struct dwarf *d)
{
	struct spans spans = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->main.units.n; i++)
		r = add_unit(d, (uint32_t)i, &spans);
	vec_free(&spans.list);
	if (d->spans.n)
		qsort(d->spans.p, d->spans.n, sizeof(*d->spans.p), by_low);
	return r;
}

/* --- Opening --- */

/* The other files are a help: one that cannot be read is as good as none. */
static int open_other(struct dwarf_file *f, int fd, bool split, bool *ret)
{
	int r = fd < 0 ? -ENOENT : dwarf_file_open(f, fd, split, NULL);

	*ret = r == 0;
	return r == -ENOMEM ? r : 0;
}

int dwarf_new(struct dwarf **ret, const struct dwarf_files *files, struct error *err)
{
	struct dwarf *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->max_bytes = files->max_bytes;
	d->steps = files->steps;
	r = dwarf_file_open(&d->main, files->fd, false, err);
	if (r < 0) {
		free(d);
		return r;
	}
	r = open_other(&d->alt, files->alt, false, &d->has_alt);
	if (r == 0)
		r = open_other(&d->split.package, files->split, true, &d->split.has_package);
	if (r == 0)
		r = add_units(d);
	if (r < 0) {
		dwarf_free(d);
		return error_errno(err, r, "cannot read the debug information");
	}
	*ret = d;
	return 0;
}

static void unload(struct dwarf *d, size_t i)
{
	struct loaded *l = d->loaded.p[i];

	check(d->loaded_bytes >= l->bytes);
	d->loaded_bytes -= l->bytes;
	vec_free(&l->functions.list);
	lines_free(&l->lines);
	inlines_free(&l->inlines);
	free(l);
	d->loaded.p[i] = d->loaded.p[--d->loaded.n];
}

void dwarf_free(struct dwarf *d)
{
	if (!d)
		return;
	while (d->loaded.n)
		unload(d, d->loaded.n - 1);
	vec_free(&d->loaded);
	vec_free(&d->spans);
	buf_free(&d->name.text);
	dwarf_file_close(&d->main);
	if (d->has_alt)
		dwarf_file_close(&d->alt);
	split_fini(&d->split);
	free(d);
}

void dwarf_grant(struct dwarf *d, uint64_t steps)
{
	d->steps = steps;
}

size_t dwarf_bytes(const struct dwarf *d)
{
	return sizeof(*d) + dwarf_file_bytes(&d->main) + dwarf_file_bytes(&d->alt) +
	       split_bytes(&d->split) + d->spans.capacity * sizeof(*d->spans.p) + d->loaded_bytes;
}

bool dwarf_is_cut(const struct dwarf *d)
{
	return d->cut;
}

size_t dwarf_n_fds(const struct dwarf *d)
{
	return dwarf_file_n_fds(&d->main) + dwarf_file_n_fds(&d->alt) + split_n_fds(&d->split);
}

/* --- Units in memory --- */

static size_t size_of(const struct loaded *l)
{
	return sizeof(*l) + l->functions.list.capacity * sizeof(*l->functions.list.p) +
	       lines_bytes(&l->lines) + l->inlines.nodes.capacity * sizeof(*l->inlines.nodes.p) +
	       l->inlines.spans.capacity * sizeof(*l->inlines.spans.p);
}

/* Counts what it has grown to, and drops the units used least recently. */
static void count(struct dwarf *d, struct loaded *keep)
{
	size_t bytes = size_of(keep);

	check(d->loaded_bytes >= keep->bytes);
	d->loaded_bytes = d->loaded_bytes - keep->bytes + bytes;
	keep->bytes = bytes;
	while (d->loaded_bytes > d->max_bytes / 2 && d->loaded.n > 1) {
		size_t oldest = d->loaded.p[0] == keep;

		for (size_t i = 0; i < d->loaded.n; i++)
			if (d->loaded.p[i] != keep &&
			    d->loaded.p[i]->used < d->loaded.p[oldest]->used)
				oldest = i;
		unload(d, oldest);
	}
}

/* The body of a split unit, where it is at hand. */
static int join_split(struct dwarf *d, struct loaded *l)
{
	const struct unit_head *head;
	struct dwarf_file *file;
	struct unit split;
	int r = split_find(&d->split, &l->u, &file, &head);

	if (r < 0)
		return r;
	r = unit_open(&split, file, head, NULL);
	if (r < 0)
		return r;
	unit_join(&split, &l->u);
	l->u = split;
	return 0;
}

static bool is_skeleton(const struct unit *u)
{
	return u->head->type == DW_UT_skeleton || die_has(&u->root, DIE_DWO_NAME);
}

static int load_unit(struct dwarf *d, struct loaded *l)
{
	int r = unit_open(&l->u, &d->main, &d->main.units.p[l->unit], d->has_alt ? &d->alt : NULL);

	if (r < 0)
		return r;
	l->lines_of = l->u;
	l->lines_error = lines_load(&l->lines, &l->u, max_rows(d), &d->steps);
	if (l->u.head->type == DW_UT_lines)
		r = -ENOENT;
	else if (is_skeleton(&l->u))
		r = join_split(d, l);
	l->functions_error = r < 0 ? r : functions_load(&l->functions, &l->u, &d->steps);
	r = pass_over(d, l->lines_error);
	if (r != -ENOMEM && pass_over(d, l->functions_error) < 0)
		r = l->functions_error;
	return r;
}

static int get_unit(struct dwarf *d, uint32_t unit, struct loaded **ret)
{
	struct loaded *l;
	int r;

	vec_each (&d->loaded, have)
		if ((*have)->unit == unit) {
			(*have)->used = ++d->uses;
			*ret = *have;
			return 0;
		}
	l = vec_reserve(&d->loaded, 1) ? calloc(1, sizeof(*l)) : NULL;
	if (!l)
		return -ENOMEM;
	l->unit = unit;
	l->used = ++d->uses;
	d->loaded.p[d->loaded.n++] = l;
	r = load_unit(d, l);
	if (r < 0) {
		unload(d, d->loaded.n - 1);
		return r;
	}
	count(d, l);
	*ret = l;
	return 0;
}

/* --- Split units' files --- */

const char *dwarf_wants(struct dwarf *d)
{
	check(d->n_said <= d->split.wanted.n);
	if (d->n_said < d->split.wanted.n)
		return d->split.wanted.p[d->n_said++].path.p;
	vec_each (&d->split.wanted, w)
		buf_free(&w->path);
	d->split.wanted.n = d->n_said = 0;
	return NULL;
}

int dwarf_add_split(struct dwarf *d, int fd)
{
	int r = split_add(&d->split, fd);

	/* Units that went without are read again. */
	for (size_t i = d->loaded.n; r == 0 && i-- > 0;)
		if (d->loaded.p[i]->functions_error == -EAGAIN)
			unload(d, i);
	return r;
}

/* --- Frames --- */

struct place {
	struct loaded *unit;
	const struct function *function;
	const struct line_row *row;
};

/* Of the units that claim the address the first with a function there, else the first with a line.
 */
static int find_place(struct dwarf *d, uint64_t address, struct place *ret)
{
	size_t low = search_partition(d->spans.n, i, d->spans.p[i].low <= address);
	unsigned int candidates = 0;

	*ret = (struct place){0};
	for (size_t back = 0; low && back < MAX_BACK && candidates < MAX_CANDIDATES;
	     back++, low--) {
		const struct unit_span *s = &d->spans.p[low - 1];
		struct place p = {0};
		int r;

		if (address >= s->high)
			continue;
		candidates++;
		r = get_unit(d, s->unit, &p.unit);
		if (r == -ENOMEM || r == -ETIME)
			return r;
		if (r < 0)
			continue;
		p.function = functions_find(&p.unit->functions, address);
		p.row = lines_find(&p.unit->lines, address);
		if (p.function || (p.row && !ret->unit))
			*ret = p;
		if (p.function)
			return 0;
	}
	return ret->unit ? 0 : -ENOENT;
}

static int load_inlines(struct dwarf *d, const struct place *p)
{
	struct loaded *l = p->unit;

	if (l->inlines.entry == p->function->entry)
		return l->inlines_error;
	inlines_free(&l->inlines);
	l->inlines_error = inlines_load(&l->inlines, &l->u, p->function->entry, &d->steps);
	if (l->inlines_error == -ENOMEM || l->inlines_error == -ETIME)
		return l->inlines_error;
	l->inlines.entry = p->function->entry;
	count(d, l);
	return l->inlines_error;
}

static int add_text(struct dwarf_frames *f, struct str s, struct dwarf_text *ret)
{
	check(f->text.n <= UINT32_MAX);
	*ret = (struct dwarf_text){(uint32_t)f->text.n, (uint32_t)s.n};
	return buf_append(&f->text, s.p, s.n);
}

static int add_path(const struct loaded *l, uint64_t file, struct dwarf_frames *f,
		    struct dwarf_text *ret)
{
	size_t at = f->text.n;
	int r = l->lines_error ? -ENOENT : lines_path(&l->lines, &l->lines_of, file, &f->text);

	if (r < 0)
		f->text.n = at;
	else
		*ret = (struct dwarf_text){(uint32_t)at, (uint32_t)(f->text.n - at)};
	return r == -ENOMEM ? r : 0;
}

static int add_frame(struct dwarf *d, const struct place *p, const struct form_value *entry,
		     struct dwarf_frame *frame, struct dwarf_frames *ret)
{
	int r = entry ? dwarf_name_read(&p->unit->u, entry, &d->name) : -ENOENT;

	if (r == 0)
		r = add_text(ret, buf_str(&d->name.text), &frame->function);
	if (r == -ENOMEM)
		return r;
	if (r == 0) {
		frame->linked = d->name.linked;
		frame->start_line = d->name.line;
	}
	return vec_push(&ret->list, *frame) ? 0 : -ENOMEM;
}

/* The line where the program is, then that of each call outwards. */
static int add_frames(struct dwarf *d, const struct place *p, uint32_t node,
		      struct dwarf_frames *ret)
{
	const struct inlines *i = &p->unit->inlines;
	struct dwarf_frame frame = {0};
	struct form_value self;
	int r = 0;

	if (p->row) {
		frame.line = p->row->line;
		frame.column = p->row->column;
		r = add_path(p->unit, p->row->file, ret, &frame.file);
	}
	check(!node || node < i->nodes.n);
	for (; r == 0 && node; node = i->nodes.p[node].parent) {
		const struct inline_node *call = &i->nodes.p[node];

		check(call->parent < node);
		r = add_frame(d, p, &call->origin, &frame, ret);
		frame = (struct dwarf_frame){.line = call->line, .column = call->column};
		if (r == 0)
			r = add_path(p->unit, call->file, ret, &frame.file);
	}
	if (r < 0)
		return r;
	if (p->function)
		self = (struct form_value){FORM_REF_FILE, p->function->entry};
	return add_frame(d, p, p->function ? &self : NULL, &frame, ret);
}

int dwarf_find(struct dwarf *d, uint64_t address, struct dwarf_frames *ret)
{
	struct place p;
	uint32_t node = 0;
	int r = find_place(d, address, &p);

	ret->list.n = 0;
	buf_clear(&ret->text);
	if (r == 0 && p.function) {
		r = load_inlines(d, &p);
		if (r == 0)
			node = inlines_find(&p.unit->inlines, address);
		else if (r != -ENOMEM && r != -ETIME)
			r = 0; /* without them, but with name and line */
	}
	return r < 0 ? r : add_frames(d, &p, node, ret);
}

void dwarf_frames_free(struct dwarf_frames *f)
{
	vec_free(&f->list);
	buf_free(&f->text);
}
