/* SPDX-License-Identifier: Apache-2.0 */
/* See profile-relabel.h. */
#include "profile-labels/profile-relabel.h"

#include "abi/metrics.h"

void profile_relabel_fini(struct profile_relabel *r)
{
	rules_free(&r->rules);
	labels_free(&r->work);
}

static int apply(void *context, struct labels *labels)
{
	const struct rules *rules = context;

	for (size_t i = 0; i < rules->n; i++) {
		int r = rule_apply(rules->p[i], labels);

		if (r != RULE_KEPT)
			return r;
	}
	return 0;
}

int profile_relabel_change(struct profile_relabel *r, const struct andiron_batch *batch,
			   const struct andiron_batch **ret, struct profile_labels_totals *totals)
{
	int rc = profile_labels_change(batch, &r->work, apply, &r->rules, ret, totals);

	r->counts.processed += totals->groups;
	r->counts.written += rc == 0 ? totals->kept : 0;
	r->counts.dropped += totals->groups - totals->kept;
	return rc;
}

void profile_relabel_batch(void *self, const struct andiron_batch *batch)
{
	struct profile_relabel *p = self;
	const struct andiron_batch *changed = NULL;
	struct profile_labels_totals totals;
	int r = profile_relabel_change(p, batch, &changed, &totals);

	profile_labels_send(&p->context, batch, r, changed, &totals);
}

/* Alloy's names; it counts a profile where we count a group of a batch. */
void profile_relabel_metrics(void *self, const struct andiron_metric_sink *sink)
{
	static const struct abi_metric_row rows[] = {
		{"pyroscope_relabel_profiles_processed",
		 ABI_COUNTER(struct profile_counts, processed), "Profiles that came in."},
		{"pyroscope_relabel_profiles_written", ABI_COUNTER(struct profile_counts, written),
		 "Profiles that went on."},
		{"pyroscope_relabel_profiles_dropped", ABI_COUNTER(struct profile_counts, dropped),
		 "Profiles that rules dropped."},
	};
	const struct profile_relabel *p = self;

	abi_metrics(sink, rows, sizeof(rows) / sizeof(*rows), &p->counts);
}
