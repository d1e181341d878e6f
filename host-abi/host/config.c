/* SPDX-License-Identifier: Apache-2.0 */
/* See config.h. */
#include "host/config.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "host/lang/import.h"
#include "host/lang/syntax/format.h"
#include "host/lang/syntax/redact.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_SOURCES 1000

struct config *config_new(void)
{
	return calloc(1, sizeof(struct config));
}

void config_free(struct config *config)
{
	if (!config)
		return;
	vec_each (&config->texts, text)
		buf_free(*text);
	vec_free(&config->texts);
	vec_free(&config->sources);
	free(config->all);
	arena_free(&config->arena);
	free(config);
}

/* Takes the text over, also on failure. */
static int add(struct config *config, const char *name, struct buf *text)
{
	struct source *source = arena_alloc(&config->arena, sizeof(*source));
	struct buf *kept = arena_alloc(&config->arena, sizeof(*kept));
	struct str copy = arena_str(&config->arena, str_of(name));

	if (!source || !kept || !copy.p || !vec_reserve(&config->sources, 1) ||
	    !vec_reserve(&config->texts, 1)) {
		buf_free(text);
		return -ENOMEM;
	}
	check(config->sources.n == config->texts.n);
	*kept = *text;
	*text = BUF_NULL;
	*source = (struct source){copy.p, buf_str(kept)};
	config->texts.p[config->texts.n++] = kept;
	config->sources.p[config->sources.n++] = source;
	return 0;
}

int config_add_text(struct config *config, const char *name, struct str text)
{
	struct buf copy = BUF_NULL;

	if (buf_str_append(&copy, text) < 0)
		return -ENOMEM;
	return add(config, name, &copy);
}

int config_add_input(struct config *config, struct error *err)
{
	struct buf text = BUF_NULL;
	int r = file_read_fd(STDIN_FILENO, &text, CONFIG_MAX_BYTES);

	if (r < 0 && r != -E2BIG) {
		buf_free(&text);
		return error_errno(err, r, "cannot read standard input");
	}
	r = add(config, "<stdin>", &text);
	return r < 0 ? error_set(err, r, "out of memory") : 0;
}

static int add_file(struct config *config, const char *path, struct error *err)
{
	struct buf text = BUF_NULL;
	int r = file_read(AT_FDCWD, path, &text, CONFIG_MAX_BYTES);

	if (r < 0 && r != -E2BIG) {
		buf_free(&text);
		return error_errno(err, r, "cannot read %s", path);
	}
	r = add(config, path, &text);
	return r < 0 ? error_set(err, r, "out of memory") : 0;
}

static int add_directory(struct config *config, const char *dir, struct error *err)
{
	struct dirent **entries = NULL;
	int n = import_list(dir, &entries);
	int r = 0;

	if (n < 0)
		return error_errno(err, -errno, "cannot read the directory %s", dir);
	if (n == 0)
		r = error_set(err, -ENOENT, "%s holds no file named *.alloy", dir);
	for (int i = 0; i < n; i++) {
		const char *path =
			r < 0 ? NULL
			      : arena_printf(&config->arena, "%s/%s", dir, entries[i]->d_name);

		if (r == 0)
			r = path ? add_file(config, path, err) : -ENOMEM;
		free(entries[i]);
	}
	free(entries);
	return r;
}

int config_add_path(struct config *config, const char *path, struct error *err)
{
	struct stat st;

	if (config->sources.n >= MAX_SOURCES)
		return error_set(err, -E2BIG, "more than %d configuration files", MAX_SOURCES);
	if (stat(path, &st) < 0)
		return error_errno(err, -errno, "cannot read %s", path);
	return S_ISDIR(st.st_mode) ? add_directory(config, path, err) : add_file(config, path, err);
}

bool config_same(const struct config *a, const struct config *b)
{
	if (a->sources.n != b->sources.n)
		return false;
	for (size_t i = 0; i < a->sources.n; i++)
		if (strcmp(a->sources.p[i]->name, b->sources.p[i]->name) != 0 ||
		    !str_eq(a->sources.p[i]->text, b->sources.p[i]->text))
			return false;
	return true;
}

static int build(struct config *config, struct registry *registry, struct diags *diags,
		 struct plan **ret)
{
	struct source *all = calloc(config->sources.n + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < config->sources.n; i++)
		all[i] = *config->sources.p[i];
	free(config->all);
	config->all = all;
	return plan_build_with(all, config->sources.n, registry, config->supplied, diags, ret);
}

int config_plan(struct config *config, struct registry *registry, bool quiet, FILE *out,
		struct plan **ret)
{
	struct diags diags = {.arena = ARENA_NULL};
	int r = build(config, registry, &diags, ret);

	if (r < 0 || (!quiet && diags.list.n > 0))
		diags_print(&diags, out, isatty(fileno(out)) == 1);
	if (r == -ENOMEM)
		fprintf(out, "andiron: out of memory\n");
	diags_free(&diags);
	return r;
}

int config_format(struct config *config, struct registry *registry, FILE *messages, struct buf *out)
{
	struct diags diags = {.arena = ARENA_NULL};
	int r;

	check(config->sources.n == 1);
	r = format_source(config->sources.p[0], &diags, out);
	/* What a mistake is quoted with may be a secret of any component. */
	if (r == -EINVAL &&
	    (registry_require(registry, NULL, 0) < 0 || redact_declare(&diags, registry) < 0))
		r = -ENOMEM;
	if (r == -EINVAL)
		diags_print(&diags, messages, isatty(fileno(messages)) == 1);
	if (r == -ENOMEM)
		fprintf(messages, "andiron: out of memory\n");
	diags_free(&diags);
	return r;
}

int config_findings(struct config *config, struct registry *registry, struct buf *out,
		    size_t *ret_left_out, struct plan **ret)
{
	struct diags diags = {.arena = ARENA_NULL};
	struct plan *plan = NULL;
	int r = build(config, registry, &diags, &plan);

	*ret_left_out = diags.n_errors + diags.n_warnings - diags.list.n;
	if (r != -ENOMEM && diags_put_json(&diags, out) < 0)
		r = -ENOMEM;
	diags_free(&diags);
	if (r < 0)
		plan_free(plan);
	else
		*ret = plan;
	return r;
}

void config_quote(struct buf *b, struct str text)
{
	buf_putc(b, '"');
	for (size_t i = 0; i < text.n; i++) {
		unsigned char ch = (unsigned char)text.p[i];

		if (ch == '"' || ch == '\\')
			buf_printf(b, "\\%c", ch);
		else if (ch == '\n')
			buf_str_append(b, STR("\\n"));
		else if (ch < ' ' || ch == 0x7f)
			buf_printf(b, "\\u%04x", ch);
		else
			buf_putc(b, (char)ch);
	}
	buf_putc(b, '"');
}
