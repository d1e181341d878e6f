/* SPDX-License-Identifier: Apache-2.0 */
/* C++ names (Itanium ABI) by libiberty, within bounds. */
#pragma once

#include "base/buf.h"

#define CPLUS_MAX_OUTPUT ((size_t)65536)

/* Appends the readable form of `mangled` to *out: 1; 0 if it is not understood, or asks for more
 * than the bounds below allow; -ENOMEM. At most 4 KiB of input. Needs up to 4 MiB of stack. */
int cplus_demangle_bounded(const char *mangled, bool params, struct buf *out);
