/* SPDX-License-Identifier: Apache-2.0 */
/* C++ (Itanium) and Rust (legacy and v0) names as people read them, in the four degrees that
 * `demangle` knows:
 *
 *   none        as linked                 _ZN3foo3barIiEEiT_
 *   simplified  the bare path             foo::bar
 *   templates   with template arguments   foo::bar<int>
 *   full        with parameters too       int foo::bar<int>(int)
 *
 * A clone's suffix (".cold", ".part.0", ".llvm.123") is dropped in all but none, and so is the hash
 * at the end of a legacy Rust name in all but none and full.
 *
 * Names are untrusted input: input is at most 4 KiB, what libiberty makes of it at most 64 KiB, and
 * no name takes memory or time beyond that. It uses up to 4 MiB of stack: call it on a thread of
 * your own that has them. */
#pragma once

#include "base/buf.h"

#define DEMANGLE_STACK_BYTES ((size_t)8 << 20)

/* `wish` is ANDIRON_DEMANGLE_*. Puts the readable name into *out (what was
 * there is gone): 1; 0 if the name is not mangled, or not understood, or too
 * large, and *out is empty; -ENOMEM. */
int demangle(struct str mangled, uint32_t wish, struct buf *out);
