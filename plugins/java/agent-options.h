/* SPDX-License-Identifier: Apache-2.0 */
/* What async-profiler's library is told when it is loaded: words with commas between them. Flags of
 * its command `asprof` are put into these words as that command does.
 *
 * Source: async-profiler, src/arguments.cpp and src/main/main.cpp. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"

/* An event: ",event=…". One of a PMU ("cpu/umask=1,event=2/") keeps its commas as colons; elsewhere
 * a comma separates events. 0 or -EINVAL and why not. Failure of memory is left to the buffer. */
int agent_event(struct buf *out, struct str event, struct error *err);

/* A word with a value: ",alloc=512k". `what` is how people call it. 0 or -EINVAL. */
int agent_value(struct buf *out, const char *word, struct str value, const char *what,
		struct error *err);

/* Flags of asprof's `start`. 0 or -EINVAL: one is unknown, lacks its value, or is not for a
 * recording that is taken again and again. */
int agent_flags(struct buf *out, const struct str *flags, size_t n, struct error *err);
