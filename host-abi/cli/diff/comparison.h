/* SPDX-License-Identifier: Apache-2.0 */
/* Two profiles of the command line side by side: read, compared, and written as a table, as JSON or
 * as a page. */
#pragma once

#include "base/buf.h"
#include "cli/report/input.h"
#include "export/diff.h"

struct comparison {
	struct input inputs[DIFF_SIDES];
	const char *names[DIFF_SIDES]; /* paths, borrowed */
	struct diff diff;
	size_t limit; /* rows of a table */
};

/* False: why not is on standard error, as one line. comparison_fini in any case. */
bool comparison_read(struct comparison *c, const char *before, const char *after, size_t limit);
void comparison_fini(struct comparison *c);

/* A profile without anything in it, with which nothing can be compared, or NULL. */
const char *comparison_empty(const struct comparison *c);

/* By how much a function with a tenth of all samples must differ to have changed: a share. */
double comparison_error(const struct comparison *c);

/* These append; 0 or -ENOMEM. */
int comparison_table(struct comparison *c, struct buf *out);
int comparison_json(struct comparison *c, struct buf *out);
int comparison_page(const struct comparison *c, struct buf *out);

/* The function that has grown most by more than `limit`, a share, and how many others have; by its
 * own code if that grew by so much, else with all that it called. False: none has. Markers are no
 * functions. */
struct growth {
	const struct diff_row *row;
	int measure;
	size_t n_others;
};
bool comparison_grown(const struct comparison *c, double limit, struct growth *ret);
