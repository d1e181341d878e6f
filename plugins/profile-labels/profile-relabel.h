/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of pyroscope.relabel: rules over the labels of profiles. Rules work on each label set
 * anew: that takes microseconds, so no results are kept, and nothing grows with the number of
 * series. */
#pragma once

#include "profile-labels/profile-labels.h"
#include "relabel/relabel.h"

struct andiron_metric_sink;

/* Over all batches so far; a profile is a group of a batch. */
struct profile_counts {
	uint64_t processed, written, dropped;
};

struct profile_relabel {
	struct abi_context context;
	struct rules rules;
	struct labels work;
	struct profile_counts counts;
};

void profile_relabel_fini(struct profile_relabel *r);

/* As profile_labels_change, and counts. */
int profile_relabel_change(struct profile_relabel *r, const struct andiron_batch *batch,
			   const struct andiron_batch **ret,
			   struct profile_labels_totals *totals);

/* These have the shapes of component.h; `self` is a struct profile_relabel. */
void profile_relabel_batch(void *self, const struct andiron_batch *batch);
void profile_relabel_metrics(void *self, const struct andiron_metric_sink *sink);
