/* SPDX-License-Identifier: Apache-2.0 */
/* The language of a frame, by what a profile says of it: OpenTelemetry's profile.frame.type.
 * Source: its semantic conventions, attribute registry "profile" ("beam", "cpython", "dotnet",
 * "go", "jvm", "kernel", "native", "perl", "php", "ruby", "rust", "v8js"). */
#pragma once

#include "pprof/decode.h"

/* Of a location's innermost function. Runtimes name their mapping after the type (pprof.h), and
 * compilers' languages show in the names of source files. Empty: no code. Borrowed from the profile
 * or static. O(1). */
struct str frame_type(const struct profile *p, const struct profile_location *l);

/* Whether a mapping stands for a runtime's code. */
bool frame_type_is_runtime(struct str file);

/* Whether a mapping is the kernel's or a module of it, by its file's name. */
bool frame_type_is_kernel(struct str file);
