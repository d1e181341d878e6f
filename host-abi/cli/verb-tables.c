/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron tables`: all verbs with their options as JSON. The build makes man pages and shell
 * completions of it (packaging/manual.py). */
#include "cli/cli.h"

#include <jansson.h>
#include <stdio.h>

static json_t *flag_json(const struct flag *f)
{
	char letter[2] = {f->letter, '\0'};
	json_t *choices = json_array();

	for (const char *const *c = f->choices; c && *c; c++)
		json_array_append_new(choices, json_string(*c));
	return json_pack("{s:s, s:s, s:s?, s:s, s:o}", "name", f->name, "letter", letter, "word",
			 f->word, "help", f->help, "choices", choices);
}

static json_t *command_json(const struct command *c)
{
	json_t *flags = json_array();

	for (const struct flag *f = c->flags; f && f->name; f++)
		if (f->help)
			json_array_append_new(flags, flag_json(f));
	for (const struct flag *f = options_common; f->name; f++)
		json_array_append_new(flags, flag_json(f));
	return json_pack("{s:s, s:s, s:s, s:s, s:s?, s:o}", "verb", c->verb, "usage", c->usage,
			 "brief", c->brief, "summary", c->summary, "examples", c->examples, "flags",
			 flags);
}

static int run(int argc, char **argv)
{
	int first, code = options_parse(&verb_tables, NULL, argc, argv, &first);
	json_t *verbs = json_array();
	json_t *all = json_pack("{s:s, s:o}", "version", ANDIRON_VERSION, "verbs", verbs);

	if (code == OPTIONS_DONE) {
		for (const struct command *const *c = commands; *c; c++)
			if ((*c)->brief)
				json_array_append_new(verbs, command_json(*c));
		code = json_dumpf(all, stdout, JSON_INDENT(1)) < 0 ? EXIT_FAILED : EXIT_OK;
	}
	json_decref(all);
	return code;
}

const struct command verb_tables = {
	.verb = "tables",
	.run = run,
	.usage = "",
	.summary = "Prints all verbs with their options as JSON.",
};
