/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron convert --from PROFILER`: another profiler's configuration as one of ours. What has no
 * counterpart is said in comments at the top. The text goes through the formatter, so what is
 * printed is always a configuration by its grammar. */
#include "base/file.h"
#include "cli/cli.h"
#include "cli/convert/conversion.h"
#include "cli/plugin-path.h"
#include "host/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_BYTES (1u << 20)

struct wish {
	const char *from;
};

static const char *const names[] = {"parca-agent", "otel-ebpf-profiler", NULL};

static int fail(const char *why)
{
	fprintf(stderr, "andiron convert: %s\n", why);
	return EXIT_FAILED;
}

static int read_input(const char *path, struct buf *text, struct error *err)
{
	int r = strcmp(path, "-") == 0 ? file_read_fd(STDIN_FILENO, text, MAX_BYTES)
				       : file_read(AT_FDCWD, path, text, MAX_BYTES);

	if (r == -E2BIG)
		return error_set(err, r, "%s is larger than %u MiB", path, MAX_BYTES >> 20);
	return r < 0 ? error_errno(err, r, "cannot read %s", path) : 0;
}

static int lay_out(struct buf *raw, struct buf *out, struct error *err)
{
	struct registry *registry = plugin_path_open(&(struct texts){0}, true);
	struct config *config = config_new();
	int r = registry && config && !raw->failed
			? config_add_text(config, "<converted>", buf_str(raw))
			: -ENOMEM;

	if (r == 0)
		r = config_format(config, registry, stderr, out);
	if (r == -EINVAL)
		r = error_set(err, r, "this is a fault of andiron; please report the input");
	config_free(config);
	registry_free(registry);
	return r;
}

static int convert(const struct wish *wish, const char *path, int argc, char **argv,
		   struct buf *out, struct error *err)
{
	struct buf text = BUF_NULL, raw = BUF_NULL;
	struct conversion c = {0};
	int r = path ? read_input(path, &text, err) : 0;

	if (r == 0)
		r = strcmp(wish->from, names[0]) == 0
			    ? convert_parca_agent(&c, path, buf_str(&text), argc, argv, err)
			    : convert_otel_profiler(&c, path, buf_str(&text), argc, argv, err);
	if (r == 0) {
		conversion_finish(&c, &raw);
		r = lay_out(&raw, out, err);
	}
	conversion_fini(&c);
	buf_free(&raw);
	buf_free(&text);
	return r;
}

/* Their command lines are pasted with the program's name, too. */
static int first_flag(int argc, char **argv, int at)
{
	return at < argc && *argv[at] != '-' ? at + 1 : at;
}

static int run(int argc, char **argv)
{
	struct wish wish = {0};
	struct error err = ERROR_NULL;
	struct buf out = BUF_NULL;
	int first, r, code = options_parse(&verb_convert, &wish, argc, argv, &first);
	const char *path = NULL;
	bool flags_follow;

	if (code != OPTIONS_DONE)
		return code;
	if (!wish.from)
		return options_wrong(&verb_convert, "from which profiler? --from parca-agent or "
						    "--from otel-ebpf-profiler");
	flags_follow = first > 0 && strcmp(argv[first - 1], "--") == 0;
	if (!flags_follow && first < argc)
		path = argv[first++];
	if (!flags_follow && first < argc && strcmp(argv[first], "--") == 0)
		first++;
	first = first_flag(argc, argv, first);
	if (!path && first >= argc)
		return options_wrong(&verb_convert,
				     "what? Name its file, or write its flags behind --");
	r = convert(&wish, path, argc - first, argv + first, &out, &err);
	if (r < 0)
		code = fail(err.code ? err.text : "out of memory");
	else
		code = fwrite(out.p, 1, out.n, stdout) < out.n || fflush(stdout) != 0
			       ? fail("cannot write to standard output")
			       : EXIT_OK;
	buf_free(&out);
	return code;
}

static const struct flag flags[] = {
	{"from", 0, FLAG_INTO(struct wish, from), "PROFILER",
	 "whose configuration it is: parca-agent or otel-ebpf-profiler", .choices = names},
	{0},
};

const struct command verb_convert = {
	.verb = "convert",
	.run = run,
	.usage = "--from PROFILER [FILE] [-- FLAG…]",
	.brief = "turn another profiler's configuration into one of andiron's",
	.summary =
		"Prints a configuration that does what parca-agent, or the OpenTelemetry eBPF "
		"profiler, was told to do. FILE is parca-agent's YAML, a Collector's YAML with "
		"the profiler's receiver, or the profiler's file of flags; - is standard input. "
		"Its flags follow --.\n"
		"Comments at the top say what has no counterpart, and why. Check the result with "
		"`andiron validate`.",
	.examples = "andiron convert --from parca-agent parca-agent.yaml -- "
		    "--remote-store-address=parca:7070 >agent.alloy\n"
		    "andiron convert --from otel-ebpf-profiler collector.yaml\n",
	.flags = flags,
};
