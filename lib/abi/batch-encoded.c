/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of encoded profiles. A label set is sorted as that of a target is, since a group's labels
 * are. Contract in batch-build.h. */
#include "abi/batch-build.h"
#include "abi/target-row.h"

#include <errno.h>
#include <stdlib.h>

static int begin_group(struct batch_builder *b, const struct target_label *labels, size_t n)
{
	uint32_t n_sorted;
	struct target_label *sorted = target_labels_copy(labels, n, &n_sorted);
	uint32_t *attributes = sorted ? calloc(n_sorted + 1, sizeof(*attributes)) : NULL;

	for (uint32_t i = 0; attributes && i < n_sorted; i++)
		attributes[i] = batch_add_str_attribute(b, sorted[i].name, sorted[i].value);
	if (attributes)
		batch_group_begin(b, attributes, n_sorted);
	free(sorted);
	free(attributes);
	return sorted && attributes ? 0 : -ENOMEM;
}

static int add(struct batch_builder *b, const struct encoded_profile *p)
{
	struct andiron_encoded e = {
		.format = p->format,
		.content_type = batch_add_string(b, p->content_type),
		.query = batch_add_string(b, p->query),
		.raw_bytes = p->raw_bytes,
		.n_stacks = p->n_stacks,
		.start_ns = p->start_ns,
		.end_ns = p->end_ns,
	};
	int r = begin_group(b, p->labels, p->n_labels);

	/* What fails within is remembered by the builder. */
	if (r == 0)
		batch_add_encoded(b, &e, p->bytes);
	return r;
}

int encoded_batch(const struct encoded_profile *profiles, size_t n, const struct batch_head *head,
		  const struct andiron_batch **ret)
{
	struct batch_builder *b = batch_builder_new();
	int r = b ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && r == 0; i++)
		r = add(b, &profiles[i]);
	if (r == 0)
		return batch_finish(b, head, ret);
	batch_builder_free(b);
	return r;
}
