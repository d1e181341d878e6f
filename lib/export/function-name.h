/* SPDX-License-Identifier: Apache-2.0 */
/* What two builds of a program call the same function. Compilers and virtual machines put into
 * names what changes with every build or run; this takes it out. Sources: GCC's clone names
 * (cgraphclones.cc: ".cold", ".part.0", ".isra.0", ".constprop.0", ".lto_priv.0"; "[clone .cold]"
 * as c++filt writes it), LLVM's (".llvm.123", ".__uniq.123", ".cold.1"), Rust's legacy mangling
 * ("::h" and 16 hexadecimal digits), HotSpot's hidden and generated classes ("$$Lambda$14/0x7f…",
 * "LambdaForm$MH/0x…", "GeneratedMethodAccessor12", "$Proxy7", "lambda$main$0"). */
#pragma once

#include "base/buf.h"

/* Appends the name without that. `type` is the frame's (frame-type.h): suffixes of compilers are
 * left alone in languages where they may be a function's own name, such as "cold" of a package in
 * Go. A name of which nothing would be left stays whole. Memory: out->failed. O(name). */
void function_name_plain(struct str name, struct str type, struct buf *out);
