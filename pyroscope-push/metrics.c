/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a writer. Contract in metrics.h. */
#include "pyroscope-push/metrics.h"

#include "abi/metrics.h"
#include "client/loop.h"

#include <stdio.h>

#define COUNTER(member) ABI_COUNTER(struct endpoint_counts, member)
#define GAUGE(member)   ABI_GAUGE(struct endpoint_counts, member)

static const struct abi_metric_row figures[] = {
	{"sent_bytes_total", COUNTER(sent_bytes), "Bytes delivered."},
	{"sent_raw_bytes_total", COUNTER(sent_raw_bytes),
	 "The same before compression, as servers count."},
	{"sent_profiles_total", COUNTER(sent_profiles), "Profiles delivered."},
	{"dropped_bytes_total", COUNTER(dropped_bytes), "Bytes given up."},
	{"dropped_profiles_total", COUNTER(dropped_profiles), "Profiles given up."},
	{"uncertain_profiles_total", COUNTER(uncertain_profiles),
	 "Profiles sent without an answer, and not sent again."},
	{"expired_profiles_total", COUNTER(expired_profiles), "Profiles given up for their age."},
	{"requests_total", COUNTER(requests), "Requests, every try counted."},
	{"retries_total", COUNTER(retries), "Requests set aside to be tried again."},
	{"split_requests_total", COUNTER(isolated),
	 "Requests whose profiles were sent again one by one."},
	{"latency_nanoseconds_total", COUNTER(latency_ns),
	 "Time until the answer, over all requests."},
	{"queued_bytes", GAUGE(queued_bytes), "Bytes held in memory, those in flight included."},
	{"queued_profiles", GAUGE(queued_profiles), "Profiles held, those in flight included."},
	{"spooled_profiles", GAUGE(spooled_profiles), "Of these, profiles in the spool."},
};

static const struct abi_metric_row uploads[] = {
	{"debuginfo_uploaded_total", ABI_COUNTER(struct uploads_counts, uploaded),
	 "Files that the server has from us."},
	{"debuginfo_bytes_total", ABI_COUNTER(struct uploads_counts, bytes),
	 "Bytes of files sent, every try counted."},
	{"debuginfo_unwanted_total", ABI_COUNTER(struct uploads_counts, unwanted),
	 "Files that the server had already."},
	{"debuginfo_retries_total", ABI_COUNTER(struct uploads_counts, retries),
	 "Uploads set aside to be tried again."},
	{"debuginfo_waiting", ABI_GAUGE(struct uploads_counts, waiting),
	 "Files that wait or are under way."},
};

struct list {
	const struct writer *w;
	const struct andiron_metric_sink *sink;
	char name[128];
};

/* Adds a metric under its full name: "pyroscope.write" and "requests_total" make
 * pyroscope_write_requests_total. */
static void add(struct list *l, struct abi_metric m)
{
	const char *name = m.name;

	snprintf(l->name, sizeof(l->name), "%s_%s", writer_protocol(l->w)->component, name);
	for (char *c = l->name; *c; c++)
		if (*c == '.')
			*c = '_';
	m.name = l->name;
	abi_metric(l->sink, &m);
}

static void add_figure(struct list *l, const struct abi_metric_row *row)
{
	for (size_t i = 0; i < writer_n_endpoints(l->w); i++) {
		const struct endpoint *e = writer_endpoint(l->w, i);
		struct abi_metric m = abi_metric_of(row, endpoint_counts(e));

		m.labels[0].key = "endpoint";
		m.labels[0].value = endpoint_options(e)->name;
		add(l, m);
	}
}

static void add_reasons(struct list *l)
{
	for (size_t i = 0; i < writer_n_endpoints(l->w); i++) {
		const struct endpoint *e = writer_endpoint(l->w, i);
		const struct endpoint_reason *r = endpoint_counts(e)->reasons;

		for (size_t k = 0; k < ENDPOINT_REASONS && r[k].word; k++)
			add(l, (struct abi_metric){
				       "rejected_profiles_total", "Profiles given up, by reason.",
				       (double)r[k].profiles,
				       .labels = {{"endpoint", endpoint_options(e)->name},
						  {"reason", r[k].word}}});
	}
}

static void add_repairs(struct list *l)
{
	const struct series_repairs *r = writer_repairs(l->w);
	const struct {
		const char *word;
		uint64_t n;
	} all[] = {{"label_dropped", r->labels.dropped},
		   {"label_cut", r->labels.cut},
		   {"name_spelled", r->labels.spelled},
		   {"time_moved", r->moved},
		   {"profile_split", r->split}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		add(l, (struct abi_metric){"repairs_total",
					   "What was changed so that servers take it.",
					   (double)all[i].n, .labels = {{"reason", all[i].word}}});
}

static void add_uploads(struct list *l, const struct uploads_counts *c)
{
	for (size_t i = 0; i < sizeof(uploads) / sizeof(uploads[0]); i++)
		add(l, abi_metric_of(&uploads[i], c));
	for (size_t i = 0; i < UPLOADS_REASONS && c->refused[i].word; i++)
		add(l, (struct abi_metric){"debuginfo_refused_total",
					   "Files that were not sent, by reason.",
					   (double)c->refused[i].files,
					   .labels = {{"reason", c->refused[i].word}}});
}

void metrics_add(void *self, const struct andiron_metric_sink *sink)
{
	const struct writer *w = self;
	struct list l = {.w = w, .sink = sink};
	uint64_t max, bytes = writer_spool_bytes(w, &max);

	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		add_figure(&l, &figures[i]);
	add_reasons(&l);
	add_repairs(&l);
	client_loop_metrics(writer_loop(w), sink);
	if (writer_uploads(w))
		add_uploads(&l, writer_uploads(w));
	add(&l, (struct abi_metric){"spool_bytes", "Bytes of the spool on the disk.", (double)bytes,
				    true});
	add(&l, (struct abi_metric){"spool_max_bytes", "Bytes that the spool may take.",
				    (double)max, true});
}
