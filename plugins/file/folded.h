/* SPDX-License-Identifier: Apache-2.0 */
/* Folded stacks, one line each and sorted, as flamegraph.pl and its kin read them:
 * "process;caller;leaf COUNT". Kernel frames end in "_[k]". A ';' within a name becomes ':', a
 * control character '?'. */
#pragma once

#include "base/buf.h"
#include "export/call-tree.h"

/* Appends all of it, each stack below one level for each label in `keys`. 0 or -ENOMEM. */
int folded_write(const struct call_tree *t, const struct str *keys, size_t n_keys, struct buf *out);
