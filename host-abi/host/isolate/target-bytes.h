/* SPDX-License-Identifier: Apache-2.0 */
/* Target updates as bytes, each with the name of the port or export that it is for. */
#pragma once

#include "base/buf.h"

#include <andiron/target.h>

/* Appends it: 0, -ENOMEM, or -E2BIG for the buffer's limit. After a failure, which is in b->failed
 * too, the buffer is of no use. */
int target_bytes_put(struct buf *b, const char *name, const struct andiron_targets *update);

/* The next update of what target_bytes_put has written, which is in these bytes, 8-aligned; behind
 * it is the name, as a text, with zeros to a multiple of 8. What it addresses is in these bytes,
 * which are the caller's alone, and are changed; it has no owner yet. NULL: there is none, or it is
 * broken. Indices are not checked (send_targets does). */
struct andiron_targets *target_bytes_get(struct str *rest);
/* What its rows take in a table, where each has labels of its own, however many share them here:
 * more than ISOLATE_MAX_ROWS where that is too much, or an index is of nothing. */
uint64_t target_bytes_rows(const struct andiron_targets *update);
/* From that name on: where the next update begins. */
static inline struct str target_bytes_next(struct str name)
{
	const char *end = name.p + str_find(name, 0);

	return str_skip(name, (size_t)(end - name.p) + 8 - (uintptr_t)end % 8);
}
