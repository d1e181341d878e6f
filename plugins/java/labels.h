/* SPDX-License-Identifier: Apache-2.0 */
/* What a JVM's recordings are labelled with, from its target's labels, as Alloy does it. Source:
 * Alloy, internal/component/pyroscope/java, target.go and loop.go. */
#pragma once

#include "abi/target-list.h"
#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* Which labels of a target matter here: all but metadata that no rule has copied. */
bool labels_keeps(struct str name);

/* Copies into the arena; labels sorted by name. NULL when memory is short. O(n) */
const struct target_label *labels_make(struct arena *arena, const struct target_row *row,
				       uint32_t *ret_n);

/* The target's process: 0 and its pid, or -EINVAL and what is wrong with the target. */
int labels_pid(const struct target_row *row, uint32_t *ret, struct error *err);
