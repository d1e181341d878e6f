/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a profile batch (andiron/batch.h): the columns resolved once, then every access
 * bounds-checked and O(1). What is out of range, or belongs to a column that is missing, reads as
 * the null entry, so a reader of an untrusted batch cannot run off its end. */
#pragma once

#include "base/str.h"

#include <andiron/batch.h>

struct batch_column {
	const unsigned char *base; /* NULL: the column is missing */
	uint64_t count;
	uint32_t elem_size;
};

struct batch_view {
	const struct andiron_batch *batch;
	struct batch_column columns[ANDIRON_COL_ENCODED + 1];
};

/* Resolves and checks the layout: 0, or -EINVAL if a column, segment or encoded profile lies
 * outside its bounds or is misaligned. The view borrows the batch. */
int batch_view_init(struct batch_view *view, const struct andiron_batch *batch);

/* Entries of a column, 0 if it is missing. */
static inline uint64_t batch_count(const struct batch_view *view, uint32_t column)
{
	return view->columns[column].count;
}

/* Records by value; fields that the producer did not know are zero. */
struct andiron_function batch_function(const struct batch_view *v, uint32_t i);
struct andiron_line batch_line(const struct batch_view *v, uint32_t i);
struct andiron_location batch_location(const struct batch_view *v, uint32_t i);
struct andiron_mapping batch_mapping(const struct batch_view *v, uint32_t i);
struct andiron_stack batch_stack(const struct batch_view *v, uint32_t i);
struct andiron_attribute batch_attribute(const struct batch_view *v, uint32_t i);
struct andiron_profile_type batch_type(const struct batch_view *v, uint32_t i);
struct andiron_group batch_group(const struct batch_view *v, uint32_t i);
struct andiron_row batch_row(const struct batch_view *v, uint32_t i);
struct andiron_loss batch_loss(const struct batch_view *v, uint32_t i);
struct andiron_encoded batch_encoded(const struct batch_view *v, uint32_t i);

/* The location index of frame `i` of the FRAME pool. */
uint32_t batch_frame(const struct batch_view *v, uint32_t i);

/* The attribute at position `i` of the ATTR_INDEX pool. */
struct andiron_attribute batch_attribute_at(const struct batch_view *v, uint32_t i);

/* The bytes of a string, borrowed from the batch. */
struct str batch_str(const struct batch_view *v, uint32_t i);

/* The bytes of an encoded profile, borrowed from the batch. */
struct str batch_encoded_bytes(const struct batch_view *v, const struct andiron_encoded *e);

/* The value of the row's (group's) attribute with that key, as a string or a number; false if it
 * has none. */
bool batch_row_str(const struct batch_view *v, const struct andiron_row *row, struct str key,
		   struct str *ret);
bool batch_row_int(const struct batch_view *v, const struct andiron_row *row, struct str key,
		   int64_t *ret);
bool batch_group_label(const struct batch_view *v, const struct andiron_group *group,
		       struct str key, struct str *ret);
