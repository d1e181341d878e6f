/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in labels.h. A recording has several kinds of profiles and so no name: the server gives
 * each its own. */
#include "java/labels.h"

#include "abi/target-selector.h"

#include <errno.h>
#include <stdlib.h>

#define PID "__process_pid__"

bool labels_keeps(struct str name)
{
	return !str_starts(name, STR("__")) || str_is(name, PID) || target_service_reads(name);
}

/* A copy. */
static struct str service_of(struct arena *arena, const struct target_row *row)
{
	struct str name = target_service_name(arena, "java/", row->labels, row->n_labels);

	return name.p ? arena_str(arena, name) : name;
}

const struct target_label *labels_make(struct arena *arena, const struct target_row *row,
				       uint32_t *ret_n)
{
	struct target_label *labels = arena_array(arena, struct target_label, row->n_labels + 1u);
	uint32_t n = 0;

	for (uint32_t i = 0; labels && i < row->n_labels; i++) {
		const struct target_label *from = &row->labels[i];

		if (str_starts(from->name, STR("__")))
			continue;
		labels[n] = (struct target_label){arena_str(arena, from->name),
						  arena_str(arena, from->value)};
		if (!labels[n].name.p || !labels[n].value.p)
			return NULL;
		n++;
	}
	if (labels && !target_label_value(row, "service_name").n) {
		labels[n] = (struct target_label){STR("service_name"), service_of(arena, row)};
		if (!labels[n++].value.p)
			return NULL;
	}
	if (labels)
		qsort(labels, n, sizeof(*labels), target_label_compare);
	*ret_n = n;
	return labels;
}

int labels_pid(const struct target_row *row, uint32_t *ret, struct error *err)
{
	struct str text = target_label_value(row, PID);
	uint64_t pid;

	if (!text.n)
		return error_set(err, -EINVAL,
				 "the target has no " PID ", which discovery.process gives");
	if (!str_u64(text, &pid) || pid == 0 || pid > INT32_MAX)
		return error_set(err, -EINVAL, PID " is \"%.*s\", which is no process id",
				 STR_FMT(str_first(text, 40)));
	*ret = (uint32_t)pid;
	return 0;
}
