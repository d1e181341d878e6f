/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron fmt`: a configuration as Alloy's formatter writes it. Arguments and exit codes are those
 * of `alloy fmt`. */
#include "base/error.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/plugin-path.h"
#include "host/config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fmt {
	bool write, test;
	const char *path; /* NULL: standard input */
};

static int fail(const char *why)
{
	fprintf(stderr, "andiron fmt: %s\n", why);
	return EXIT_FAILED;
}

static int read_source(const struct fmt *f, struct config *config, struct error *err)
{
	struct stat st;

	if (f->path && stat(f->path, &st) == 0 && S_ISDIR(st.st_mode))
		return error_set(err, -EISDIR, "%s is a directory; name its files one by one",
				 f->path);
	return f->path ? config_add_path(config, f->path, err) : config_add_input(config, err);
}

/* What is to be done with the text. */
static int deliver(const struct fmt *f, struct str before, struct str after)
{
	struct error err = ERROR_NULL;

	if (f->test && !str_eq(before, after)) {
		fprintf(stderr, "andiron fmt: %s is not formatted\n",
			f->path ? f->path : "standard input");
		return EXIT_FAILED;
	}
	if (f->test || (f->write && str_eq(before, after)))
		return EXIT_OK;
	if (f->write)
		return file_rewrite(f->path, after.p, after.n, &err) < 0 ? fail(err.text) : EXIT_OK;
	if (fwrite(after.p, 1, after.n, stdout) < after.n || fflush(stdout) != 0)
		return fail("cannot write to standard output");
	return EXIT_OK;
}

static int format(const struct fmt *f, struct config *config)
{
	struct texts no_dirs = {0};
	struct registry *registry = plugin_path_open(&no_dirs, true);
	struct error err = ERROR_NULL;
	struct buf out = BUF_NULL;
	int code = EXIT_FAILED;

	if (registry && read_source(f, config, &err) < 0)
		fail(err.text);
	else if (registry && config_format(config, registry, stderr, &out) == 0)
		code = deliver(f, config->sources.p[0]->text, buf_str(&out));
	buf_free(&out);
	registry_free(registry);
	return code;
}

static int run(int argc, char **argv)
{
	struct fmt f = {0};
	struct config *config;
	int first, code = options_parse(&verb_fmt, &f, argc, argv, &first);

	if (code != OPTIONS_DONE)
		return code;
	if (argc - first > 1)
		return options_wrong(&verb_fmt, "one file at a time");
	if (first < argc && strcmp(argv[first], "-") != 0)
		f.path = argv[first];
	if (f.write && f.test)
		return options_wrong(&verb_fmt, "either --write or --test");
	if (f.write && !f.path)
		return options_wrong(&verb_fmt, "--write needs a file; standard input is none");
	config = config_new();
	code = config ? format(&f, config) : fail("out of memory");
	config_free(config);
	return code;
}

static const struct flag flags[] = {
	{"write", 'w', FLAG_INTO(struct fmt, write), NULL,
	 "write the result into the file instead of to standard output"},
	{"test", 't', FLAG_INTO(struct fmt, test), NULL,
	 "print nothing, and exit with 1 if the file is not formatted"},
	{0},
};

const struct command verb_fmt = {
	.verb = "fmt",
	.run = run,
	.usage = "[OPTIONS] [FILE]",
	.brief = "format a configuration as Alloy does",
	.summary = "Prints the file, or standard input if there is none or it is -, as Alloy's "
		   "formatter writes it. A file with syntax errors is left as it is. Needs no "
		   "root.",
	.examples = "andiron fmt -w agent.alloy\nandiron fmt --test agent.alloy\n",
	.flags = flags,
	.mixed = true,
};
