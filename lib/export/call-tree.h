/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as a tree of calls: the source of flame graphs, folded text and reports.
 *
 * The tree knows no processes: equal call paths are one node, whoever ran them. A leaf counts what
 * ended at a node under one set of labels, so a reader can group by any label afterwards. Node 0 is
 * the root; a parent comes before its children. */
#pragma once

#include "base/intern.h"
#include "base/vec.h"
#include "pprof/decode.h"
#include "pprof/encode.h"
#include "pprof/table.h"

enum frame_kind {
	FRAME_NATIVE,
	FRAME_KERNEL,
	FRAME_RUNTIME, /* of an interpreter or a just-in-time compiler */
	FRAME_MARKER,  /* no code: the root, or why a stack ends */
	FRAME_UNKNOWN, /* code without a name */
};

/* Strings of the tree. */
struct frame {
	uint32_t name;
	uint32_t module;
	uint32_t source; /* of FRAME_RUNTIME: "/path/file:12", where its function begins; else "" */
	uint32_t kind;   /* enum frame_kind */
};

struct node {
	uint32_t parent;
	uint32_t frame;
};

/* `labels` is a set; set 0 is empty. */
struct leaf {
	uint32_t node;
	uint32_t labels;
	uint32_t side; /* of a pair: 0 before, 1 after; else 0 */
};

/* What stands behind a leaf. */
struct leaf_count {
	int64_t samples; /* the value, where the profile counts no samples */
	int64_t value;
};

/* The tables hold records of the structs above. */
struct call_tree {
	struct intern strings;
	struct table frames, nodes, leaves;
	struct table sets;             /* key and value, key and value…: strings */
	VEC(struct leaf_count) counts; /* by leaf */
	VEC(uint32_t) keys;            /* of labels, as they were met: strings */
	size_t value_type;
	bool no_samples; /* a profile counts none: their place is taken by its value */
};

#define CALL_TREE_BY_FILE 1u /* addresses without a name are one frame "" for each file */

/* 0 or -ENOMEM. Copies what it needs of `p`. Expected O(frames of all samples). */
int call_tree_build(const struct profile *p, uint32_t flags, struct call_tree **ret);

/* One tree of two profiles, of which each shows its default type, to be compared. Functions are the
 * same if they have the same plain name (function-name.h), wherever their file is; those of a
 * runtime also need a source file of the same name. Code without a name is "[FILE]". Labels that
 * only tell processes apart (pid, tid, numbers) are left out. 0 or -ENOMEM. */
int call_tree_build_pair(const struct profile *before, const struct profile *after,
			 struct call_tree **ret);

void call_tree_free(struct call_tree *t);

/* The type that counts samples; false: the profile has none. */
bool call_tree_sample_type(const struct profile *p, size_t *ret);

static inline const struct frame *call_tree_frame(const struct call_tree *t, uint32_t id)
{
	return (const void *)table_get(&t->frames, id).p;
}

static inline const struct node *call_tree_node(const struct call_tree *t, uint32_t id)
{
	return (const void *)table_get(&t->nodes, id).p;
}

static inline const struct leaf *call_tree_leaf(const struct call_tree *t, size_t id)
{
	return (const void *)table_get(&t->leaves, (uint32_t)id).p;
}

/* The value of a label as a string of the tree, 0: the set has none. O(labels). */
uint32_t call_tree_label(const struct call_tree *t, uint32_t set, uint32_t key);

/* A key as a string of the tree, 0: no sample has it. */
uint32_t call_tree_key(const struct call_tree *t, struct str name);

/* The file's name without its folders. */
struct str call_tree_base_name(struct str path);

/* Whether a function's name only stands in for one: "", "[unknown]", or as abi/unsymbolized.h
 * writes. */
bool call_tree_unsymbolized(struct str name, struct str file);
