/* SPDX-License-Identifier: Apache-2.0 */
/* Which plugins go with which, by the extensions that their tables name. Pure. */
#pragma once

#include "base/str.h"

#include <andiron/plugin.h>

/* Whether the list, which ends with NULL or is NULL, has it. */
bool needs_lists(const char *const *ids, struct str id);

/* Whether a plan with a component of `a` may get one of `b` in addition (lang/implicit.c). */
bool needs_brings(const struct andiron_plugin *a, const struct andiron_plugin *b);
