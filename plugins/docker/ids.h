/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of containers, each once. Their texts are the list's own. */
#pragma once

#include "base/str.h"
#include "base/vec.h"

struct ids {
	VEC(struct str) all;
};

/* O(ids) */
bool ids_have(const struct ids *ids, struct str id);
/* A copy of one that is not there yet. False when memory is short. */
bool ids_add(struct ids *ids, struct str id);
void ids_clear(struct ids *ids);
void ids_fini(struct ids *ids);
