/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the bytes of a file are a whole recording of JFR. Nothing else is read of one here: it
 * travels as it is, and the server takes it apart. */
#pragma once

#include "base/str.h"

/* Whether it is one or more chunks, each with its mark and as long as it says, and nothing else.
 * async-profiler writes a chunk's length when it ends it, so a file of a JVM that was killed is not
 * whole. O(chunks). */
bool recording_whole(struct str bytes);
