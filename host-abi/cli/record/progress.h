/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording shows while it runs: a bar on a terminal, one line else. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool terminal;
	int64_t started_ns;  /* CLOCK_MONOTONIC */
	int64_t duration_ns; /* 0: open-ended */
};

/* How often to draw. */
#define PROGRESS_EVERY_NS INT64_C(100000000)

/* Begins, with a line that says what is recorded. */
void progress_begin(struct progress *p, int64_t duration_ns, const char *what);
void progress_draw(const struct progress *p);
/* Clears the bar. */
void progress_end(const struct progress *p);
