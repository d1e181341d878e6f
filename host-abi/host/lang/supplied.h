/* SPDX-License-Identifier: Apache-2.0 */
/* Values that running components have supplied (andiron/values.h), by component and export. They
 * are kept beside the plan, since a plan is made of them: it is built anew when one changes, and
 * takes a copy, so that what runs does not see the next value before its time.
 *
 * A value is new until a plan was made of it and runs. One that is refused leaves the last that was
 * taken, of which all plans are made meanwhile: so it holds up no other change. One thread; values
 * may come in while some are tried. */
#pragma once

#include "base/str.h"

#include <andiron/value.h>

#include <stdbool.h>

#define SUPPLIED_MAX_BYTES      ((uint64_t)1 << 20)  /* of all texts of a value */
#define SUPPLIED_MAX_LIST_BYTES ((uint64_t)16 << 20) /* of a list: targets (foreach-items.h) */

/* The export of whoever supplies targets as such a list. */
#define SUPPLIED_TARGETS "items"

struct supplied;
struct arena;
struct plan;

/* NULL: out of memory. */
struct supplied *supplied_new(void);
void supplied_free(struct supplied *s);

/* 1 if it is another value than the last, and so new (also the one that was taken, after one that
 * was refused: so that it is said that all is well again); 0 if it is the same; -EPERM if it is the
 * same and was refused; -EINVAL for what is no value (andiron/values.h), -ENOMEM.
 * O(values + bytes). */
int supplied_set(struct supplied *s, const char *id, const char *export_name,
		 const struct andiron_value *value);

/* Has all that are new tried, from here to supplied_end: how many. */
size_t supplied_try_all(struct supplied *s);
/* The same for one that was not tried alone since the last supplied_try_all: its component's id,
 * borrowed until the next change, and whether it was refused before. NULL: there is none. */
const char *supplied_try_one(struct supplied *s, bool *ret_again);
/* What is tried is taken (0), refused, or else as new as before. */
void supplied_end(struct supplied *s, int result);
/* Whether a negative errno is the last word on a value. All others may pass. */
bool supplied_is_refusal(int result);
/* What was refused is new again, for what it was refused by has changed: whether there is any. */
bool supplied_renew(struct supplied *s);
/* Whether the last value of the component was refused, and no plan is made of it now. */
bool supplied_refused(const struct supplied *s, const char *id);

/* The value that is tried, or else the one that was taken. Borrowed until the next change; NULL:
 * there is none. `s` may be NULL. O(values). */
const struct andiron_value *supplied_get(const struct supplied *s, const char *id,
					 const char *export_name);

/* Forgets those of components that the plan does not have. */
void supplied_prune(struct supplied *s, const struct plan *plan);

/* A copy in the arena: 0 or -ENOMEM. */
int supplied_copy(struct arena *arena, const struct andiron_value *value,
		  struct andiron_value *ret);
