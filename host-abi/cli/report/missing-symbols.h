/* SPDX-License-Identifier: Apache-2.0 */
/* Which code of a profile has no names, why, and what would help. */
#pragma once

#include "base/buf.h"
#include "pprof/decode.h"

#include <stdbool.h>

/* Appends, for each mapping with unnamed frames, the share of samples whose stack has one, of those
 * whose innermost frame is one, build id, file, each source of names with what it says of the
 * heaviest such frame as it is on this machine now, and what would help, a command where there is
 * one. As a table, or as JSON. 0 or -ENOMEM. Files that are named in the profile are opened and
 * read: run it as who may. */
int unresolved_write(const struct profile *p, bool json, struct buf *out);
