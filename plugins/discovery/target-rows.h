/* SPDX-License-Identifier: Apache-2.0 */
/* Targets as some source gives them, before they are published, and where a component publishes
 * those of its sources. */
#pragma once

#include "abi/log.h"
#include "abi/target-list.h"
#include "base/arena.h"
#include "base/vec.h"

/* What one source may become; what gives more is refused. */
#define ROWS_MAX        100000
#define ROWS_MAX_LABELS ((size_t)2 << 20)
#define ROWS_MAX_BYTES  ((size_t)128 << 20) /* of labels: each row is to have its own copy */

struct target_span {
	size_t first, n; /* of the labels */
};

/* Labels of a row in any order; of equal names the last one counts. */
struct target_rows {
	struct arena arena; /* for their texts */
	VEC(struct target_label) labels;
	VEC(struct target_span) rows;
	size_t begun; /* the labels of the row in the making begin here */
	size_t bytes; /* of all labels' names and values */
};

void target_rows_free(struct target_rows *r);
/* Adds a label to the row in the making; texts are borrowed, from the arena above or longer. 0,
 * -ENOMEM, or -E2BIG. */
int target_rows_label(struct target_rows *r, struct str name, struct str value);
/* The labels since the last one are a row. 0, -ENOMEM, or -E2BIG. */
int target_rows_end(struct target_rows *r);

struct source {
	char *name;
	uint32_t slot, n_rows;
	bool present; /* for the owner */
	char *fault;  /* why it is not up to date, or NULL; for the owner */
};

/* A source's row is its slot and the row's position in the source. */
struct sources {
	struct abi_context context;
	struct target_list *list;
	VEC(struct source) all;
	uint32_t next_slot;
};

/* 0 or -ENOMEM. */
int sources_init(struct sources *s, const struct abi_context *context);
void sources_fini(struct sources *s);

/* The source of this name, which comes to be; NULL when memory is short. Borrowed until the next
 * call. O(sources) */
struct source *sources_get(struct sources *s, const char *name);
/* These are a source's targets now. 0, or -ENOMEM: some may not be set. */
int sources_set(struct sources *s, struct source *source, const struct target_rows *rows);
/* Removes what is not `present`, with its targets. */
void sources_sweep(struct sources *s);
/* Keeps a text as the source's fault; NULL: it has none. */
void source_fail(struct source *source, const char *text);
size_t sources_count(const struct sources *s);
/* Publishes what has changed. 0 or -ENOMEM, and then it is tried with the next call. */
int sources_publish(struct sources *s);
