/* SPDX-License-Identifier: Apache-2.0 */
/* Upper and lower case as Go's strings.ToUpper and ToLower: character by
 * character, simple mapping; what is not UTF-8 becomes U+FFFD per byte. */
#ifndef REGEX_FOLD_H
#define REGEX_FOLD_H

#include "base/buf.h"

/* Appends the mapping of `s`. 0, -ENOMEM or -E2BIG. */
int fold(struct str s, bool upper, struct buf *out);

#endif
