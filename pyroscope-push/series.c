/* SPDX-License-Identifier: Apache-2.0 */
/* Batches to records. Every part of a split profile is a profile of its own time; their sums are
 * those of the whole. A part is ended by the export's upper bound before it passes the soft limits;
 * where a single large stack takes it beyond the hard one all the same, its rows are encoded again
 * in halves, down to the one that cannot be sent at all. */
#include "pyroscope-push/series.h"

#include "base/hash.h"
#include "base/check.h"
#include "pyroscope-push/encoded.h"
#include "export/pprof.h"

#include <stdlib.h>

#define GZIP_LEVEL 1

struct times times_init(uint64_t seed)
{
	return (struct times){.tag = (int64_t)(hash_u64(seed) % TIMES_STEP_NS)};
}

void times_resume(struct times *t, int64_t last)
{
	if (last > t->last)
		t->last = last;
}

int64_t times_next(struct times *t, int64_t end_ns)
{
	int64_t slot = end_ns & ~(int64_t)(TIMES_STEP_NS - 1);
	int64_t last = t->last & ~(int64_t)(TIMES_STEP_NS - 1);
	int64_t time;

	if (slot <= last && last - slot < TIMES_MAX_LEAD_NS)
		slot = last + TIMES_STEP_NS;
	else if (slot <= last) /* times that it goes through again are taken */
		t->tag = (t->tag + 1) % TIMES_STEP_NS;
	time = slot | t->tag;
	check(time % TIMES_STEP_NS == t->tag || time < 0);
	t->last = time;
	return time;
}

/* One series under way: its labels, and the export that gathers its rows. */
struct pass {
	const struct series_encoder *e;
	const struct batch_view *view;
	struct str name;
	struct label *labels;
	size_t n_labels;
	struct pprof_export *export;
	uint64_t emitted, too_large;
	uint64_t n_parts;
	bool short_of_memory;
};

const char *series_loss_word(enum series_loss loss)
{
	static const char *const words[SERIES_N_LOSSES] = {"negative",  "zero",      "too_large",
							   "no_type",   "no_memory", "malformed",
							   "no_format"};

	check(loss < SERIES_N_LOSSES);
	return words[loss];
}

const char *series_loss_advice(enum series_loss loss)
{
	if (loss == SERIES_FORMAT)
		return "a profile that is not pprof was dropped, since its servers take pprof "
		       "alone: forward JFR and other formats to pyroscope.write";
	if (loss == SERIES_MALFORMED)
		return "a profile was dropped, since its bytes are not pprof or are cut off: look "
		       "at what it was scraped or received from";
	return NULL;
}

/* The end of the batch's window, or now where servers would not take that. */
static int64_t time_of(const struct pass *p)
{
	const struct protocol *protocol = p->e->protocol;
	int64_t end = p->view->batch->end_ns, now = p->e->now_ns;

	if ((protocol->max_age_ns && end < now - protocol->max_age_ns) ||
	    (protocol->max_ahead_ns && end > now + protocol->max_ahead_ns) || end <= 0) {
		p->e->repairs->moved++;
		end = now;
	}
	return times_next(p->e->times, end);
}

static size_t label_bytes(const struct pass *p)
{
	size_t sum = 0;

	for (size_t i = 0; i < p->n_labels; i++)
		sum += p->labels[i].name.n + p->labels[i].value.n;
	return sum;
}

/* NULL when memory is short. */
static struct record *encode(struct pass *p)
{
	struct record *r = calloc(1, sizeof(*r));
	struct buf pprof = BUF_NULL;

	if (!r)
		return NULL;
	r->samples = pprof_export_weight(p->export);
	r->time_ns = time_of(p);
	if (pprof_export_finish(p->export, r->time_ns, GZIP_LEVEL, &pprof, &r->raw_bytes) == 0)
		p->e->protocol->put_series(&r->message, p->labels, p->n_labels, buf_str(&pprof));
	if (pprof.failed || r->message.failed || !r->message.n) {
		record_free(r);
		r = NULL;
	} else {
		r->raw_bytes += label_bytes(p);
	}
	buf_free(&pprof);
	return r;
}

static void end_export(struct pass *p)
{
	pprof_export_free(p->export);
	p->export = NULL;
}

static void encode_rows(struct pass *p, uint32_t first, uint32_t end);

/* Ends the export under way, which holds the rows [first, end). */
static void finish_part(struct pass *p, uint32_t first, uint32_t end)
{
	uint32_t n = p->export ? pprof_export_n_samples(p->export) : 0;
	uint32_t middle = first + (end - first) / 2;
	struct record *r = n ? encode(p) : NULL;
	uint64_t weight = n ? pprof_export_weight(p->export) : 0;

	end_export(p);
	if (!r) {
		p->short_of_memory |= n > 0;
	} else if (r->raw_bytes <= p->e->protocol->limits.hard_raw) {
		p->emitted += r->samples;
		p->n_parts++;
		p->e->emit(p->e->context, r);
	} else {
		record_free(r);
		if (n == 1) {
			p->too_large += weight;
		} else {
			encode_rows(p, first, middle);
			encode_rows(p, middle, end);
		}
	}
}

/* False when memory is short: what the export held is lost with it, and is missing in what the pass
 * emitted. */
static bool add_row(struct pass *p, uint32_t row)
{
	if (batch_row(p->view, row).value <= 0)
		return true;
	if (!p->export) {
		uint32_t flags = EXPORT_NAME | EXPORT_SPELLED;

		p->export =
			pprof_export_new(p->name, flags | (p->e->addresses ? EXPORT_ADDRESSES : 0) |
							  (p->e->protocol->ids ? EXPORT_IDS : 0));
		if (!p->export || pprof_export_begin(p->export, p->view) != 0)
			return false;
	}
	return pprof_export_row(p->export, row) >= 0;
}

static bool is_full(const struct pass *p)
{
	const struct series_limits *limits = &p->e->protocol->limits;

	return p->export && (pprof_export_n_samples(p->export) >= limits->max_samples ||
			     pprof_export_size(p->export) >= limits->max_raw);
}

static void encode_rows(struct pass *p, uint32_t first, uint32_t end)
{
	uint32_t start = first;

	for (uint32_t row = first; row < end; row++) {
		if (!add_row(p, row)) {
			p->short_of_memory = true;
			end_export(p);
			start = row + 1;
		} else if (is_full(p)) {
			finish_part(p, start, row + 1);
			start = row + 1;
		}
	}
	finish_part(p, start, end);
}

static void encode_group(struct pass *p, const struct andiron_group *group)
{
	const struct series_encoder *e = p->e;
	char spelled[EXPORT_SPELLED_MAX];
	struct label_source source = {p->view, group, p->name, spelled};

	check(!p->export);
	p->labels = calloc(labels_room(&e->rules, group), sizeof(*p->labels));
	if (!p->labels) {
		p->short_of_memory = true;
		return;
	}
	p->n_labels = labels_make(&e->rules, &source, p->labels, &e->repairs->labels);
	p->n_parts = 0;
	encode_rows(p, group->row_start, group->row_start + group->n_rows);
	e->repairs->split += p->n_parts > 1;
	free(p->labels);
}

/* Whether type `t` is the first one of its name. */
static bool is_first(const struct batch_view *view, uint32_t t, struct str name)
{
	for (uint32_t i = 0; i < t; i++)
		if (str_eq(batch_str(view, batch_type(view, i).name), name))
			return false;
	return true;
}

/* Groups as they should be: within the columns, and no row in two of them. */
static struct andiron_group whole_group(const struct batch_view *view, uint32_t g, uint32_t from)
{
	struct andiron_group group = batch_group(view, g);
	uint64_t rows = batch_count(view, ANDIRON_COL_ROW);
	uint64_t labels = batch_count(view, ANDIRON_COL_ATTR_INDEX);

	if (group.row_start < from || group.row_start > rows)
		group.n_rows = 0;
	else if (group.n_rows > rows - group.row_start)
		group.n_rows = (uint32_t)(rows - group.row_start);
	if (group.label_start > labels)
		group.n_labels = 0;
	else if (group.n_labels > labels - group.label_start)
		group.n_labels = (uint32_t)(labels - group.label_start);
	return group;
}

static bool has_name(const struct pass *p, const struct andiron_group *group)
{
	for (uint32_t i = 0; i < group->n_rows; i++) {
		uint32_t type = batch_row(p->view, group->row_start + i).type;

		if (type < batch_count(p->view, ANDIRON_COL_TYPE) &&
		    str_eq(batch_str(p->view, batch_type(p->view, type).name), p->name))
			return true;
	}
	return false;
}

static void encode_name(struct pass *p, struct str name)
{
	uint32_t from = 0;

	p->name = name;
	for (uint32_t g = 0; g < batch_count(p->view, ANDIRON_COL_GROUP); g++) {
		struct andiron_group group = whole_group(p->view, g, from);

		if (!group.n_rows)
			continue;
		if (has_name(p, &group))
			encode_group(p, &group);
		from = group.row_start + group.n_rows;
	}
}

/* What servers would drop without a word. */
static void count_rows(const struct batch_view *view, uint64_t lost[SERIES_N_LOSSES])
{
	for (uint32_t i = 0; i < batch_count(view, ANDIRON_COL_ROW); i++) {
		struct andiron_row row = batch_row(view, i);

		if (row.value < 0)
			lost[SERIES_NEGATIVE] += row.samples;
		else if (row.value == 0)
			lost[SERIES_ZERO] += row.samples;
	}
}

void series_encode(const struct series_encoder *e, const struct andiron_batch *batch,
		   uint64_t ret_lost[SERIES_N_LOSSES])
{
	struct batch_view view;
	struct pass p = {.e = e, .view = &view};
	uint64_t known;

	check(e->protocol->limits.max_samples > 0 && e->protocol->limits.max_raw > 0);
	memset(ret_lost, 0, SERIES_N_LOSSES * sizeof(*ret_lost));
	if (batch_view_init(&view, batch) != 0) {
		ret_lost[SERIES_NO_TYPE] = batch->samples;
		return;
	}
	count_rows(&view, ret_lost);
	for (uint32_t t = 0; t < batch_count(&view, ANDIRON_COL_TYPE); t++) {
		struct str name = batch_str(&view, batch_type(&view, t).name);

		if (name.n && is_first(&view, t, name))
			encode_name(&p, name);
	}
	ret_lost[SERIES_TOO_LARGE] = p.too_large;
	known = p.emitted + p.too_large + ret_lost[SERIES_NEGATIVE] + ret_lost[SERIES_ZERO];
	known += encoded_encode(e, &view, ret_lost);
	if (known < batch->samples)
		ret_lost[p.short_of_memory ? SERIES_NO_MEMORY : SERIES_NO_TYPE] = batch->samples -
										  known;
}
