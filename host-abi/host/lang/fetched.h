/* SPDX-License-Identifier: Apache-2.0 */
/* import.http: a module that a component of that name fetches while the agent runs, and supplies as
 * a value (supplied.h). A plan is made without it first. There, blocks of its custom components
 * wait, with those that name them, as components wait for values; all else runs. With the module,
 * or another text of it, the plan is made anew.
 *
 * An import.string whose content is not known before there are components is one in the draft, so
 * that its content is bound, waits and runs in circles as arguments do. Once the content is there
 * the draft is made again with it, and the plan has the module instead.
 *
 * What modules bring is bounded: how many are fetched, and how many within each other. */
#pragma once

#include "host/lang/draft.h"

/* That of an import.string, which is in no plan. */
extern const struct registered_component fetched_text;

/* Whether an argument of the import `s` is known already, and nothing that a component supplies. */
bool fetched_is_known(struct draft *d, const struct scope *scope, const struct stmt *s,
		      const char *name);

/* The module of the import `s`, which stands in `scope`: its text as *ret, or else in
 * *ret_waits_for which component has not sent it yet. `module` gets its URL and folder, and has its
 * importer. False after an error. */
bool fetched_get(struct draft *d, const struct scope *scope, const struct stmt *s,
		 struct space *module, struct source *ret, const char **ret_waits_for);

/* Whether the value is of a module: it is in the configuration once that is there. */
bool fetched_is_use(const struct draft *d, const struct value_use *use);

/* A block of which nothing can be made yet. */
void fetched_wait(struct draft *d, const struct scope *scope, const struct stmt *s,
		  const char *waits_for);

/* Whether the arguments of such blocks mean something, since nobody binds them. */
void fetched_check_waiting(struct draft *d);

/* Whether a draft is to be made with contents that are known since this one. They are noted. */
bool fetched_again(struct draft *d);

/* Lists these blocks in the plan, and what may come of them. */
void fetched_finish(struct draft *d, struct plan *plan);
