/* SPDX-License-Identifier: Apache-2.0 */
/* Targets from a JSON file: an array of objects of strings. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <andiron/value.h>

/* A LIST of MAPs of STRINGs in the arena, order kept. At most 64 MiB are read. 0, or a negative
 * errno and what is wrong, where. */
int targets_file_read(const char *path, struct arena *arena, const struct andiron_value **ret,
		      struct error *err);
