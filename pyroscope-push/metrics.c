/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a writer. Contract in metrics.h. */
#include "pyroscope-push/metrics.h"

#include <stddef.h>
#include <stdio.h>

static const struct {
	const char *name, *help;
	bool gauge;
	size_t offset; /* of a uint64_t in struct endpoint_counts */
} figures[] = {
	{"sent_bytes_total", "Bytes delivered.", false,
	 offsetof(struct endpoint_counts, sent_bytes)},
	{"sent_raw_bytes_total", "The same before compression, as servers count.", false,
	 offsetof(struct endpoint_counts, sent_raw_bytes)},
	{"sent_profiles_total", "Profiles delivered.", false,
	 offsetof(struct endpoint_counts, sent_profiles)},
	{"dropped_bytes_total", "Bytes given up.", false,
	 offsetof(struct endpoint_counts, dropped_bytes)},
	{"dropped_profiles_total", "Profiles given up.", false,
	 offsetof(struct endpoint_counts, dropped_profiles)},
	{"uncertain_profiles_total", "Profiles sent without an answer, and not sent again.", false,
	 offsetof(struct endpoint_counts, uncertain_profiles)},
	{"expired_profiles_total", "Profiles given up for their age.", false,
	 offsetof(struct endpoint_counts, expired_profiles)},
	{"requests_total", "Requests, every try counted.", false,
	 offsetof(struct endpoint_counts, requests)},
	{"retries_total", "Requests set aside to be tried again.", false,
	 offsetof(struct endpoint_counts, retries)},
	{"split_requests_total", "Requests whose profiles were sent again one by one.", false,
	 offsetof(struct endpoint_counts, isolated)},
	{"latency_nanoseconds_total", "Time until the answer, over all requests.", false,
	 offsetof(struct endpoint_counts, latency_ns)},
	{"queued_bytes", "Bytes held in memory, those in flight included.", true,
	 offsetof(struct endpoint_counts, queued_bytes)},
	{"queued_profiles", "Profiles held, those in flight included.", true,
	 offsetof(struct endpoint_counts, queued_profiles)},
	{"spooled_profiles", "Of these, profiles in the spool.", true,
	 offsetof(struct endpoint_counts, spooled_profiles)},
};

struct list {
	const struct writer *w;
	void (*add)(void *context, const struct push_metric *m);
	void *context;
	char name[128];
};

/* "pyroscope.write" and "requests_total": pyroscope_write_requests_total. */
static const char *full_name(struct list *l, const char *name)
{
	snprintf(l->name, sizeof(l->name), "%s_%s", writer_component(l->w), name);
	for (char *c = l->name; *c; c++)
		if (*c == '.')
			*c = '_';
	return l->name;
}

static void add_endpoints(struct list *l, size_t figure)
{
	for (size_t i = 0; i < writer_n_endpoints(l->w); i++) {
		const struct endpoint *e = writer_endpoint(l->w, i);
		struct push_metric m = {.name = full_name(l, figures[figure].name),
					.help = figures[figure].help,
					.gauge = figures[figure].gauge,
					.endpoint = endpoint_name(e)};
		uint64_t value;

		memcpy(&value, (const char *)endpoint_counts(e) + figures[figure].offset,
		       sizeof(value));
		m.value = (double)value;
		l->add(l->context, &m);
	}
}

static void add_reasons(struct list *l)
{
	for (size_t i = 0; i < writer_n_endpoints(l->w); i++) {
		const struct endpoint *e = writer_endpoint(l->w, i);
		const struct endpoint_reason *r = endpoint_counts(e)->reasons;

		for (size_t k = 0; k < ENDPOINT_REASONS && r[k].word; k++)
			l->add(l->context, &(struct push_metric){
						   .name = full_name(l, "rejected_profiles_total"),
						   .help = "Profiles given up, by reason.",
						   .endpoint = endpoint_name(e),
						   .reason = r[k].word,
						   .value = (double)r[k].profiles});
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
		l->add(l->context, &(struct push_metric){.name = full_name(l, "repairs_total"),
							 .help = "What was changed so that servers "
								 "take it.",
							 .reason = all[i].word,
							 .value = (double)all[i].n});
}

static void add_uploads(struct list *l)
{
	const struct uploads_counts *c = writer_uploads(l->w);
	const struct {
		const char *name, *help;
		bool gauge;
		uint64_t value;
	} all[] = {
		{"debuginfo_uploaded_total", "Files that the server has from us.", false,
		 c ? c->uploaded : 0},
		{"debuginfo_bytes_total", "Bytes of files sent, every try counted.", false,
		 c ? c->bytes : 0},
		{"debuginfo_unwanted_total", "Files that the server had already.", false,
		 c ? c->unwanted : 0},
		{"debuginfo_retries_total", "Uploads set aside to be tried again.", false,
		 c ? c->retries : 0},
		{"debuginfo_waiting", "Files that wait or are under way.", true,
		 c ? c->waiting : 0},
	};

	for (size_t i = 0; c && i < sizeof(all) / sizeof(all[0]); i++)
		l->add(l->context, &(struct push_metric){.name = full_name(l, all[i].name),
							 .help = all[i].help,
							 .gauge = all[i].gauge,
							 .value = (double)all[i].value});
	for (size_t i = 0; c && i < UPLOADS_REASONS && c->refused[i].word; i++)
		l->add(l->context,
		       &(struct push_metric){.name = full_name(l, "debuginfo_refused_total"),
					     .help = "Files that were not sent, by reason.",
					     .reason = c->refused[i].word,
					     .value = (double)c->refused[i].files});
}

void metrics_list(const struct writer *w, void (*add)(void *context, const struct push_metric *m),
		  void *context)
{
	struct list l = {.w = w, .add = add, .context = context};

	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		add_endpoints(&l, i);
	add_reasons(&l);
	add_repairs(&l);
	add_uploads(&l);
	add(context, &(struct push_metric){.name = full_name(&l, "spool_bytes"),
					   .help = "Bytes of the spool on the disk.",
					   .gauge = true,
					   .value = (double)writer_spool_bytes(w)});
}
