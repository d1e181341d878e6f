/* SPDX-License-Identifier: Apache-2.0 */
/* Upper and lower case as Go's strings.ToUpper and ToLower: character by
 * character, simple mapping; what is not UTF-8 becomes U+FFFD per byte. */
#ifndef RELABEL_FOLD_H
#define RELABEL_FOLD_H

#include "base/buf.h"

#include <locale.h>

/* Appends the mapping of `s`. `locale` is of C.UTF-8, whose character tables
 * are Unicode's; it is passed in because the process's own may be anything. 0,
 * -ENOMEM or -E2BIG. */
int fold(struct str s, bool upper, locale_t locale, struct buf *out);

#endif
