/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile as a tree of calls: what folded text and flame graphs are drawn
 * from. Node 0 is the root and has no frame; a parent stands before its
 * children. Samples that carry the labels "process" and "pid" hang below a
 * frame "process (pid N)", so that processes stay apart.
 */
#ifndef FILE_TREE_H
#define FILE_TREE_H

#include "base/intern.h"
#include "base/vec.h"
#include "pprof/decode.h"

enum frame_kind {
	FRAME_NATIVE,
	FRAME_KERNEL,
	FRAME_RUNTIME, /* of an interpreter or a just-in-time compiler */
	FRAME_MARKER,  /* no code: a process, or why a stack ends */
	FRAME_UNKNOWN, /* code without a name */
};

/* What a node shows: name and module as strings of the tree. */
struct frame {
	uint32_t name;
	uint32_t module;
	enum frame_kind kind;
};

/* Self and total, each as samples and as the profile's value. */
struct node {
	uint32_t parent;
	uint32_t frame;
	int64_t self_samples;
	int64_t self_value;
	int64_t samples;
	int64_t value;
};

struct tree {
	struct intern strings;
	VEC(struct frame) frames;
	VEC(struct node) nodes;
	struct index frame_index;
	struct index node_index;
	size_t sample_type; /* of the profile: what counts samples, and the value */
	size_t value_type;
};

/* 0 or -ENOMEM. Copies what it needs of `p`. Negative values count as 0. */
int tree_build(const struct profile *p, struct tree **ret);
void tree_free(struct tree *t);

/*
 * Visits all nodes but the root, depth first, of siblings the one with the
 * larger total value first; depth counts from 0. 0, -ENOMEM, or what `fn`
 * returned if not 0.
 */
typedef int (*tree_visit_fn)(void *context, const struct tree *t, uint32_t node, uint32_t depth);
int tree_walk(const struct tree *t, tree_visit_fn fn, void *context);

#endif
