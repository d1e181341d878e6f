/* SPDX-License-Identifier: Apache-2.0 */
/* The andiron command: finds the verb and hands over. */
#include "cli/cli.h"
#include "cli/options.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
};

static const struct verb verbs[] = {
	{"record", verb_record, "profile this machine, a process or a command into files"},
	{"report", verb_report, "show the top functions of a pprof file"},
	{"run", verb_run, "run the agent that a configuration describes"},
	{"validate", verb_validate, "check a configuration and show every error in it"},
	{"targets", verb_targets, "show what is discovered, and which rule dropped what"},
	{"plugins", verb_plugins, "list the plugins and components that are installed"},
	{"inspect", verb_inspect, "show what a plugin or an ELF file offers"},
	{"debuginfo", verb_debuginfo, "send a server what it needs to name a file's addresses"},
	{"push", verb_push, "send pprof files to a server, and read them back"},
	{"doctor", verb_doctor, "check what sampling needs on this machine"},
};

#define N_VERBS (sizeof(verbs) / sizeof(verbs[0]))

static void help(FILE *out)
{
	fprintf(out, "usage: andiron VERB …\n\n"
		     "Continuous profiling from parts.\n\nverbs:\n");
	for (size_t i = 0; i < N_VERBS; i++)
		fprintf(out, "  %-10s %s\n", verbs[i].name, verbs[i].summary);
	fprintf(out, "\n`andiron VERB --help` tells more; `andiron --version` which one this is.\n"
		     "To begin: sudo andiron record\n");
}

static int unknown_verb(const char *name)
{
	const char *names[N_VERBS];
	const char *nearest;

	for (size_t i = 0; i < N_VERBS; i++)
		names[i] = verbs[i].name;
	nearest = options_nearest(name, names, N_VERBS);
	fprintf(stderr, "andiron: there is no verb \"%s\"", name);
	if (nearest)
		fprintf(stderr, "; did you mean \"%s\"?", nearest);
	fprintf(stderr, "\n  `andiron --help` lists them\n");
	return EXIT_USAGE;
}

/* A reader who has seen enough closes the pipe; output then ends quietly, and
 * a full disk under standard output is a failure like any other. */
static int finish(int code)
{
	if (fflush(stdout) != 0 && code == EXIT_OK)
		return EXIT_FAILED;
	return code;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		help(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0) {
		help(stdout);
		return finish(EXIT_OK);
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("andiron %s (plugin ABI 1)\n", ANDIRON_VERSION);
		return finish(EXIT_OK);
	}
	for (size_t i = 0; i < N_VERBS; i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return finish(verbs[i].run(argc - 1, argv + 1));
	if (strcmp(argv[1], "worker") == 0)
		return verb_worker(argc - 1, argv + 1);
	return unknown_verb(argv[1]);
}
