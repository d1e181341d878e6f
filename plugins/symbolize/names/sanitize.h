/* SPDX-License-Identifier: Apache-2.0 */
/* Makes an untrusted name safe to print: valid UTF-8, without control characters (a terminal would
 * obey them), without those that turn the direction of text or break lines (a page would lie), at
 * most 4 KiB. */
#pragma once

#include "base/buf.h"

#define SANITIZE_MAX_BYTES ((size_t)4096)

/* The name itself where it is clean, else a cleaned copy in *scratch (what was there is gone): bad
 * bytes and characters become U+FFFD, the excess is cut at a character and "…" put behind it.
 * STR_NULL when memory is short. O(n). */
struct str sanitize_name(struct str name, struct buf *scratch);
