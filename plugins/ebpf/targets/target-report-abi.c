/* SPDX-License-Identifier: Apache-2.0 */
/* See target-report-abi.h. Strings are borrowed all the way; only the arrays are made, and live for one target. */
#include "ebpf/targets/target-report-abi.h"

#include "abi/value.h"
#include "base/arena.h"

static struct andiron_kv *labels_of(struct arena *arena, const struct told_target *told)
{
	struct andiron_kv *labels = arena_array(arena, struct andiron_kv, told->n_labels + 1);

	for (size_t i = 0; labels && i < told->n_labels; i++)
		labels[i] = (struct andiron_kv){abi_str_of(told->labels[i].name),
						abi_str_of(told->labels[i].value)};
	return labels;
}

static struct andiron_target_process *processes_of(struct arena *arena,
						    const struct told_target *told)
{
	struct andiron_target_process *list =
		arena_array(arena, struct andiron_target_process, told->n_processes + 1);

	for (size_t i = 0; list && i < told->n_processes; i++)
		list[i] = (struct andiron_target_process){
			.pid = told->processes[i]->key.tgid,
			.name = abi_str_of(str_of(told->processes[i]->comm))};
	return list;
}

void matched_add(void *context, const struct told_target *told)
{
	struct matched *m = context;
	struct arena arena = ARENA_NULL;
	struct andiron_target_processes_row target = {
		.labels = labels_of(&arena, told),
		.n_labels = told->n_labels,
		.processes = processes_of(&arena, told),
		.n_processes = told->n_processes,
		.why = abi_str_of(str_of(told->why)),
	};

	if (target.labels && target.processes)
		m->sink->add(m->sink->self, &target);
	else
		m->failed = true;
	arena_free(&arena);
}
