/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus's text format, as andiron_read gives it: one sample a line, after `# TYPE` of its
 * metric. Nothing is allocated; slices are the text's. */
#pragma once

#include "base/str.h"

struct exposition {
	struct str rest;    /* what is not read yet; begin with the whole text */
	struct str counter; /* the metric that was declared a counter last */
};

struct exposition_sample {
	struct str name;
	struct str labels; /* between the braces, as written */
	double value;
	bool counter;
};

/* The next sample; lines that are none are passed over. False at the end. */
bool exposition_next(struct exposition *x, struct exposition_sample *ret);

/* Cuts the first label off the front and gives its value, as written (with its escapes). False:
 * there is none. */
bool exposition_label(struct str *labels, struct str *ret_value);
