/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron new-plugin`: a project that builds, conforms and runs, to be changed into what its
 * author wants. It needs the installed headers and Meson, and nothing else of ours. */
#include "base/buf.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/kit/template.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define NAME_MAX_BYTES 32

struct new_plugin {
	const char *kind;
};

static bool is_name(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");

	return n > 0 && n <= NAME_MAX_BYTES && name[n] == '\0' && *name >= 'a' && *name <= 'z';
}

static void fill_in(const char *text, const char *name, struct buf *out)
{
	const struct str mark = STR("@NAME@");
	struct str rest = str_of(text);

	while (rest.n > 0) {
		size_t at = str_search(rest, mark);

		buf_str_append(out, str_first(rest, at));
		if (at < rest.n)
			buf_str_append(out, str_of(name));
		rest = str_skip(rest, at < rest.n ? at + mark.n : at);
	}
}

/* One file of the project. */
static int put(const char *project, const struct kit_template *t, const char *file,
	       struct error *err)
{
	struct buf path = BUF_NULL, text = BUF_NULL;
	int r;

	buf_printf(&path, "%s/%s", project, file);
	buf_putc(&path, '\0');
	fill_in(t->text, project, &text);
	r = path.failed || text.failed ? error_set(err, -ENOMEM, "out of memory")
				       : file_replace(path.p, text.p, text.n, err);
	buf_free(&path);
	buf_free(&text);
	return r;
}

/* The name of the file that a template is for, in a project of that kind; NULL: it is for others.
 */
static const char *file_of(const char *template, const char *kind)
{
	size_t n = strlen(kind);

	return strncmp(template, kind, n) == 0 && template[n] == '.' ? template + n + 1 : NULL;
}

/* Those of all kinds first: a kind may have its own in place of one. */
static int put_all(const struct new_plugin *n, const char *name, struct error *err)
{
	const char *const whose[] = {"all", n->kind};
	int r = 0;

	for (size_t i = 0; i < 2; i++)
		for (const struct kit_template *t = kit_templates; t->name && r == 0; t++) {
			const char *file = file_of(t->name, whose[i]);

			r = file ? put(name, t, file, err) : 0;
		}
	return r;
}

static int make(const struct new_plugin *n, const char *name)
{
	struct error err = ERROR_NULL;
	int r = mkdir(name, 0777) < 0
			? error_errno(&err, -errno, "cannot make the directory %s", name)
			: put_all(n, name, &err);

	if (r < 0) {
		fprintf(stderr, "andiron new-plugin: %s\n", err.text);
		return EXIT_FAILED;
	}
	printf("%s/ is a plugin: cd %s, meson setup build, meson test -C build\n", name, name);
	return EXIT_OK;
}

static int run(int argc, char **argv)
{
	struct new_plugin n = {.kind = NULL};
	int first, code = options_parse(&verb_new_plugin, &n, argc, argv, &first);

	if (code == OPTIONS_DONE && argc - first != 1)
		code = options_wrong(&verb_new_plugin, "which name shall it have?");
	if (code == OPTIONS_DONE && !n.kind)
		code = options_wrong(&verb_new_plugin, "of which kind shall it be? Say --kind");
	if (code == OPTIONS_DONE && !is_name(argv[first]))
		code = options_wrong(&verb_new_plugin,
				     "\"%s\" is no name for a plugin: a lower-case letter, then "
				     "letters, digits and _, at most %d",
				     argv[first], NAME_MAX_BYTES);
	if (code == OPTIONS_DONE && strcmp(n.kind, "runtime") == 0 && strchr(argv[first], '_'))
		code = options_wrong(&verb_new_plugin,
				     "\"%s\" is no name for a runtime: it has letters and digits "
				     "only (andiron/runtime.h)",
				     argv[first]);
	return code == OPTIONS_DONE ? make(&n, argv[first]) : code;
}

static const char *const kinds[] = {"discovery", "relabel", "sampler", "writer", "runtime", NULL};

static const struct flag flags[] = {
	{"kind", 0, FLAG_INTO(struct new_plugin, kind), "KIND",
	 "what it does: discovery finds targets, relabel changes them, sampler takes samples, "
	 "writer takes profiles, runtime shows the frames of a language",
	 .choices = kinds},
	{0},
};

const struct command verb_new_plugin = {
	.verb = "new-plugin",
	.run = run,
	.usage = "NAME --kind KIND",
	.brief = "write a project for a plugin of one's own",
	.summary =
		"Makes the directory NAME with a Meson project of a plugin that works: under 150 "
		"lines of C, Meson and configuration. It needs the installed headers.",
	.examples = "andiron new-plugin example --kind discovery\n",
	.flags = flags,
	.mixed = true,
};
