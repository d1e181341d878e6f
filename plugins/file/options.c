/* SPDX-License-Identifier: Apache-2.0 */
/* What profile.file can be told. */
#include "file/options.h"

#include <stddef.h>

static const char *const unnamed_words[] = {"function", "address", NULL};

static const struct andiron_option options[] = {
	{
		.name = "paths",
		.type = ANDIRON_TYPE_STRINGS,
		.flags = ANDIRON_OPTION_REQUIRED,
		.doc = "Files to write when the run ends, each replaced as a whole. The suffix says what: "
		       ".pb.gz is pprof, .folded is folded stacks, .html is a flame graph.",
		.since = "0.1",
	},
	{
		.name = "title",
		.type = ANDIRON_TYPE_STRING,
		.default_text = "\"Flame graph\"",
		.doc = "The heading of the flame graph.",
		.since = "0.1",
	},
	{
		.name = "unnamed",
		.type = ANDIRON_TYPE_STRING,
		.default_text = "\"function\"",
		.choices = unnamed_words,
		.doc = "How frames without a name are written. \"function\": by where their function begins, "
		       "[libcrypto.so.3 fn 0x1a2b30], one box for each. \"address\": where the file has a build "
		       "id, as addresses.",
		.since = "0.1",
	},
};

const struct andiron_options file_options = ANDIRON_OPTIONS(options);
