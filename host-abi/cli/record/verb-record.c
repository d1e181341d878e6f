/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron record`: one profile into files. All that can be refused is checked
 * here, before anything is started. */
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/plugin-path.h"
#include "cli/record/recording.h"

#include <string.h>

#define LONGEST (INT64_C(24) * 3600 * NS_PER_SEC)

/* Operands are a command only behind "--". */
static int take_command(const struct command *command, struct recording *r, int argc, char **argv,
			int first)
{
	if (first == argc)
		return strcmp(argv[argc - 1], "--") == 0
			       ? options_wrong(command, "which command? One must follow \"--\"")
			       : OPTIONS_DONE;
	if (strcmp(argv[first - 1], "--") != 0)
		return options_wrong(command,
				     "what is \"%s\"? A command is recorded by: andiron record "
				     "-- %s",
				     argv[first], argv[first]);
	r->request.command = argv + first;
	return OPTIONS_DONE;
}

int verb_record(int argc, char **argv)
{
	struct recording r = RECORDING_NULL;
	const struct flag flags[] = {
		{"all", 'a', FLAG_BOOL, NULL, "every process of the machine (default)",
		 &r.request.everything, 0, 0},
		{"pid", 'p', FLAG_TEXTS, "PID,…", "these processes only; may be repeated",
		 &r.request.pids, 0, 0},
		{"duration", 'd', FLAG_DURATION, "DURATION",
		 "how long (default 10s; with a command: until it ends)", &r.request.duration_ns,
		 NS_PER_SEC / 10, LONGEST},
		{"frequency", 'F', FLAG_NUMBER, "HZ", "samples per second and CPU (default 97)",
		 &r.request.rate_hz, 1, 999},
		{"output", 'o', FLAG_TEXTS, "FILE",
		 "write .html (flame graph), .pb.gz (pprof) or .folded (text); may be\n"
		 "                             repeated (default: flame.html and profile.pb.gz)",
		 &r.request.outputs, 0, 0},
		{"ledger", 0, FLAG_TEXT, "FILE", "write the books as JSON at the end", &r.ledger, 0,
		 0},
		{"verbose", 'v', FLAG_BOOL, NULL, "show the log of all components", &r.verbose, 0,
		 0},
		PLUGIN_DIR_FLAG(&r.plugin_dirs),
		{0},
	};
	const struct command command = {
		.verb = "record",
		.usage = "[OPTIONS] [-- COMMAND…]",
		.summary =
			"Profiles the machine, some processes, or a command with all its "
			"descendants, and writes\nfiles. A command starts when sampling is live, as "
			"the caller of sudo, and its exit code is kept\n(125: andiron's own "
			"failure). Ctrl-C writes what was taken.",
		.flags = flags,
		.examples = "  sudo andiron record\n"
			    "  sudo andiron record -d 30s -p 4711 -o flame.html\n"
			    "  sudo andiron record -- make -j8\n",
	};
	struct error err = ERROR_NULL;
	int first, code = options_parse(&command, argc, argv, false, &first);

	if (code == OPTIONS_DONE)
		code = take_command(&command, &r, argc, argv, first);
	if (code == OPTIONS_DONE && record_check(&r.request, &err) < 0)
		code = options_wrong(&command, "%s", err.text);
	if (code == OPTIONS_DONE) {
		r.caller = caller_get();
		code = recording_run(&r, argv);
	} else if (code == EXIT_USAGE && r.request.command) {
		code = EXIT_CANNOT;
	}
	recording_fini(&r);
	return code;
}
