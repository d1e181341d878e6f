/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the ledger: as a view, as JSON, as a line, and whether it balances. The view is taken
 * under one lock, so its figures belong together. */
#include "base/json.h"
#include "host/report/ledger.h"
#include "host/report/escape.h"

#include <errno.h>
#include <inttypes.h>

struct levels {
	uint64_t in_flight, spooled, uncertain;
};

/* The lock is held. */
static struct levels levels_of(const struct ledger *l, size_t row)
{
	const struct ledger_row *r = &l->rows.p[row];
	struct levels sum = {r->left_in_flight, r->left_spooled, r->left_uncertain};

	vec_each (&l->nodes, at) {
		const struct ledger_node *n = *at;
		uint64_t paths = row < n->paths.n ? n->paths.p[row] : 0;

		sum.in_flight += paths * (n->in_flight + n->queued + n->processing);
		sum.spooled += paths * n->spooled;
		sum.uncertain += paths * n->uncertain;
	}
	return sum;
}

/* Room for everything first, so that pointers into the list stay true. */
static bool reserve_view(struct ledger *l)
{
	size_t reasons = l->skipped.n;

	vec_each (&l->rows, row)
		reasons += row->dropped.n;
	l->writers.n = 0;
	l->view_reasons.n = 0;
	return vec_reserve(&l->writers, l->rows.n) && vec_reserve(&l->view_reasons, reasons);
}

static size_t copy_reasons(struct ledger *l, const struct ledger_reasons *from,
			   const struct ledger_reason **ret, uint64_t *ret_sum)
{
	size_t first = l->view_reasons.n;

	*ret = l->view_reasons.p + first;
	*ret_sum = 0;
	vec_each (from, r) {
		*ret_sum += r->samples;
		if (r->samples)
			l->view_reasons.p[l->view_reasons.n++] = *r;
	}
	return l->view_reasons.n - first;
}

static void view_row(struct ledger *l, size_t row)
{
	const struct ledger_row *r = &l->rows.p[row];
	struct levels levels = levels_of(l, row);
	struct ledger_writer w = {
		.component = r->component,
		.carried = r->carried,
		.delivered = r->delivered,
		.spooled = levels.spooled,
		.uncertain = levels.uncertain,
		.in_flight = levels.in_flight,
	};

	w.n_reasons = copy_reasons(l, &r->dropped, &w.reasons, &w.dropped);
	l->writers.p[l->writers.n++] = w;
}

const struct ledger_view *ledger_view(struct ledger *l)
{
	uint64_t sum;
	bool room;

	pthread_mutex_lock(&l->lock);
	room = reserve_view(l);
	if (room) {
		l->view.taken = l->taken;
		l->view.n_skipped = copy_reasons(l, &l->skipped, &l->view.skipped, &sum);
		for (size_t i = 0; i < l->rows.n; i++)
			view_row(l, i);
		l->view.writers = l->writers.p;
		l->view.n_writers = l->writers.n;
	}
	pthread_mutex_unlock(&l->lock);
	return room ? &l->view : NULL;
}

static uint64_t dropped(const struct ledger_row *r)
{
	uint64_t sum = 0;

	vec_each (&r->dropped, d)
		sum += d->samples;
	return sum;
}

/* What has left the equation's left side, levels of the writer included. The lock is held. */
static uint64_t settled(const struct ledger *l, size_t row, const struct ledger_node *writer)
{
	const struct ledger_row *r = &l->rows.p[row];
	struct levels levels = levels_of(l, row);

	return r->delivered + levels.spooled + levels.uncertain + writer->in_flight + dropped(r);
}

uint64_t ledger_upstream(struct ledger *l, const struct ledger_node *writer, uint64_t *ret_dropped)
{
	uint64_t upstream = 0;

	*ret_dropped = 0;
	pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < l->rows.n; i++) {
		const struct ledger_row *r = &l->rows.p[i];
		uint64_t in = r->taken + r->carried, out;

		if (strcmp(r->component, writer->component) != 0)
			continue;
		*ret_dropped = dropped(r);
		out = settled(l, i, writer);
		upstream = in > out ? in - out : 0;
		vec_each (&l->nodes, n)
			upstream += (i < (*n)->paths.n ? (*n)->paths.p[i] : 0) * (*n)->unread;
	}
	pthread_mutex_unlock(&l->lock);
	return upstream;
}

bool ledger_balanced(struct ledger *l, const char **ret_writer, int64_t *ret_gap)
{
	bool balanced = true;

	pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < l->rows.n && balanced; i++) {
		const struct ledger_row *r = &l->rows.p[i];
		struct levels levels = levels_of(l, i);
		uint64_t out = r->delivered + levels.spooled + levels.uncertain + levels.in_flight +
			       dropped(r);

		balanced = r->taken + r->carried == out;
		if (!balanced && ret_writer)
			*ret_writer = r->component;
		if (!balanced && ret_gap)
			*ret_gap = (int64_t)(r->taken + r->carried - out);
	}
	pthread_mutex_unlock(&l->lock);
	return balanced;
}

static void json_writer(const struct ledger_writer *w, struct buf *out)
{
	json_put_str(out, str_of(w->component));
	buf_printf(out, ": {\"carried\": %" PRIu64 ", \"delivered\": %" PRIu64 ", ", w->carried,
		   w->delivered);
	buf_printf(out, "\"spooled\": %" PRIu64 ", \"uncertain\": %" PRIu64 ", ", w->spooled,
		   w->uncertain);
	buf_printf(out, "\"in_flight\": %" PRIu64 ", \"dropped\": {", w->in_flight);
	for (size_t i = 0; i < w->n_reasons; i++) {
		struct buf key = BUF_NULL;

		buf_printf(&key, "%s:%s", w->reasons[i].component, w->reasons[i].reason);
		out->failed = out->failed || key.failed;
		buf_str_append(out, i ? STR(", ") : STR(""));
		json_put_str(out, buf_str(&key));
		buf_printf(out, ": %" PRIu64, w->reasons[i].samples);
		buf_free(&key);
	}
	buf_str_append(out, STR("}}"));
}

int ledger_json(const struct ledger_view *view, struct buf *out)
{
	buf_printf(out, "{\"taken\": %" PRIu64 ", \"skipped\": {", view->taken);
	for (size_t i = 0; i < view->n_skipped; i++) {
		buf_str_append(out, i ? STR(", ") : STR(""));
		json_put_str(out, str_of(view->skipped[i].reason));
		buf_printf(out, ": %" PRIu64, view->skipped[i].samples);
	}
	buf_str_append(out, STR("}, \"writers\": {"));
	for (size_t i = 0; i < view->n_writers; i++) {
		buf_str_append(out, i ? STR(", ") : STR(""));
		json_writer(&view->writers[i], out);
	}
	buf_str_append(out, STR("}}\n"));
	return out->failed ? -ENOMEM : 0;
}

/* 1234567 as 1,234,567. */
static void number(struct buf *out, uint64_t n)
{
	char digits[24];
	int length = snprintf(digits, sizeof(digits), "%" PRIu64, n);

	for (int i = 0; i < length; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			buf_putc(out, ',');
		buf_putc(out, digits[i]);
	}
}

static void named_number(struct buf *out, const char *before, uint64_t n, const char *what)
{
	buf_str_append(out, str_of(before));
	number(out, n);
	buf_printf(out, " %s", what);
}

static void line_writer(const struct ledger_writer *w, struct buf *out)
{
	buf_str_append(out, STR("; "));
	text_line(out, str_of(w->component));
	named_number(out, ": ", w->delivered, "delivered");
	if (w->carried)
		named_number(out, ", ", w->carried, "carried over from before");
	if (w->spooled)
		named_number(out, ", ", w->spooled, "spooled");
	if (w->uncertain)
		named_number(out, ", ", w->uncertain, "uncertain");
	if (w->in_flight)
		named_number(out, ", ", w->in_flight, "in flight");
	if (!w->dropped)
		return;
	named_number(out, ", ", w->dropped, "dropped (");
	for (size_t i = 0; i < w->n_reasons; i++) {
		buf_printf(out, "%s%s:%s ", i ? ", " : "", w->reasons[i].component,
			   w->reasons[i].reason);
		number(out, w->reasons[i].samples);
	}
	buf_putc(out, ')');
}

int ledger_line(const struct ledger_view *view, struct buf *out)
{
	named_number(out, "samples: ", view->taken, "taken");
	for (size_t i = 0; i < view->n_skipped; i++) {
		buf_str_append(out, i ? STR(", ") : STR(" (skipped: "));
		named_number(out, "", view->skipped[i].samples, view->skipped[i].reason);
	}
	if (view->n_skipped)
		buf_putc(out, ')');
	for (size_t i = 0; i < view->n_writers; i++)
		line_writer(&view->writers[i], out);
	return out->failed ? -ENOMEM : 0;
}
