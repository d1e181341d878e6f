/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks, one line each, as flamegraph.pl and its kin read them:
 * "root;caller;leaf COUNT". Kernel frames end in "_[k]". A ';' within a name
 * becomes ':', control characters become '?'.
 */
#ifndef FILE_FOLDED_H
#define FILE_FOLDED_H

#include "file/tree.h"
#include "base/buf.h"

/* Appends all of it: 0, -ENOMEM, or -E2BIG (out's limit). */
int folded_write(const struct tree *t, struct buf *out);

#endif
