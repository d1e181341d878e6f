/* SPDX-License-Identifier: Apache-2.0 */
/* Reports dropped targets. Contract in dropped.h. */
#include "relabel/dropped.h"

#include "abi/value.h"

#include <errno.h>

struct report {
	struct relabel *relabel;
	const struct andiron_dropped_targets_sink *sink;
	VEC(struct andiron_kv) labels;
	int failure;
};

static void report_dropped(void *context, const struct target_row *row, size_t rule)
{
	struct report *t = context;
	const struct rule *by = rule ? relabel_rule(t->relabel, rule) : NULL;
	struct andiron_dropped_target target = {.rule = (uint32_t)rule};

	t->labels.n = 0;
	if (!vec_reserve(&t->labels, row->n_labels + 1)) {
		t->failure = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < row->n_labels; i++)
		t->labels.p[t->labels.n++] = (struct andiron_kv){abi_str_of(row->labels[i].name),
								 abi_str_of(row->labels[i].value)};
	target.labels = t->labels.p;
	target.n_labels = t->labels.n;
	if (by) {
		target.file = rule_file(by);
		target.line = rule_line(by);
	} else {
		target.reason = abi_str_of(STR("the rules make its labels too large"));
	}
	t->sink->add(t->sink->self, &target);
}

int dropped_each(struct relabel *relabel, const struct andiron_targets *targets,
		 const struct andiron_dropped_targets_sink *sink)
{
	struct report t = {.relabel = relabel, .sink = sink};
	int r = relabel_each_dropped(relabel, targets, report_dropped, &t);

	vec_free(&t.labels);
	return r ? r : t.failure;
}
