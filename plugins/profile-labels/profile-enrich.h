/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of pyroscope.enrich: profiles get labels of the target that one label of theirs names.
 * It holds the targets once, and a list of them sorted by the label that is looked for. */
#pragma once

#include "abi/target-list.h"
#include "abi/value.h"
#include "profile-labels/profile-labels.h"

struct andiron_metric_sink;

struct enrich_options {
	struct str target_label;  /* of targets: what is looked for in it */
	struct str profile_label; /* of profiles: what is looked for */
	struct str *copied;       /* which labels they get */
	size_t n_copied;          /* 0: all that do not begin with two underscores */
};

struct enrich_entry {
	struct str value;
	size_t order; /* among equal ones the last counts */
	const struct target_row *row;
};

struct enrich {
	struct abi_context context;
	struct enrich_options options;
	struct arena memory; /* of the options */
	struct target_table *targets;
	struct {
		struct enrich_entry *p;
		size_t n, capacity;
	} list;
	bool listed; /* the list is that of the targets */
	struct labels work;
	uint64_t profiles, enriched;
};

/* 0 or -ENOMEM. */
int enrich_init(struct enrich *e, const struct abi_context *context);
void enrich_fini(struct enrich *e);

/* Copies the options; on failure the former stay. 0 or -ENOMEM. */
int enrich_set(struct enrich *e, const struct enrich_options *options);
/* The same from a configuration's arguments. */
int enrich_set_args(struct enrich *e, const struct andiron_value *args);

/* As profile_labels_change; nothing is dropped. A profile that no target fits goes on as it came.
 * The first batch after targets changed costs O(n log n) targets. */
int enrich_change(struct enrich *e, const struct andiron_batch *batch,
		  const struct andiron_batch **ret, struct profile_labels_totals *totals);

/* These have the shapes of component.h; `self` is a struct enrich. */
void enrich_targets(void *self, const char *port, const struct andiron_targets *update);
void enrich_batch(void *self, const struct andiron_batch *batch);
void enrich_metrics(void *self, const struct andiron_metric_sink *sink);
