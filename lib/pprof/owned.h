/* SPDX-License-Identifier: Apache-2.0 */
/* Where a decoded profile lies: in one arena, which also holds the struct itself. For what makes
 * profiles (decode.c, merge.c); all others see `struct profile` alone. */
#pragma once

#include "base/arena.h"
#include "pprof/decode.h"

struct owned_profile {
	struct profile profile;
	struct arena memory;
};
