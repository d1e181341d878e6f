/* SPDX-License-Identifier: Apache-2.0 */
/* What profile.file can be told. */
#include "options.h"

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
};

const struct andiron_options file_options = ANDIRON_OPTIONS(options);
