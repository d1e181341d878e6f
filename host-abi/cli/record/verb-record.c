/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron record`: one profile into files. All that can be refused is checked
 * here, before anything is started. */
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/plugin-path.h"
#include "cli/record/recording.h"

#include <string.h>

#define LONGEST (INT64_C(24) * 3600 * NS_PER_SEC)

/* Operands are a command only behind "--". */
static int take_command(struct recording *r, int argc, char **argv, int first)
{
	if (first == argc)
		return strcmp(argv[argc - 1], "--") == 0
			       ? options_wrong(&verb_record,
					       "which command? One must follow \"--\"")
			       : OPTIONS_DONE;
	if (strcmp(argv[first - 1], "--") != 0)
		return options_wrong(&verb_record,
				     "what is \"%s\"? A command is recorded by: andiron record "
				     "-- %s",
				     argv[first], argv[first]);
	r->request.command = argv + first;
	return OPTIONS_DONE;
}

static int run(int argc, char **argv)
{
	struct recording r = RECORDING_NULL;
	struct error err = ERROR_NULL;
	int first, code = options_parse(&verb_record, &r, argc, argv, &first);

	if (code == OPTIONS_DONE)
		code = take_command(&r, argc, argv, first);
	if (code == OPTIONS_DONE && record_check(&r.request, &err) < 0)
		code = options_wrong(&verb_record, "%s", err.text);
	if (code == OPTIONS_DONE) {
		r.caller = caller_get();
		code = recording_run(&r, argv);
	} else if (code == EXIT_USAGE && r.request.command) {
		code = EXIT_CANNOT;
	}
	recording_fini(&r);
	return code;
}

static const struct flag flags[] = {
	{"all", 'a', FLAG_INTO(struct recording, request.everything), NULL,
	 "every process of the machine (default)"},
	{"pid", 'p', FLAG_INTO(struct recording, request.pids), "PID,…",
	 "these processes only; may be repeated"},
	{"duration", 'd', FLAG_INTO(struct recording, request.duration_ns), "DURATION",
	 "how long (default 10s; with a command: until it ends)", .min = NS_PER_SEC / 10,
	 .max = LONGEST},
	{"frequency", 'F', FLAG_INTO(struct recording, request.rate_hz), "HZ",
	 "samples per second and CPU (default 97)", .min = 1, .max = 999},
	{"output", 'o', FLAG_INTO(struct recording, request.outputs), "FILE",
	 "write .html (flame graph), .pb.gz (pprof) or .folded (text), or \"-\" (pprof to standard "
	 "output); may be repeated (default: flame.html and profile.pb.gz)"},
	{"group-by", 0, FLAG_INTO(struct recording, request.group_by), "LABEL,…",
	 "what pictures are grouped by: process (default), pid, comm (thread), …"},
	{"ledger", 0, FLAG_INTO(struct recording, ledger), "FILE",
	 "write the counts of samples as JSON at the end"},
	{"verbose", 'v', FLAG_INTO(struct recording, verbose), NULL,
	 "show the log of all components"},
	PLUGIN_DIR_FLAG(struct recording, plugin_dirs),
	{0},
};

const struct command verb_record = {
	.verb = "record",
	.run = run,
	.usage = "[OPTIONS] [-- COMMAND…]",
	.brief = "profile this machine, a process or a command into files",
	.summary =
		"Profiles the machine, some processes, or a command with all its descendants, and "
		"writes files. A command starts when sampling is live, as the user who called "
		"sudo. Its exit code is kept; 125 is andiron's own failure. Ctrl-C ends the "
		"recording and writes the files.",
	.examples = "sudo andiron record\n"
		    "sudo andiron record -d 30s -p 4711 -o flame.html\n"
		    "sudo andiron record -- make -j8\n"
		    "sudo andiron record -o - | ssh desk 'cat >profile.pb.gz'\n",
	.flags = flags,
};
