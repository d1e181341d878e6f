/* SPDX-License-Identifier: Apache-2.0 */
/* Reading untrusted files. Contract in parser.h. */
#include "symbolize/parser/parser.h"

#include "symbolize/parser/answer.h"
#include "symbolize/names/sanitize.h"
#include "symbolize/names/jit-names.h"
#include "symbolize/names/demangle.h"

#include "base/check.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>

struct parser_kept {
	uint64_t object;
	uint64_t used;
	struct tables tables;
};

static void drop(struct parser *p, size_t i)
{
	check(i < p->kept.n);
	tables_close(&p->kept.p[i]->tables);
	free(p->kept.p[i]);
	p->kept.p[i] = p->kept.p[--p->kept.n];
}

void parser_fini(struct parser *p)
{
	while (p->kept.n)
		drop(p, p->kept.n - 1);
	vec_free(&p->kept);
	buf_free(&p->readable);
	buf_free(&p->clean_name);
	buf_free(&p->clean_linked);
	buf_free(&p->clean_file);
	buf_free(&p->wanted);
	dwarf_frames_free(&p->frames);
}

static void close_all(const int fds[TABLES_FILES])
{
	for (unsigned int i = 0; i < TABLES_FILES; i++)
		closep(&fds[i]);
}

static void close_splits(const struct parser_request *q)
{
	for (size_t i = 0; i < q->n_splits; i++)
		closep(&q->splits[i]);
}

void parser_request_close(const struct parser_request *q)
{
	close_all(q->fds);
	close_splits(q);
}

/* Drops what was used least recently, besides the newest, down to the limits. */
static void shrink(struct parser *p, uint64_t max_bytes)
{
	for (;;) {
		uint64_t bytes = 0;
		size_t oldest = 0, n_fds = 0;

		for (size_t i = 0; i < p->kept.n; i++) {
			bytes += tables_bytes(&p->kept.p[i]->tables);
			n_fds += tables_n_fds(&p->kept.p[i]->tables);
			if (p->kept.p[i]->used < p->kept.p[oldest]->used)
				oldest = i;
		}
		if (p->kept.n <= 1 || (bytes <= max_bytes && n_fds <= PARSER_FDS_MAX &&
				       p->kept.n <= PARSER_OBJECTS_MAX))
			return;
		drop(p, oldest);
	}
}

static int open_kept(struct parser *p, const struct parser_request *q, struct parser_kept **ret,
		     struct error *err)
{
	const struct tables_limits limits = {
		.max_bytes = (size_t)q->file_bytes,
		.steps = q->steps,
		.lines = q->flags & PARSER_LINES,
		.inlines = q->flags & PARSER_INLINES,
		.symbols_only = q->flags & PARSER_SYMBOLS,
	};
	struct parser_kept *k = vec_reserve(&p->kept, 1) ? calloc(1, sizeof(*k)) : NULL;
	int fds[TABLES_FILES], r;

	memcpy(fds, q->fds, sizeof(fds));
	if (!k || fds[TABLES_FILE] < 0) {
		free(k);
		close_all(fds);
		return k ? -EBADF : -ENOMEM;
	}
	r = tables_open(&k->tables, fds, &limits, err);
	if (r < 0) {
		free(k);
		return r;
	}
	k->object = q->object;
	p->kept.p[p->kept.n++] = k;
	*ret = k;
	return 0;
}

/* Whether what is kept of an object will do: what was left out under other budgets may fit now. */
static bool still_good(const struct tables_limits *l, const struct parser_request *q)
{
	return !(q->flags & PARSER_REOPEN) && l->max_bytes == q->file_bytes && l->steps == q->steps;
}

/* The object's tables, opened if need be. The request's descriptors are used up. */
static int get(struct parser *p, const struct parser_request *q, struct parser_kept **ret,
	       struct error *err)
{
	struct parser_kept *k = NULL;
	int r = 0;

	for (size_t i = 0; i < p->kept.n; i++)
		if (p->kept.p[i]->object == q->object) {
			if (still_good(&p->kept.p[i]->tables.limits, q))
				k = p->kept.p[i];
			else
				drop(p, i);
			break;
		}
	if (k)
		close_all(q->fds);
	else
		r = open_kept(p, q, &k, err);
	if (r < 0) {
		close_splits(q);
		return r;
	}
	k->used = ++p->uses;
	k->tables.limits.lines = q->flags & PARSER_LINES;
	k->tables.limits.inlines = q->flags & PARSER_INLINES;
	k->tables.limits.symbols_only = q->flags & PARSER_SYMBOLS;
	tables_grant(&k->tables);
	/* One that cannot be used is as good as none. */
	for (size_t i = 0; i < q->n_splits; i++)
		if (tables_add_split(&k->tables, q->splits[i]) == -ENOMEM)
			r = -ENOMEM;
	*ret = k;
	return r;
}

/* A name of the source is shown as it is; a linked one as people read it; what a runtime tells as
 * other profilers show it. */
static int put_frame(struct parser *p, const struct dwarf_frame *frame, enum tables_source source,
		     uint32_t demangle_as, struct buf *answer)
{
	struct str raw = dwarf_frame_text(&p->frames, frame->function);
	struct answer_frame f = {
		.line = frame->line, .column = frame->column, .start_line = frame->start_line};
	struct str file = dwarf_frame_text(&p->frames, frame->file);
	int r = source == FROM_JIT ? jit_name(raw, &p->readable, &file)
		: frame->linked    ? demangle(raw, demangle_as, &p->readable)
				   : 0;

	if (r < 0)
		return r;
	if (!raw.n)
		raw = STR("[inlined]");
	f.linked = sanitize_name(raw, &p->clean_linked);
	f.name = r ? sanitize_name(buf_str(&p->readable), &p->clean_name) : f.linked;
	f.file = sanitize_name(file, &p->clean_file);
	if (!f.name.p || !f.linked.p || (file.n && !f.file.p))
		return -ENOMEM;
	return answer_put_frame(answer, &f);
}

static int put_address(struct parser *p, struct tables *t, uint64_t address,
		       const struct parser_request *q, struct buf *answer)
{
	struct answer_address a = {.source = FROM_COUNT};
	enum tables_source source;
	int r = tables_find(t, address, &p->frames, &source);

	if (r == -ENOENT && tables_function(t, address, &a.function) == -ENOMEM)
		r = -ENOMEM;
	if (r == -ENOMEM)
		return r;
	if (r == 0) {
		size_t n = p->frames.list.n;

		check(n > 0);
		a.source = (uint8_t)source;
		a.n_frames = (uint16_t)(n < PARSER_FRAMES_MAX ? n : PARSER_FRAMES_MAX);
	}
	a.unread = r < 0 && r != -ENOENT;
	r = answer_put_address(answer, &a);
	/* Of too many the innermost go: what is left is a path to the root. */
	for (size_t i = p->frames.list.n - a.n_frames; r == 0 && a.n_frames && i < p->frames.list.n;
	     i++)
		r = put_frame(p, &p->frames.list.p[i], source, q->demangle, answer);
	return r;
}

int parser_run(struct parser *p, const struct parser_request *q, struct buf *answer)
{
	struct parser_kept *k = NULL;
	struct error why = ERROR_NULL;
	int r = get(p, q, &k, &why);
	struct answer_head head = {.n = (uint32_t)q->n, .error = r, .why = str_of(why.text)};

	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		head.n = 0;
		r = answer_put_head(answer, &head);
		return r < 0 ? r : answer_put_tail(answer, &(struct answer_tail){0});
	}
	head.link = str_of(k->tables.links.name);
	head.alt = str_of(k->tables.links.alt_build_id);
	head.lacking = tables_lacks(&k->tables);
	r = answer_put_head(answer, &head);
	for (size_t i = 0; r == 0 && i < q->n; i++)
		r = put_address(p, &k->tables, q->addresses[i], q, answer);
	buf_clear(&p->wanted);
	if (r == 0)
		r = tables_wants(&k->tables, &p->wanted);
	if (r == 0)
		r = answer_put_tail(answer,
				    &(struct answer_tail){k->tables.over, buf_str(&p->wanted)});
	shrink(p, q->max_bytes);
	return r;
}
