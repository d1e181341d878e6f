/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches to records. Every part of a split profile is a profile of its own
 * time; their sums are those of the whole. Limits are tested before a row is
 * known to fit, by the export's upper bound, so they hold with room to spare.
 */
#include "series.h"

#include "base/check.h"
#include "export/pprof.h"
#include "pprof/wire.h"

#include <stdlib.h>

#define GZIP_LEVEL 1

void record_free(struct record *r)
{
	if (!r)
		return;
	buf_free(&r->message);
	free(r);
}

static void set_label(struct series_label *out, size_t *n, struct str name, struct str value)
{
	size_t i = 0;

	while (i < *n && str_cmp(out[i].name, name) < 0)
		i++;
	if (i == *n || !str_eq(out[i].name, name)) {
		memmove(out + i + 1, out + i, (*n - i) * sizeof(*out));
		++*n;
	}
	out[i] = (struct series_label){name, value};
}

size_t series_labels(const struct series_encoder *e, const struct batch_view *view,
		     const struct andiron_group *group, struct str name, struct series_label *out)
{
	size_t n = 0;

	set_label(out, &n, STR("__name__"), name);
	set_label(out, &n, STR("service_name"), STR("unspecified"));
	for (uint32_t i = 0; i < group->n_labels; i++) {
		struct andiron_attribute a = batch_attribute_at(view, group->label_start + i);
		struct str key = batch_str(view, a.key);
		struct str value = batch_str(view, (uint32_t)a.value);
		bool hidden = str_starts(key, STR("__")) && !str_is(key, "__name__");

		if (a.kind == ANDIRON_ATTRIBUTE_STRING && key.n && value.n && !hidden)
			set_label(out, &n, key, value);
	}
	for (size_t i = 0; i < e->n_external; i++)
		set_label(out, &n, e->external[i].name, e->external[i].value);
	check(n <= group->n_labels + e->n_external + 2);
	return n;
}

/* A bytes field of a number below 16. */
static size_t field_size(size_t n)
{
	return 1 + wire_length(n) + n;
}

static void put_text(struct buf *b, uint32_t field, struct str text)
{
	wire_put_head(b, field, text.n);
	buf_str_append(b, text);
}

/* RawProfileSeries{ labels=1{name=1, value=2}, samples=2{raw_profile=1} }. */
static void put_series(struct buf *b, const struct series_label *labels, size_t n, struct str pprof)
{
	for (size_t i = 0; i < n; i++) {
		wire_put_head(b, 1, field_size(labels[i].name.n) + field_size(labels[i].value.n));
		put_text(b, 1, labels[i].name);
		put_text(b, 2, labels[i].value);
	}
	wire_put_head(b, 2, field_size(pprof.n));
	put_text(b, 1, pprof);
}

/* One series under way: its labels, and the export that gathers its rows. */
struct pass {
	const struct series_encoder *e;
	const struct batch_view *view;
	struct str name;
	struct series_label *labels;
	size_t n_labels;
	struct pprof_export *export;
	uint64_t emitted;
};

static struct record *encode(struct pass *p)
{
	struct record *r = calloc(1, sizeof(*r));
	struct buf pprof = BUF_NULL;

	if (!r)
		return NULL;
	r->samples = pprof_export_weight(p->export);
	r->time_ns = times_next(p->e->times, p->view->batch->end_ns);
	if (pprof_export_finish(p->export, r->time_ns, GZIP_LEVEL, &pprof, &r->raw_bytes) == 0)
		put_series(&r->message, p->labels, p->n_labels, buf_str(&pprof));
	if (pprof.failed || r->message.failed || !r->message.n) {
		record_free(r);
		r = NULL;
	} else {
		for (size_t i = 0; i < p->n_labels; i++)
			r->raw_bytes += p->labels[i].name.n + p->labels[i].value.n;
	}
	buf_free(&pprof);
	return r;
}

/* Ends the export under way, if it holds anything. */
static void flush(struct pass *p)
{
	struct record *r;

	if (!p->export)
		return;
	r = pprof_export_n_samples(p->export) ? encode(p) : NULL;
	if (r) {
		p->emitted += r->samples;
		p->e->emit(p->e->context, r);
	}
	pprof_export_free(p->export);
	p->export = NULL;
}

static bool add_row(struct pass *p, uint32_t row)
{
	if (!p->export) {
		p->export = pprof_export_new(p->name, EXPORT_COMM | EXPORT_PROCESS);
		if (!p->export || pprof_export_begin(p->export, p->view) != 0)
			return false;
	}
	if (pprof_export_row(p->export, row) < 0)
		return false;
	if (pprof_export_n_samples(p->export) >= p->e->limits.max_samples ||
	    pprof_export_size(p->export) >= p->e->limits.max_raw)
		flush(p);
	return true;
}

/* Rows of a group whose type has this name; what an export could not take for
 * want of memory is lost with it, and is missing in what the pass emitted. */
static void encode_group(struct pass *p, const struct andiron_group *group)
{
	for (uint32_t i = 0; i < group->n_rows; i++) {
		if (add_row(p, group->row_start + i))
			continue;
		pprof_export_free(p->export);
		p->export = NULL;
	}
	flush(p);
}

/* Whether type `t` is the first one of its name. */
static bool is_first(const struct batch_view *view, uint32_t t, struct str name)
{
	for (uint32_t i = 0; i < t; i++)
		if (str_eq(batch_str(view, batch_type(view, i).name), name))
			return false;
	return true;
}

static uint64_t encode_name(const struct series_encoder *e, const struct batch_view *view,
			    struct str name)
{
	struct pass p = {.e = e, .view = view, .name = name};

	for (uint32_t g = 0; g < batch_count(view, ANDIRON_COL_GROUP); g++) {
		struct andiron_group group = batch_group(view, g);

		check(!p.export);
		p.labels = calloc((size_t)group.n_labels + e->n_external + 2, sizeof(*p.labels));
		if (!p.labels)
			continue;
		p.n_labels = series_labels(e, view, &group, name, p.labels);
		encode_group(&p, &group);
		free(p.labels);
	}
	return p.emitted;
}

uint64_t series_encode(const struct series_encoder *e, const struct andiron_batch *batch)
{
	struct batch_view view;
	uint64_t emitted = 0;

	check(e->limits.max_samples > 0 && e->limits.max_raw > 0);
	if (batch_view_init(&view, batch) != 0)
		return batch->samples;
	for (uint32_t t = 0; t < batch_count(&view, ANDIRON_COL_TYPE); t++) {
		struct str name = batch_str(&view, batch_type(&view, t).name);

		if (name.n && is_first(&view, t, name))
			emitted += encode_name(e, &view, name);
	}
	return batch->samples > emitted ? batch->samples - emitted : 0;
}
