/* SPDX-License-Identifier: Apache-2.0 */
/* Building a profile batch (andiron/batch.h). The builder interns strings, functions, mappings,
 * locations, stacks and attributes; adding an equal one again gives the index of the first. Order
 * of calls: for each group, batch_group, then its rows.
 *
 * Every add returns an index, or INDEX_NONE when memory or the batch's 64 MiB are used up; `failed`
 * then stays set and batch_finish answers with it, so a run of adds can be checked once. A builder
 * is used by one thread at a time.
 *
 * A derived batch starts from a parent: it borrows every column that is not rebuilt. batch_derive
 * copies nothing but the string table's entries (16 bytes a string, not their bytes). */
#pragma once

#include "abi/batch-view.h"
#include "abi/target-list.h"

#include <andiron/host.h>
#include <andiron/object.h>

struct batch_builder;

/* NULL when memory is short. */
struct batch_builder *batch_builder_new(void);
void batch_builder_free(struct batch_builder *b);

/* Begins a batch that replaces FUNCTION, LINE, LOCATION and STRING of
 * `parent`: its locations are all there under their old indices (change them
 * by batch_set_lines), its functions and lines too. NULL when memory is
 * short. The parent is retained. */
struct batch_builder *batch_derive(const struct andiron_batch *parent);

/* Begins a batch that replaces the groups of `parent`, their rows and encoded profiles: the caller
 * adds anew what is to stay. Rows, and the attributes they refer to, stay true as they are read
 * from the parent. NULL when memory is short. The parent is retained. */
struct batch_builder *batch_regroup(const struct andiron_batch *parent);

uint32_t batch_add_string(struct batch_builder *b, struct str s);
uint32_t batch_add_function(struct batch_builder *b, const struct andiron_function *f);
uint32_t batch_add_mapping(struct batch_builder *b, const struct andiron_mapping *m);
/* Locations are equal if address, mapping, kind and runtime are. Its lines start empty. */
uint32_t batch_add_location(struct batch_builder *b, const struct andiron_location *l);
/* Gives a location its lines, inlined callees first. Not for a location that has some. False on
 * failure. */
bool batch_set_lines(struct batch_builder *b, uint32_t location, const struct andiron_line *lines,
		     uint32_t n);
/* Marks a location as looked up in vain. */
void batch_set_tried(struct batch_builder *b, uint32_t location);
/* Adds a location and, where it has no lines yet, these. */
uint32_t batch_add_named(struct batch_builder *b, const struct andiron_location *l,
			 const struct andiron_line *lines, uint32_t n);
/* A location that says why a stack ends: kind MARKER, one line with `text` as its function. */
uint32_t batch_add_marker(struct batch_builder *b, struct str text);
/* The same of a language runtime: its frame type is the function's file. */
uint32_t batch_add_marker_of(struct batch_builder *b, struct str text, struct str frame_type);
/* Location indices, leaf first. */
uint32_t batch_add_stack(struct batch_builder *b, const uint32_t *locations, uint32_t n);

uint32_t batch_add_str_attribute(struct batch_builder *b, struct str key, struct str value);
uint32_t batch_add_int_attribute(struct batch_builder *b, struct str key, int64_t value);
/* A run of the ATTR_INDEX pool; equal runs are one. Returns its start. */
uint32_t batch_add_attributes(struct batch_builder *b, const uint32_t *attributes, uint32_t n);

uint32_t batch_add_type(struct batch_builder *b, const struct andiron_profile_type *type);
/* Begins a group; its labels are attributes sorted by key. */
uint32_t batch_group_begin(struct batch_builder *b, const uint32_t *labels, uint32_t n);
/* Adds a row to the group begun last. Rows are not merged. */
bool batch_add_row(struct batch_builder *b, const struct andiron_row *row);
/* Adds a profile as somebody else has encoded it, to the group begun last, which has no rows. The
 * bytes, not empty, are copied; of `e` the format and what follows it is taken. */
bool batch_add_encoded(struct batch_builder *b, const struct andiron_encoded *e, struct str bytes);
/* Adds one of the parent's, as it is, to the group begun last; its bytes are not copied. */
bool batch_keep_encoded(struct batch_builder *b, const struct andiron_encoded *e);
bool batch_add_loss(struct batch_builder *b, struct str reason, uint64_t samples);

/* Keeps an object alive as long as the batch; one reference of the caller's passes over. */
bool batch_hold_object(struct batch_builder *b, const struct andiron_extension *objects,
		       uint64_t object);

/* Makes the batch: 0 and one reference in *ret, or -ENOMEM or -E2BIG. The builder is used up either
 * way and is freed by this call. start_ns, end_ns, producer, sequence and demangle are taken from
 * `head` (a derived batch keeps its parent's); sums are computed. O(size). */
struct batch_head {
	int64_t start_ns, end_ns;
	uint64_t producer, sequence;
	uint32_t demangle;
};
int batch_finish(struct batch_builder *b, const struct batch_head *head,
		 const struct andiron_batch **ret);

/* One profile, with the labels of its series: in any order, of equal names the last wins, those
 * without a value are left out. The rest is as in andiron_encoded. */
struct encoded_profile {
	const struct target_label *labels;
	size_t n_labels;
	uint32_t format;
	struct str bytes; /* not empty */
	struct str content_type, query;
	uint64_t raw_bytes, n_stacks; /* 0: nobody has read it through */
	int64_t start_ns, end_ns;     /* 0: the batch's */
};

/* A batch of these, a group for each: 0 and one reference in *ret, or -ENOMEM, or -E2BIG where they
 * are more than a batch may be. All is copied. O(bytes). */
int encoded_batch(const struct encoded_profile *profiles, size_t n, const struct batch_head *head,
		  const struct andiron_batch **ret);

static inline void batch_retain(const struct andiron_batch *batch)
{
	batch->retain(batch->owner);
}

static inline void batch_release(const struct andiron_batch *batch)
{
	batch->release(batch->owner);
}
