/* SPDX-License-Identifier: Apache-2.0 */
/* The verdicts as text for people, as TAP (version 14) and as JSON. */
#pragma once

#include "cli/conformance/check.h"

#include <stdio.h>

enum report_form { REPORT_TEXT, REPORT_TAP, REPORT_JSON };

struct outcome_report {
	enum report_form form;
	const char *file;
	FILE *out;
	unsigned int n, n_failed, n_skipped;
};

/* Begins, adds a verdict, which is printed at once, and ends. */
void outcome_report_begin(struct outcome_report *r);
void outcome_report_add(struct outcome_report *r, const struct check *check,
			const struct outcome_note *note);
void outcome_report_end(struct outcome_report *r);
