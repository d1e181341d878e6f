/* SPDX-License-Identifier: Apache-2.0 */
/* See target-report-abi.h. Strings are borrowed all the way; only the arrays are made, and live for one target. */
#include "ebpf/targets/target-report-abi.h"

#include "abi/value.h"
#include "base/arena.h"

static struct andiron_kv *labels_of(struct arena *arena, const struct target_report *report)
{
	struct andiron_kv *labels = arena_array(arena, struct andiron_kv, report->n_labels + 1);

	for (size_t i = 0; labels && i < report->n_labels; i++)
		labels[i] = (struct andiron_kv){abi_str_of(report->labels[i].name),
						abi_str_of(report->labels[i].value)};
	return labels;
}

static struct andiron_target_process *processes_of(struct arena *arena,
						    const struct target_report *report)
{
	struct andiron_target_process *list =
		arena_array(arena, struct andiron_target_process, report->n_processes + 1);

	for (size_t i = 0; list && i < report->n_processes; i++)
		list[i] = (struct andiron_target_process){
			.pid = report->processes[i]->key.tgid,
			.name = abi_str_of(str_of(report->processes[i]->comm))};
	return list;
}

void target_report_add(void *context, const struct target_report *report)
{
	struct target_report_sink *m = context;
	struct arena arena = ARENA_NULL;
	struct andiron_target_processes_row target = {
		.labels = labels_of(&arena, report),
		.n_labels = report->n_labels,
		.processes = processes_of(&arena, report),
		.n_processes = report->n_processes,
		.why = abi_str_of(str_of(report->why)),
	};

	if (target.labels && target.processes)
		m->sink->add(m->sink->self, &target);
	else
		m->failed = true;
	arena_free(&arena);
}
