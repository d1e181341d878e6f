/* SPDX-License-Identifier: Apache-2.0 */
/* `report --unresolved`: what language runtimes lacked, by the frames that stand in place of
 * theirs. Plugins say in such a frame which version they do not know, and what was not found. */
#pragma once

#include "base/buf.h"
#include "pprof/decode.h"

#include <stdbool.h>

/* Appends them, the most frequent first, as text, or as the elements of a JSON array. How many, or
 * -ENOMEM. O(frames). */
int runtime_gaps_write(const struct profile *p, bool json, struct buf *out);
