/* SPDX-License-Identifier: Apache-2.0 */
/* A flame graph as one HTML file that needs nothing else: the page of flame.html with the call tree
 * as JSON in its middle. Names are untrusted text: they stand in the file only as JSON strings
 * without '<', '>' or '&', and the page shows them only as text.
 *
 * The JSON, in parallel arrays: strings[]; of frames names[], modules[] (strings) and kinds[]
 * (enum frame_kind); of nodes from 1 on parents[] (how many nodes before) and frames[]; keys[]
 * of labels (strings), and sets[] of their values, keys.length each (strings, 0: none); of leaves
 * nodes[], labels[] (sets), samples[] and values[] (null: samples times period throughout);
 * groups[]: keys that the picture is grouped by at first. Of two profiles compared also sides[] of
 * leaves (call-tree.h), and `pair`: what struct flame_pair has, and of each profile when and for
 * how long it was taken, and its losses. */
#pragma once

#include "base/buf.h"
#include "export/call-tree.h"

/* The page before and behind the JSON, made from flame.html. */
extern const char flame_page_head[];
extern const char flame_page_tail[];

/* Two profiles compared: the tree is of both. */
struct flame_pair {
	const struct profile *profiles[2]; /* before and after */
	struct str names[2];
	double weight[2]; /* as in diff.h, as is the limit */
	double limit;
};

/* What stands above the picture; empty is left out. */
struct flame_caption {
	const struct flame_pair *pair; /* or NULL */
	struct str title;
	struct str host;
	const struct str *groups;
	size_t n_groups;
};

/* Appends the page: 0, or -ENOMEM with `out` as before. `p` is what the tree was built from, of a
 * pair the latter. */
int flame_write(const struct call_tree *t, const struct profile *p,
		const struct flame_caption *caption, struct buf *out);
