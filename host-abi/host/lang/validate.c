/* SPDX-License-Identifier: Apache-2.0 */
/* What the components say about their arguments. They get a host that can take findings and nothing
 * else; a finding lands at the value it is about. */
#include "host/lang/draft.h"

#include "base/check.h"

#include <errno.h>

struct andiron_report {
	struct draft *d;
	const struct plan_node *node;
};

static int32_t no_error(struct andiron_error *err, int32_t code, const char *text, uint64_t len)
{
	return code;
}

static struct place place_of(const struct andiron_report *report, const struct andiron_value *at)
{
	for (size_t i = 0; at && at->file && at->line && i < report->d->n_sources; i++)
		if (strcmp(report->d->sources[i].name, at->file) == 0)
			return (struct place){&report->d->sources[i], at->line, at->column, 0};
	vec_each (&report->d->imported, imported)
		if (at && at->file && at->line && strcmp((*imported)->name, at->file) == 0)
			return (struct place){*imported, at->line, at->column, 0};
	return report->node->place;
}

static void add(struct andiron_report *report, uint32_t severity, const struct andiron_value *at,
		const char *text, uint64_t len)
{
	struct str said = str_first((struct str){text, len}, 4000);

	diag_add(report->d->l.diags, severity == ANDIRON_REPORT_WARNING ? DIAG_WARNING : DIAG_ERROR,
		 place_of(report, at), NULL, "%.*s", STR_FMT(said));
}

void draft_validate(struct draft *d)
{
	static const struct andiron_host host = {
		.size = offsetof(struct andiron_host, log_enabled),
		.abi_minor = ANDIRON_ABI_MINOR,
		.error_add = no_error,
		.report_add = add,
	};

	vec_each (&d->nodes, node) {
		const struct andiron_component *c = node->plan.registered->component;
		struct andiron_report report = {d, &node->plan};
		int32_t r;

		check(node->plan.id && c);
		if (!node->plan.args || node->borrowed || !c->validate)
			continue;
		draft_about(d, node->scope);
		r = c->validate(&host, node->plan.args, &report);
		if (r == -ENOMEM)
			d->l.no_memory = true;
		else if (r < 0)
			lang_error(&d->l, node->plan.place, NULL, "%s could not be checked: %s",
				   node->plan.id, strerror(-r));
	}
	draft_about(d, NULL);
}
