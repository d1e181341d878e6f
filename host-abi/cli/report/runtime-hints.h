/* SPDX-License-Identifier: Apache-2.0 */
/* Where a language's runtime hides what it runs. */
#pragma once

#include "pprof/decode.h"

#define RUNTIMES_SHARE 20 /* percent of the samples, from which on it is said */

/* What to do so that the functions that an interpreter or a compiler at run time works on have
 * names, as lines for people; NULL: nothing is hidden. A stack that shows functions of a runtime
 * hides nothing. O(frames of samples). */
const char *runtimes_hint(const struct profile *p);
