/* SPDX-License-Identifier: Apache-2.0 */
/* The labels of profiles changed as they pass: for pyroscope.relabel and pyroscope.enrich. A
 * batch's groups have new labels in the batch that goes on; rows and encoded profiles are borrowed
 * from the one that came. */
#pragma once

#include "abi/batch-build.h"
#include "abi/log.h"
#include "relabel/labels.h"

/* Changes the labels of a group: 0, 1 to drop its profiles, or a negative errno (-E2BIG: they have
 * become too large, and it is dropped, too; anything else ends the batch).
 *
 * `__name__` is among the labels where the group has it, or where all profiles of the batch have
 * one name. */
typedef int (*profile_labels_fn)(void *context, struct labels *labels);

struct profile_labels_totals {
	uint64_t dropped, large; /* samples, as the ledger counts them */
	uint64_t groups, kept;
};

/* Calls `change` for each group. 0 and one reference: the batch itself where nothing has changed,
 * NULL where nothing is left; or -EINVAL or -ENOMEM. `work` is the caller's, kept for the next
 * batch. O(groups + rows). */
int profile_labels_change(const struct andiron_batch *batch, struct labels *work,
			  profile_labels_fn change, void *context,
			  const struct andiron_batch **ret, struct profile_labels_totals *totals);

/* Sends what became of `batch`, taking it over, and counts in the ledger what did not become of it;
 * `r` is the answer of profile_labels_change. */
void profile_labels_send(const struct abi_context *c, const struct andiron_batch *batch, int r,
			 const struct andiron_batch *changed,
			 const struct profile_labels_totals *totals);
