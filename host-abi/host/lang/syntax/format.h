/* SPDX-License-Identifier: Apache-2.0 */
/* The formatter: a configuration as `alloy fmt` writes it, byte for byte. Exceptions, because there
 * Alloy's output means something else than its input:
 * - tabs and trailing blanks within strings stay, and escapes in quoted keys are not escaped again;
 * - a call without arguments gets no comma;
 * - behind a // comment the line always ends.
 *
 * The result is read again before it is returned, so it has the same tokens, and as many
 * comments. As in Alloy, a second run may move comments within expressions, or change line breaks
 * there.
 *
 * Source: grafana/alloy, syntax/printer; Go, text/tabwriter. */
#pragma once

#include "host/diag.h"

/* Appends the formatted text, which ends with a line end. 0; -EINVAL after errors of the source, or
 * when the text would be too long, said in `diags`; -ENOMEM. O(length of both). After failure
 * nothing is appended. */
int format_source(const struct source *source, struct diags *diags, struct buf *out);
