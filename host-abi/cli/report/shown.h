/* SPDX-License-Identifier: Apache-2.0 */
/* Figures and names of profiles as people read them on a terminal. */
#pragma once

#include "base/buf.h"

/* A value in its unit: "1.23 s", "45.6 MB", "1234". */
void shown_amount(char *text, size_t n, int64_t value, struct str unit);

/* Appends `s`, which is a stranger's, without what could steer a terminal, cut to `width`
 * characters (0: whole); what is not UTF-8 counts by the byte. */
void shown_text(struct buf *out, struct str s, size_t width);

/* Appends "12.70 s of CPU in 10.00 s: 1.27 cores"; the time alone where no duration is known. */
void shown_cores(struct buf *out, int64_t cpu_ns, int64_t duration_ns);
