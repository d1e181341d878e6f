/* SPDX-License-Identifier: Apache-2.0 */
/* See outcome-report.h. JSON is written a check a line as well, so that what was found is there
 * also where this process is ended. */
#include "cli/conformance/outcome-report.h"

#include "base/json.h"

#include <stdlib.h>

/* It passes where nothing is said of it here. */
static const char *word(const struct outcome_note *note)
{
	switch ((enum outcome)note->outcome) {
	case OUTCOME_FAILED:
		return "failed";
	case OUTCOME_SKIPPED:
		return "skipped";
	case OUTCOME_NONE:
	case OUTCOME_PASSED:
	case OUTCOME_OTHER_KIND:
		break;
	}
	return "ok";
}

void outcome_report_begin(struct outcome_report *r)
{
	struct buf out = BUF_NULL;

	if (r->form == REPORT_TEXT)
		fprintf(r->out, "%s\n", r->file);
	if (r->form == REPORT_TAP)
		fprintf(r->out, "TAP version 14\n# %s\n", r->file);
	if (r->form == REPORT_JSON) {
		json_put_str(&out, str_of(r->file));
		fprintf(r->out, "{\"file\": %.*s, \"checks\": [", STR_FMT(buf_str(&out)));
	}
	buf_free(&out);
}

static void add_text(const struct outcome_report *r, const struct check *check,
		     const struct outcome_note *note)
{
	const char *gap = *note->component ? "  " : "";

	if (note->outcome == OUTCOME_FAILED)
		fprintf(r->out,
			"FAILED   %s%s%s: %s\n"
			"         what: %s\n"
			"         why:  %s\n"
			"         do:   %s\n",
			check->name, gap, note->component, check->meaning, note->text, check->why,
			check->remedy);
	else if (note->outcome == OUTCOME_SKIPPED)
		fprintf(r->out, "skipped  %s%s%s: needs %s\n", check->name, gap, note->component,
			note->text);
	else
		fprintf(r->out, "ok       %s%s%s%s%s%s\n", check->name, gap, note->component,
			*note->text ? " (" : "", note->text, *note->text ? ")" : "");
}

static void add_tap(const struct outcome_report *r, const struct check *check,
		    const struct outcome_note *note)
{
	fprintf(r->out, "%s %u - %s%s%s", note->outcome == OUTCOME_FAILED ? "not ok" : "ok", r->n,
		check->name, *note->component ? " " : "", note->component);
	if (note->outcome == OUTCOME_SKIPPED)
		fprintf(r->out, " # SKIP needs %s", note->text);
	fputc('\n', r->out);
	if (note->outcome == OUTCOME_FAILED)
		fprintf(r->out, "# what: %s\n# why:  %s\n# do:   %s\n", note->text, check->why,
			check->remedy);
}

static void add_json(const struct outcome_report *r, const struct check *check,
		     const struct outcome_note *note)
{
	const char *const members[][2] = {
		{"check", check->name},    {"component", note->component},
		{"outcome", word(note)},   {"meaning", check->meaning},
		{"text", note->text},      {"why", check->why},
		{"remedy", check->remedy},
	};
	struct buf out = BUF_NULL;

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		buf_printf(&out, "%s\"%s\": ", i ? ", " : "", members[i][0]);
		json_put_str(&out, str_of(members[i][1]));
	}
	fprintf(r->out, "%s\n  {%.*s}", r->n > 1 ? "," : "", STR_FMT(buf_str(&out)));
	buf_free(&out);
}

void outcome_report_add(struct outcome_report *r, const struct check *check,
			const struct outcome_note *note)
{
	if (note->outcome == OUTCOME_OTHER_KIND)
		return;
	r->n++;
	r->n_failed += note->outcome == OUTCOME_FAILED;
	r->n_skipped += note->outcome == OUTCOME_SKIPPED;
	if (r->form == REPORT_TEXT)
		add_text(r, check, note);
	else if (r->form == REPORT_TAP)
		add_tap(r, check, note);
	else
		add_json(r, check, note);
	fflush(r->out);
}

void outcome_report_end(struct outcome_report *r)
{
	unsigned int n_passed = r->n - r->n_failed - r->n_skipped;

	if (r->form == REPORT_TEXT)
		fprintf(r->out, "%u ok, %u failed, %u skipped\n", n_passed, r->n_failed,
			r->n_skipped);
	if (r->form == REPORT_TAP)
		fprintf(r->out, "1..%u\n", r->n);
	if (r->form == REPORT_JSON)
		fprintf(r->out, "\n], \"ok\": %u, \"failed\": %u, \"skipped\": %u}\n", n_passed,
			r->n_failed, r->n_skipped);
}
