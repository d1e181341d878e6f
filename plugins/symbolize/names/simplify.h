/* SPDX-License-Identifier: Apache-2.0 */
/* Less of a readable name: without parameter lists (of enclosing functions
 * too), and without template or generic arguments. What stays by design:
 * "(anonymous namespace)", "operator()", a lambda's own parameters, and
 * Rust's "<T as Trait>", which is a path and no argument list. */
#pragma once

#include "base/buf.h"

/* Appends what `wish` (ANDIRON_DEMANGLE_*) leaves of the name to *out; all of it where its brackets
 * do not match. 0 or -ENOMEM. O(n). */
int simplify(struct str name, uint32_t wish, struct buf *out);
