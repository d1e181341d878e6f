/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flame graph as one HTML file that needs nothing else: the page of
 * flame.html with the tree as JSON in its middle. Every name is a stranger's
 * text: it stands in the file only as a JSON string without '<', '>' or '&',
 * and the page shows it only as text.
 *
 * The JSON: strings[]; frames as the parallel arrays names[], modules[] (into
 * strings) and kinds[] (enum frame_kind); nodes depth first as the parallel
 * arrays frames[], depths[], samples[] and values[] (self; values is null where
 * it is samples times period throughout).
 */
#ifndef FILE_FLAME_H
#define FILE_FLAME_H

#include "file/tree.h"
#include "base/buf.h"

/* The page before and behind the JSON, made from flame.html. */
extern const char flame_page_head[];
extern const char flame_page_tail[];

/* What stands above the picture; empty is left out. */
struct flame_caption {
	struct str title;
	struct str host;
};

/* Appends the page: 0, -ENOMEM, or -E2BIG (out's limit). `p` is what the tree
 * was built from. */
int flame_write(const struct tree *t, const struct profile *p, const struct flame_caption *caption,
		struct buf *out);

#endif
