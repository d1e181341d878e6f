/* SPDX-License-Identifier: Apache-2.0 */
/* An instance of libandiron as an agent's plugin has it: with a configuration of its own or the
 * built-in one, and one consumer of batches. */
#pragma once

#include <andiron/embed.h>

#include <stdbool.h>

struct profiler_options {
	const char *consumer; /* as in embed.profiles "CONSUMER"; an identifier */
	const char *config;   /* a file, or a folder of them; NULL: the built-in one */
	uint64_t interval_ms; /* of the built-in one; a second at least */
	bool names;           /* functions are to have names with the built-in one, too */
	andiron_profile_fn take;
	struct andiron_embed embed; /* `worker` NULL: none if nobody wants names */
};

/* Opens an instance with this configuration. 0, or a negative errno with a text in *ret_text; on
 * success that has warnings, if any. *ret is to be closed either way, and is NULL where there is
 * none. */
int profiler_open(const struct profiler_options *options, struct andiron **ret, char **ret_text);
