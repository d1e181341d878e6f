/* SPDX-License-Identifier: Apache-2.0 */
/* Writing JSON strings, safe within an HTML page's script element too. */
#pragma once

#include "base/buf.h"

/* Appends a JSON string with its quotes. '<', '>', '&', control characters and U+2028/2029 are
 * escaped; bytes that are not UTF-8 become U+FFFD. Failure is left to the buffer's `failed`.
 * O(s.n). */
void json_put_str(struct buf *out, struct str s);
