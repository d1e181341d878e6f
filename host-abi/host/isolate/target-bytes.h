/* SPDX-License-Identifier: Apache-2.0 */
/* Target updates as bytes, each with the name of the port or export that it is for. */
#pragma once

#include "base/buf.h"

#include <andiron/target.h>

/* Appends it; failure is in b->failed. */
void target_bytes_put(struct buf *b, const char *name, const struct andiron_targets *update);

/* The next update of what target_bytes_put has written, which is in these bytes, 8-aligned; behind
 * it is the name, as a text, with zeros to a multiple of 8. What it addresses is in these bytes,
 * which are the caller's alone, and are changed; it has no owner yet. NULL: there is none, or it is
 * broken. Indices are not checked (send_targets does). */
struct andiron_targets *target_bytes_get(struct str *rest);
/* From that name on: where the next update begins. */
static inline struct str target_bytes_next(struct str name)
{
	const char *end = name.p + str_find(name, 0);

	return str_skip(name, (size_t)(end - name.p) + 8 - (uintptr_t)end % 8);
}
