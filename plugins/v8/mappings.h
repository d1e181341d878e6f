/* SPDX-License-Identifier: Apache-2.0 */
/* Where in a process V8's code is: the builtins of its binary, also where V8 has mapped them once
 * more beside its heap's code, and the regions that it has reserved for compiled code. */
#pragma once

#include <andiron/runtime.h>

#include <stdbool.h>
#include <stdint.h>

#include "binary.h"

/* Fills the ranges of *ret from the binary's mappings and from those without a file. The latter are
 * widened to the region around them, which V8 has reserved at once and fills later. */
void mappings_read(struct v8_process *ret, uint32_t pid, const struct v8_binary *binary,
		   uint64_t object, const struct andiron_runtime_mapping *mappings, uint64_t n);
