/* SPDX-License-Identifier: Apache-2.0 */
/* The options of profile.file. */
#include "file/options.h"

#include "abi/option.h"
#include "abi/value.h"
#include "base/cleanup.h"

#include <stdlib.h>

static const char *const unnamed_words[] = {"function", "address", NULL};

static const struct andiron_option options[] = {
	OPTION(STRINGS, "paths", NULL,
	       "Files to write when the run ends, each replaced as a whole. The suffix says what: "
	       ".pb.gz is pprof, .folded is folded stacks, .html is a flame graph.",
	       .flags = ANDIRON_OPTION_REQUIRED, .since = "0.1"),
	OPTION(STRING, "title", "\"Flame graph\"", "The heading of the flame graph.",
	       .since = "0.1"),
	OPTION(STRINGS, "group_by", "[\"process\"]",
	       "Labels that stacks are grouped by, outermost first: \"process\" (one box for all "
	       "processes of a program), \"pid\", \"comm\" (the thread), or a label of targets. "
	       "The flame graph's page can change it; pprof files keep every label.",
	       .since = "0.1"),
	OPTION(STRING, "unnamed", "\"function\"",
	       "How frames without a name are written. \"function\": by where their function "
	       "begins, [libcrypto.so.3 fn 0x1a2b30], one box for each. \"address\": where the "
	       "file has a build id, as addresses.",
	       .choices = unnamed_words, .since = "0.1"),
};

const struct andiron_options file_options = ANDIRON_OPTIONS(options);

/* The strings of a list, to be freed; NULL when memory is short. */
static struct str *texts_of(const struct andiron_value *list, size_t *ret_n)
{
	struct str *texts = calloc((list ? list->n_items : 0) + 1, sizeof(*texts));

	*ret_n = list && texts ? list->n_items : 0;
	for (size_t i = 0; i < *ret_n; i++)
		texts[i] = abi_str(list->items[i].string);
	return texts;
}

struct recording *file_recording_new(const struct andiron_value *args)
{
	size_t n_paths, n_groups;
	_cleanup_(freep) struct str *paths = texts_of(value_get(args, "paths"), &n_paths);
	_cleanup_(freep) struct str *groups = texts_of(value_get(args, "group_by"), &n_groups);
	const struct recording_options asked = {
		.groups = groups,
		.n_groups = n_groups,
		.title = value_str(args, "title", STR("")),
		.max_bytes = RECORDING_MAX_BYTES,
		.addresses = str_is(value_str(args, "unnamed", STR("")), "address"),
	};

	return paths && groups ? recording_new(paths, n_paths, &asked) : NULL;
}
