/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a plugin's entry keeps the ABI's promises: sizes, names, the verbs that every component
 * must have, documented options. Everything behind this check may read the tables without asking
 * again. */
#pragma once

#include "base/error.h"

#include <andiron/plugin.h>

#include <stddef.h>

/* 0, or -ENOEXEC and a sentence. Runs no code of the plugin. */
int describe_check(const struct andiron_plugin *plugin, struct error *err);

/* Row i of a table, whatever its stride. NULL beyond its end. */
static inline const struct andiron_option *option_at(const struct andiron_options *options,
						     uint32_t i)
{
	const char *base = options ? (const char *)options->items : NULL;

	if (!base || i >= options->count)
		return NULL;
	return (const struct andiron_option *)(const void *)(base + (size_t)i * options->stride);
}
