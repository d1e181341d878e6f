/* SPDX-License-Identifier: Apache-2.0 */
/* One row of an option table: OPTION(TYPE, "name", default or NULL, "What it is.", .min = 1, …).
 * The text comes before the members that only some rows have. */
#pragma once

#include <andiron/option.h>

#define OPTION(type_, name_, default_, ...)                                                        \
	{                                                                                          \
		.name = name_, .type = ANDIRON_TYPE_##type_, .default_text = default_,             \
		.doc = __VA_ARGS__                                                                 \
	}
