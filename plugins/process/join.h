/* SPDX-License-Identifier: Apache-2.0 */
/* `join`: container targets of another component beside our processes, paired
 * by container id. The output holds, as in Alloy: container targets without an
 * id, each process (with the labels of its container over its own, if there is
 * one), and each container target again.
 *
 * Both sides come and go on their own. A group is what one container id holds together; a change on
 * the container's side says which processes to look at again. */
#pragma once

#include "abi/target-list.h"

struct join;
struct join_group;

/* Links a process into its group; embedded in whoever owns the process. */
struct join_member {
	struct join_group *group; /* NULL: in no container */
	struct join_member *previous, *next;
};

/* Called for each process whose container target changed. */
typedef void (*join_touch_fn)(void *context, struct join_member *member);

/* Output goes to `list`, which must outlive it. */
struct join *join_new(struct target_list *list, join_touch_fn touch, void *context);
void join_free(struct join *j);

/* A new row id for the output list. */
uint64_t join_row(struct join *j);

/* Applies an update of the container targets to the output and tells which processes are touched.
 * As target_table_apply. O(changes + touched). */
int join_apply(struct join *j, const struct andiron_targets *update);

/* Puts a process into the group of its container ("" for none), taking it out of another. 0 or
 * -ENOMEM (in no group). */
int join_enter(struct join *j, struct join_member *member, struct str container);
void join_leave(struct join *j, struct join_member *member);

/* Sets the process's row: its labels, and its container's over them. */
int join_set(struct join *j, const struct join_member *member, uint64_t row, uint32_t pid,
	     const struct target_label *labels, size_t n);

/* The container id of a target by the labels that Alloy looks at, STR_NULL if it has none. */
struct str join_container_of(const struct target_row *row);
