/* SPDX-License-Identifier: Apache-2.0 */
/* Reading folded (collapsed) stacks: "main;work;leaf 12", a stack a line, the root first. Source:
 * Brendan Gregg's FlameGraph; pyroscope, pkg/og/convert. */
#pragma once

#include "base/error.h"
#include "base/str.h"

#define FOLDED_MAX_FRAMES 1024u

struct folded_line {
	struct str frames; /* separated by ';' */
	uint64_t value;
};

/* Takes the next line that is not empty off the front: 1; 0: there is none; -EBADMSG and a text
 * that names the line. `counted`: a number ends each line; else each line counts once. `*line` is
 * the number of the line, 0 at first. */
int folded_next(struct str *in, bool counted, uint64_t *line, struct folded_line *ret,
		struct error *err);
