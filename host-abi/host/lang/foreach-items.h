/* SPDX-License-Identifier: Apache-2.0 */
/* foreach over targets that components export while they run. Its collection is the input of a
 * component of its own, `foreach.LABEL`, which keeps what comes and supplies it as a value
 * (supplied.h): a list of maps. So a change of the collection is a change of the plan as any other
 * value's: what an item makes is found again by the item's key, and goes on untouched. Before the
 * first list the block makes nothing.
 *
 * Other expressions that look into targets have such a component too, one for each export:
 * `ID.EXPORT[]`. Its list is empty until it is known, as in Alloy.
 *
 * The list is sorted, so that another order is no change. The first is sent at once if it has
 * items, each other when half a second has passed. */
#pragma once

#include "base/intern.h"
#include "host/lang/draft.h"
#include "host/registry.h"

extern const struct registered_component foreach_items;

/* What its health says once a plan was made of its list. */
#define FOREACH_ITEMS_KNOWN "its targets are known"

/* Which label the argument `id` names, if any. False after an error, or where that has to wait. */
bool foreach_items_id(struct draft *d, const struct draft_loop *loop, const struct stmt *arguments,
		      struct str *ret);

/* Begins a list, as the draft's last, that the component `id` supplies or of whose list it is made.
 * False after an error. What the template may bring is noted in the draft: the agent chooses which
 * capabilities it keeps before it knows of items. */
bool foreach_items_begin_list(struct draft *d, const struct draft_loop *loop,
			      const struct stmt *template, const char *id);

/* The same with the component for the block. True: the list in the plan's memory; false where there
 * is none yet, or after an error. */
bool foreach_items_get(struct draft *d, const struct draft_loop *loop, const struct stmt *template,
		       const struct stmt *arguments, struct andiron_value *ret);

/* Adds the components of targets that expressions have looked into. */
void foreach_items_open(struct draft *d);

/* Those that were given to the items of a list, and the last number that each was given with. */
struct foreach_keys {
	struct intern given;
	VEC(uint32_t) last;
};

/* What tells an item from the others over time: the text of its member `id`, where that fits into
 * the id of a component, or else what is computed of that, or of all of it where `id` is empty or
 * the item lacks it. A second one of the same gets a number. NULL without memory. O(1), over all
 * items. */
const char *foreach_items_key(struct draft *d, const struct andiron_value *item, struct str id,
			      struct foreach_keys *keys);
void foreach_keys_free(struct foreach_keys *keys);

/* Begins an item in its scope; false: it is left out, or there is no memory. */
bool foreach_items_begin(struct draft *d, struct scope *inside, struct draft_list *list);
/* Whether a draft without the items that have errors is worth it: there are no other errors, and no
 * list loses all. They are noted. */
bool foreach_items_leave_out(struct draft *d);
/* The list as the plan has it. */
struct plan_list foreach_items_list(const struct draft_left_out *out, const char *id);
