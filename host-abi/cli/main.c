/* SPDX-License-Identifier: Apache-2.0 */
/* The andiron command: finds the verb and hands over. */
#include "cli/cli.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

const struct command *const commands[] = {
	&verb_record,    &verb_top,        &verb_report,
	&verb_diff,      &verb_run,        &verb_reload,
	&verb_validate,  &verb_fmt,        &verb_convert,
	&verb_targets,   &verb_plugins,    &verb_inspect,
	&verb_debuginfo, &verb_push,       &verb_doctor,
	&verb_wait,      &verb_new_plugin, &verb_validate_plugin,
	&verb_worker,    &verb_tables,     NULL,
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]) - 1)

static void help(FILE *out)
{
	fprintf(out, "usage: andiron VERB …\n\nContinuous profiling from parts.\n\nverbs:\n");
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (commands[i]->brief)
			fprintf(out, "  %-15s %s\n", commands[i]->verb, commands[i]->brief);
	fprintf(out, "\n`andiron VERB --help` shows the options of a verb.\n"
		     "`andiron --version` prints the version.\n"
		     "To begin: sudo andiron record\n");
}

static const struct command *find(const char *name)
{
	/* Alloy has two names for it. */
	if (strcmp(name, "format") == 0)
		return &verb_fmt;
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (strcmp(name, commands[i]->verb) == 0)
			return commands[i];
	return NULL;
}

static int unknown_verb(const char *name)
{
	const char *names[N_COMMANDS];
	const char *nearest;
	size_t n = 0;

	for (size_t i = 0; i < N_COMMANDS; i++)
		if (commands[i]->brief)
			names[n++] = commands[i]->verb;
	nearest = options_nearest(name, names, n);
	fprintf(stderr, "andiron: there is no verb \"%s\"", name);
	if (nearest)
		fprintf(stderr, "; did you mean \"%s\"?", nearest);
	fprintf(stderr, "\n  `andiron --help` lists them\n");
	return EXIT_USAGE;
}

static bool is_any(const char *word, const char *a, const char *b)
{
	return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

/* A closed pipe ends output quietly; a full disk under standard output is a failure like any other.
 */
static int finish(int code)
{
	if (fflush(stdout) != 0 && code == EXIT_OK)
		return EXIT_FAILED;
	return code;
}

int main(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2) {
		help(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0) {
		options_version();
		return finish(EXIT_OK);
	}
	if (is_any(argv[1], "help", "--help") || strcmp(argv[1], "-h") == 0) {
		command = argc > 2 ? find(argv[2]) : NULL;
		if (command)
			options_help(command);
		else if (argc > 2 && !is_any(argv[2], "--help", "--version"))
			return unknown_verb(argv[2]);
		else
			help(stdout);
		return finish(EXIT_OK);
	}
	command = find(argv[1]);
	return command ? finish(command->run(argc - 1, argv + 1)) : unknown_verb(argv[1]);
}
