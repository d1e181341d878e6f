/* SPDX-License-Identifier: Apache-2.0 */
/* Encoded profiles to records. A profile counts as one: in parts, with its first, so that the sum
 * over its records is one at any moment. Contract in encoded.h. */
#include "pyroscope-push/encoded.h"

#include "base/check.h"
#include "export/pprof.h"
#include "pprof/scan.h"
#include "pprof/split.h"

#include <errno.h>
#include <stdlib.h>

#define GZIP_LEVEL 1

/* One profile under way. */
struct pass {
	const struct series_encoder *e;
	const struct batch_view *view;
	struct andiron_encoded profile;
	struct str bytes;
	struct label *labels;
	size_t n_labels, label_bytes;
	int64_t start_ns, end_ns;
	uint64_t n_parts;
};

static int emit(struct pass *p, struct record *r, size_t raw)
{
	if (!r || r->message.failed) {
		record_free(r);
		return -ENOMEM;
	}
	r->samples = p->n_parts++ == 0;
	r->time_ns = p->end_ns;
	r->raw_bytes = raw + p->label_bytes;
	p->e->emit(p->e->context, r);
	return 0;
}

static int emit_pprof(struct pass *p, struct str pprof, size_t raw)
{
	struct record *r = calloc(1, sizeof(*r));

	if (r)
		p->e->protocol->put_series(&r->message, p->labels, p->n_labels, pprof);
	return emit(p, r, raw);
}

static int emit_part(void *context, struct str pprof, size_t raw)
{
	struct pass *p = context;

	/* One stack alone can be too large: what the others are is worth sending. */
	return raw + p->label_bytes > p->e->protocol->limits.hard_raw ? 0
								      : emit_pprof(p, pprof, raw);
}

static enum series_loss loss_of(int r)
{
	return r == -ENOMEM ? SERIES_NO_MEMORY : r == -E2BIG ? SERIES_TOO_LARGE : SERIES_MALFORMED;
}

/* Writes it again, in as many parts as it takes; SERIES_N_LOSSES: nothing is lost. */
static enum series_loss rewrite(struct pass *p, const struct profile *profile)
{
	const struct series_limits *limits = &p->e->protocol->limits;
	struct pprof_split split = {
		.max_samples = limits->max_samples,
		.max_raw = limits->max_raw,
		.time_ns = profile->time_ns ? profile->time_ns : p->end_ns,
		.level = GZIP_LEVEL,
		.part = emit_part,
		.context = p,
	};
	int r = pprof_write_parts(profile, &split);

	p->e->repairs->split += p->n_parts > 1;
	if (p->n_parts)
		return SERIES_N_LOSSES;
	return r < 0 ? loss_of(r) : SERIES_TOO_LARGE;
}

/* What the maker of the batch knows, or a look at it. */
static int facts_of(const struct pass *p, struct pprof_scan *ret)
{
	if (p->profile.raw_bytes && !p->e->protocol->whole) {
		*ret = (struct pprof_scan){.raw_bytes = p->profile.raw_bytes,
					   .n_samples = p->profile.n_stacks};
		return 0;
	}
	return pprof_scan(p->bytes, PROFILE_MAX_BYTES, ret, NULL);
}

static bool has_values(const struct profile *p)
{
	for (size_t i = 0; i < p->n_values; i++)
		if (p->values[i])
			return true;
	return false;
}

static enum series_loss encode_pprof(struct pass *p)
{
	const struct protocol *protocol = p->e->protocol;
	struct pprof_scan facts;
	struct profile *profile = NULL;
	enum series_loss loss = SERIES_N_LOSSES;
	int r = facts_of(p, &facts);
	bool again = r == 0 && (facts.raw_bytes + p->label_bytes > protocol->limits.hard_raw ||
				facts.n_samples > protocol->limits.max_samples ||
				(protocol->whole && !facts.has_period_type));

	if (r == 0 && (again || protocol->whole))
		r = profile_decode(p->bytes, &profile, NULL);
	if (r == 0 && profile && !has_values(profile))
		loss = SERIES_ZERO;
	else if (r == 0 && again)
		loss = rewrite(p, profile);
	else if (r == 0)
		r = emit_pprof(p, p->bytes, facts.raw_bytes);
	profile_free(profile);
	return r < 0 ? loss_of(r) : loss;
}

/* The application's name is the service's, else the profile's, of which /ingest knows a part
 * ("shop.cpu"). */
static struct str application_of(const struct pass *p, const struct andiron_group *group)
{
	struct str service = STR("unspecified"), name;

	for (size_t i = 0; i < p->n_labels; i++)
		if (str_is(p->labels[i].name, "service_name"))
			service = p->labels[i].value;
	if (str_is(service, "unspecified") &&
	    batch_group_label(p->view, group, STR("__name__"), &name) && name.n)
		return name;
	return service;
}

static enum series_loss encode_other(struct pass *p, const struct andiron_group *group)
{
	struct ingest in = {
		.name = application_of(p, group),
		.query = batch_str(p->view, p->profile.query),
		.content_type = batch_str(p->view, p->profile.content_type),
		.body = p->bytes,
		.start_ns = p->start_ns,
		.end_ns = p->end_ns,
	};
	struct record *r;

	if (!p->e->protocol->ingest || (p->profile.format != ANDIRON_ENCODED_JFR &&
					p->profile.format != ANDIRON_ENCODED_INGEST))
		return SERIES_FORMAT;
	if (!in.query.n && p->profile.format == ANDIRON_ENCODED_JFR)
		in.query = STR("format=jfr");
	r = calloc(1, sizeof(*r));
	if (r)
		ingest_put(&r->message, &in, p->labels, p->n_labels);
	return emit(p, r, p->bytes.n) < 0 ? SERIES_NO_MEMORY : SERIES_N_LOSSES;
}

/* Not ahead of our clock: records' times go into the spool, and later ones follow them. */
static void find_window(struct pass *p)
{
	const struct andiron_batch *batch = p->view->batch;
	int64_t end = p->profile.end_ns ? p->profile.end_ns : batch->end_ns;
	int64_t start = p->profile.start_ns ? p->profile.start_ns : batch->start_ns;

	p->end_ns = end > 0 && end < p->e->now_ns ? end : p->e->now_ns;
	p->start_ns = start > 0 && start < p->end_ns ? start : p->end_ns;
}

static enum series_loss encode(struct pass *p)
{
	struct andiron_group group = batch_group(p->view, p->profile.group);
	char spelled[EXPORT_SPELLED_MAX];
	struct label_source source = {p->view, &group, STR("unspecified"), spelled};
	uint64_t pool = batch_count(p->view, ANDIRON_COL_ATTR_INDEX);
	enum series_loss loss;

	if (group.label_start > pool || group.n_labels > pool - group.label_start)
		return SERIES_MALFORMED;
	p->labels = calloc(labels_room(&p->e->rules, &group), sizeof(*p->labels));
	if (!p->labels)
		return SERIES_NO_MEMORY;
	p->n_labels = labels_make(&p->e->rules, &source, p->labels, &p->e->repairs->labels);
	for (size_t i = 0; i < p->n_labels; i++)
		p->label_bytes += p->labels[i].name.n + p->labels[i].value.n;
	find_window(p);
	loss = p->profile.format == ANDIRON_ENCODED_PPROF ? encode_pprof(p)
							  : encode_other(p, &group);
	free(p->labels);
	return loss;
}

uint64_t encoded_encode(const struct series_encoder *e, const struct batch_view *view,
			uint64_t lost[SERIES_N_LOSSES])
{
	uint64_t n = batch_count(view, ANDIRON_COL_ENCODED);

	for (uint32_t i = 0; i < n; i++) {
		struct pass p = {.e = e, .view = view, .profile = batch_encoded(view, i)};
		enum series_loss loss;

		p.bytes = batch_encoded_bytes(view, &p.profile);
		loss = encode(&p);
		if (loss != SERIES_N_LOSSES)
			lost[loss]++;
	}
	return n;
}
