/* SPDX-License-Identifier: Apache-2.0 */
/* The labels of a series: a group's and the configuration's, within the limits of every server.
 * Sources: pyroscope, pkg/validation (30 names, one of them the server's "process"; names of 1024
 * bytes, values of 2048; UTF-8; no empty name, none twice); parca refuses a name given twice. */
#pragma once

#include "abi/batch-view.h"
#include "push-protocols/protocol.h"

#define LABELS_MAX       29u /* and one name that a sample's own label may add */
#define LABELS_MAX_NAME  1024u
#define LABELS_MAX_VALUE 2048u

/* What was done to labels so that servers take them. */
struct label_repairs {
	uint64_t dropped; /* no name, no UTF-8, a name too long, or too many */
	uint64_t cut;     /* values that were too long */
	uint64_t spelled; /* profile names with characters that servers refuse */
};

struct label_rules {
	const struct label_rename *renames; /* ends with NULLs; NULL: none */
	const struct label *defaults;       /* for what the group does not say */
	size_t n_defaults;
	const struct label *external; /* win over the group's own */
	size_t n_external;
};

/* Whose labels: a group of a batch, and the name of its profiles. `spelled` keeps that name as it
 * is sent, for as long as the labels are used. */
struct label_source {
	const struct batch_view *view;
	const struct andiron_group *group;
	struct str name;
	char *spelled; /* EXPORT_SPELLED_MAX bytes */
};

/* Room for labels_make: entries, at most. */
size_t labels_room(const struct label_rules *rules, const struct andiron_group *group);

/* The labels of a source's series, sorted by name, names unique, `out` having labels_room entries;
 * returns how many.
 *
 * Names that begin with "__" stay behind, but for __name__. A value too long is cut between
 * characters. Of too many names those go first that say least about where a profile came from:
 * __name__ and service_name stay, then external labels, then namespace, pod, container, node,
 * cluster, job and instance, then the rest by name. */
size_t labels_make(const struct label_rules *rules, const struct label_source *source,
		   struct label *out, struct label_repairs *repairs);
