/* SPDX-License-Identifier: Apache-2.0 */
/* Untrusted strings inside Prometheus text and log lines; for JSON see base/json.h. Failures stay
 * in the buffer (base/buf.h). */
#pragma once

#include "base/buf.h"

/* The value of a Prometheus label with its quotes. */
void text_label(struct buf *out, struct str s);

/* One line: control characters and what is not UTF-8 are escaped as \xNN. */
void text_line(struct buf *out, struct str s);

/* A value of logfmt: in quotes, with JSON's escapes, where it is empty or holds a space, '=', '"'
 * or what has to be escaped. What is not UTF-8 becomes U+FFFD. */
void text_value(struct buf *out, struct str s);
