/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a file, ascending, out of all its sources. Contract in rows.h.
 *
 * Each source tells where its next function begins; the lowest is taken, runs until another of its
 * own or of a better source begins, and is not resumed. A worse source begins where a better one
 * ends. So every address has the rule of one function, whatever overlaps, and whoever unwinds by
 * binary search through a header of the file finds the same.
 *
 * A row is held back until the next one stands behind it, since functions that join replace the row
 * that says that one has ended. */
#include "unwind/rows.h"

#include "base/check.h"
#include "codescan/uncovered.h"
#include "unwind/rows-go.h"
#include "unwind/rows-known-code.h"
#include "cfi/fde-index.h"
#include "bpfwire/unwind-tables.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_FUNCTIONS ((size_t)4 << 20)
#define MAX_SOURCES   6
#define PADDING       64u /* Go aligns functions to 16 or 32 bytes, some to 64 */

/* One of the three, by its kind. */
struct source {
	int kind; /* ELF_ROWS_* */
	struct rows_order *order;
	struct rows_go *go;
	struct rows_made *made;
};

struct reader {
	const struct rows_machine *machine;
	size_t max_functions;
	elf_row_fn fn;
	void *context;
	struct elf_rows_stats *stats;
	struct source sources[MAX_SOURCES]; /* the best first */
	size_t n_sources;
	struct rows_order orders[3]; /* .eh_frame, .debug_frame, the debug file's .debug_frame */
	struct rows_go go;
	struct rows_made signals, rest;
	struct uncovered gaps;
	bool aux;
	uint64_t done; /* all up to here is given out */
	struct elf_row held, given;
	int held_kind;
	bool any_held, any_given;
	struct cfi_run run;
};

static int give(struct reader *r)
{
	const struct elf_row *row = &r->held;

	if (!r->any_held || (r->any_given ? row->rule == r->given.rule && row->aux == r->given.aux
					  : row->rule == 0))
		return 0;
	r->given = *row;
	r->any_given = true;
	r->stats->rows[r->held_kind]++;
	r->stats->aux |= row->aux != 0;
	return r->fn(r->context, row);
}

/* From `address` on these words hold. */
static int put(struct reader *r, uint64_t address, struct rows_words words, int kind)
{
	int result = 0;

	/* Code and Go's tables tell of the stack, not of what a function does with registers. */
	if (r->aux && words.rule && kind != ELF_ROWS_EH_FRAME && kind != ELF_ROWS_DEBUG_FRAME)
		words.aux = unwind_aux_lost(r->machine->machine == EM_X86_64);
	if (r->any_held && r->held.address != address) {
		if (words.rule == r->held.rule && words.aux == r->held.aux)
			return 0;
		result = give(r);
	}
	r->held = (struct elf_row){address, words.rule, words.aux};
	r->held_kind = kind;
	r->any_held = true;
	return result;
}

static struct rows_words reduce(struct reader *r)
{
	struct rows_words words = {.inexpressible = true};

	r->run.changed = false;
	if (r->run.cie->ra == r->machine->ra)
		words = rows_reduce(r->machine, &r->run.row, r->aux);
	r->stats->inexpressible += words.inexpressible;
	return words;
}

/* The part of a piece between r->done and `limit`. */
static int put_piece(struct reader *r, const struct rows_piece *piece, uint64_t limit, int kind)
{
	uint64_t start = piece->start > r->done ? piece->start : r->done;
	uint64_t end = piece->end < limit ? piece->end : limit;

	if (start >= end)
		return 0;
	r->done = end;
	return put(r, start, piece->words, kind);
}

/* What is left of a function of which nothing is known. */
static int put_nothing(struct reader *r, uint64_t limit, int kind)
{
	const struct rows_piece rest = {.start = r->done, .end = limit};

	return put_piece(r, &rest, limit, kind);
}

static int put_cfi(struct reader *r, const struct cfi_fde *fde, uint64_t limit, int kind)
{
	struct rows_piece piece = {0};
	int more = 0, result = 0;

	cfi_run_begin(&r->run, fde);
	while (result == 0 && (more = cfi_run_next(&r->run)) == 1) {
		piece.start = r->run.start;
		piece.end = r->run.end;
		if (piece.start >= limit || piece.end <= r->done)
			continue;
		if (r->run.changed)
			piece.words = reduce(r);
		result = put_piece(r, &piece, limit, kind);
	}
	if (result || more == 0)
		return result;
	r->stats->broken++;
	return put_nothing(r, limit, kind);
}

static int put_go(struct reader *r, uint64_t limit)
{
	struct rows_piece piece;
	int more = 0, result = 0;

	while (result == 0 && (more = rows_go_next(&r->go, &piece)) == 1) {
		r->stats->inexpressible += piece.words.inexpressible;
		if (piece.start < r->done && r->held.address <= piece.start)
			r->done = piece.start;
		result = put_piece(r, &piece, limit, ELF_ROWS_GO);
	}
	if (result || (more < 0 && more != -ENOEXEC))
		return result ? result : more;
	r->stats->broken += more < 0;
	/* What is left is padding, which belongs to the function. */
	if (more == 0 && limit - r->done < PADDING && r->held.address < r->done) {
		r->done = limit;
		return 0;
	}
	return put_nothing(r, limit, ELF_ROWS_GO);
}

static int put_code(struct reader *r)
{
	struct rows_piece piece;
	int more = 0, result = 0;

	while (result == 0 && (more = code_rows_next(&r->gaps.code, &piece)) == 1)
		result = put_piece(r, &piece, UINT64_MAX, ELF_ROWS_MADE);
	return result ? result : more;
}

static uint64_t by_frames(const struct rows_machine *m)
{
	return unwind_rule(m->fp, UNWIND_CFA_REG, m->link ? UNWIND_RA_FP : UNWIND_RA_CFA, -2, 16);
}

/* What is left of a gap. */
static int put_rest(struct reader *r, uint64_t to)
{
	struct rows_words words = {0};
	int result = 0, foreign = 0;

	/* Who is in the system call that ends a trampoline stands behind it. */
	if (r->any_held && unwind_rule_cfa(r->held.rule) == UNWIND_CFA_SIGNAL && r->done < to)
		r->done++;
	if (to != UINT64_MAX && r->any_held && to - r->done >= UNCOVERED_FOREIGN_BYTES &&
	    r->gaps.file)
		foreign = uncovered_keeps_frames(&r->gaps, r->done, to);
	if (foreign < 0)
		return foreign;
	if (foreign)
		words.rule = by_frames(r->machine);
	else if (r->gaps.file)
		words.rule = rows_made_thread(r->machine, r->gaps.file, r->done, to, &result);
	if (result == 0)
		result = put(r, r->done, words, words.rule ? ELF_ROWS_MADE : r->held_kind);
	r->done = to;
	return result;
}

/* From r->done up to `to` no function is described. */
static int put_gap(struct reader *r, uint64_t to)
{
	uint64_t start, end;
	int more = 0, result = 0;

	while (result == 0 && (more = uncovered_begin(&r->gaps, r->done, to, &start, &end)) == 1) {
		if (start > r->done) {
			result = put(r, r->done, (struct rows_words){0}, r->held_kind);
			r->done = start;
		}
		if (result == 0)
			result = put_code(r);
		r->done = end;
	}
	if (result || more < 0)
		return result ? result : more;
	return to > r->done ? put_rest(r, to) : 0;
}

/* Where a source goes on: 1, 0 at its end, or an errno. */
static int peek(const struct source *s, uint64_t *ret)
{
	if (s->order)
		return rows_order_peek(s->order, ret);
	if (s->go)
		return rows_go_peek(s->go, ret);
	if (s->made->at == s->made->n)
		return 0;
	*ret = s->made->pieces[s->made->at].start;
	return 1;
}

/* The source whose next function begins first: 1, 0 at the end, or an errno. */
static int pick(struct reader *r, struct source **ret, uint64_t *ret_start)
{
	int any = 0;

	for (size_t i = 0; i < r->n_sources; i++) {
		uint64_t start;
		int there = peek(&r->sources[i], &start);

		if (there < 0)
			return there;
		if (!there || (any && start >= *ret_start))
			continue;
		*ret = &r->sources[i];
		*ret_start = start;
		any = 1;
	}
	return any;
}

/* Where a function of `source` that would run up to `end` is cut off: where it or a better one goes
 * on. */
static int limit(struct reader *r, const struct source *source, uint64_t *end)
{
	for (const struct source *s = r->sources; s <= source; s++) {
		uint64_t start;
		int there = peek(s, &start);

		if (there < 0)
			return there;
		if (there && start < *end)
			*end = start;
	}
	return 0;
}

/* The next function of a source: 0 and where it ends, or an errno. */
static int take(struct source *s, struct cfi_fde *fde, struct rows_piece *piece, uint64_t *end)
{
	int result;

	if (s->go)
		return rows_go_take(s->go, end);
	if (s->made) {
		check(s->made->at < s->made->n);
		*piece = s->made->pieces[s->made->at++];
		*end = piece->end;
		return 0;
	}
	result = rows_order_take(s->order, fde);
	*end = fde->end;
	return result < 0 ? result : 0;
}

static int put_next(struct reader *r, struct source *source, uint64_t start)
{
	struct cfi_fde fde = {0};
	struct rows_piece piece = {0};
	uint64_t end;
	int result = take(source, &fde, &piece, &end);

	if (result == -EBADMSG || result == -ENOEXEC) {
		r->stats->broken++;
		return 0;
	}
	if (result == 0)
		result = limit(r, source, &end);
	if (result < 0)
		return result;
	r->stats->functions += source->kind != ELF_ROWS_MADE;
	/* What is known by its bytes is known as a whole: the part behind another function would be
	 * somebody else's. */
	if (source->made == &r->rest && start < r->done)
		return 0;
	start = start < r->done ? r->done : start;
	if (start >= end)
		return 0;
	result = put_gap(r, start);
	if (result)
		return result;
	if (source->go)
		return put_go(r, end);
	return source->made ? put_piece(r, &piece, end, source->kind)
			    : put_cfi(r, &fde, end, source->kind);
}

static int put_all(struct reader *r)
{
	struct source *source = NULL;
	uint64_t start = 0;
	int result;

	rows_watch(r->machine, r->aux, &r->run);
	while ((result = pick(r, &source, &start)) == 1) {
		result = put_next(r, source, start);
		if (result)
			return result;
	}
	if (result < 0)
		return result;
	result = put_gap(r, UINT64_MAX);
	return result ? result : give(r);
}

static void add_source(struct reader *r, struct source source)
{
	check(r->n_sources < MAX_SOURCES);
	r->sources[r->n_sources++] = source;
}

/* Surveys a section that has been opened. */
static int add_order(struct reader *r, struct rows_order *order, int kind)
{
	int result = rows_order_survey(order, r->machine, r->max_functions, &r->run);

	add_source(r, (struct source){.kind = kind, .order = order});
	r->aux |= order->aux;
	r->stats->broken += order->broken;
	return result;
}

/* What a section that cannot be opened means: nothing, unless memory or the disk is at fault. */
static int without(int result)
{
	return cfi_is_absent(result) ? 0 : result;
}

static int add_eh_frame(struct reader *r, const struct elf_file *f)
{
	struct rows_order *order = &r->orders[0];
	int result = rows_frames_open(&order->section, f, &order->hdr);

	return result < 0 ? without(result) : add_order(r, order, ELF_ROWS_EH_FRAME);
}

static int add_debug_frame(struct reader *r, const struct elf_file *f, struct rows_order *order)
{
	const Elf64_Shdr *header = elf_file_section(f, ".debug_frame");
	int result = header ? cfi_section_open(&order->section, f, header) : -ENOEXEC;

	return result < 0 ? without(result) : add_order(r, order, ELF_ROWS_DEBUG_FRAME);
}

/* A Go program says more by its own table than by the debugging information made of it. */
static int add_go(struct reader *r, struct elf_file *f)
{
	int result = rows_go_open(&r->go, r->machine, f);

	if (result < 0)
		return result == -ENOENT ? 0 : without(result);
	add_source(r, (struct source){.kind = ELF_ROWS_GO, .go = &r->go});
	return 1;
}

/* In the order of their worth. */
static int add_sources(struct reader *r, struct elf_file *f, const struct elf_file *debug)
{
	int result, go = add_go(r, f);

	if (go < 0)
		return go;
	/* C that is linked into a Go program may be described only in what repeats all of Go, many
	 * times as large. */
	result = go && rows_go_is_all(&r->go) ? 0 : uncovered_open(&r->gaps, r->machine, f, debug);
	if (result == 0)
		result = rows_made_find(&r->signals, &r->rest, r->machine, f, go);
	if (result < 0)
		return result;
	add_source(r, (struct source){.kind = ELF_ROWS_MADE, .made = &r->signals});
	result = add_eh_frame(r, f);
	if (result == 0 && !go)
		result = add_debug_frame(r, f, &r->orders[1]);
	if (result == 0 && !go && debug)
		result = add_debug_frame(r, debug, &r->orders[2]);
	add_source(r, (struct source){.kind = ELF_ROWS_MADE, .made = &r->rest});
	return result;
}

int elf_rows_read(struct elf_file *f, const struct elf_rows_options *options, elf_row_fn fn,
		  void *context, struct elf_rows_stats *ret_stats, struct error *err)
{
	const struct rows_machine *machine = rows_machine_of(f->machine);
	struct reader *r;
	int result;

	*ret_stats = (struct elf_rows_stats){0};
	if (!machine || f->type == ET_REL)
		return 0;
	result = elf_file_load_sections(f, err);
	if (result < 0)
		return result;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->machine = machine;
	r->fn = fn;
	r->context = context;
	r->stats = ret_stats;
	r->max_functions = options && options->max_functions ? options->max_functions
							     : MAX_FUNCTIONS;
	r->aux = options && options->aux;
	result = add_sources(r, f, options ? options->debug : NULL);
	if (result < 0)
		error_errno(err, result, "cannot read the call-frame information");
	else
		result = put_all(r);
	for (size_t i = 0; i < sizeof(r->orders) / sizeof(r->orders[0]); i++)
		rows_order_free(&r->orders[i]);
	rows_go_close(&r->go);
	uncovered_close(&r->gaps);
	free(r);
	return result;
}
