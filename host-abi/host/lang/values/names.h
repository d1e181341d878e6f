/* SPDX-License-Identifier: Apache-2.0 */
/* The components of a configuration by id ("pyroscope.write.endpoint"), as references find them.
 * Positions are those of the nodes of draft.h. */
#pragma once

#include "base/index.h"
#include "base/str.h"
#include "base/vec.h"

#include <andiron/component.h>

struct name {
	const char *id;
	const struct andiron_component *component;
};

struct names {
	VEC(struct name) list;
	struct index index;
};

void names_free(struct names *names);

/* Adds an id that is not there yet, borrowed; 0 or -ENOMEM. */
int names_add(struct names *names, const char *id, const struct andiron_component *component);

/* Its position, or INDEX_NONE. */
uint32_t names_find(const struct names *names, struct str id);
