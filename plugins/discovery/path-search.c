/* SPDX-License-Identifier: Apache-2.0 */
/* Files found. Contract in path-search.h. A folder's names are read before any is followed, so that
 * one descriptor is open at a time. */
#include "discovery/path-search.h"

#include "base/arena.h"
#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct name {
	const char *text;
	bool may_be_folder, is_link;
};

struct names {
	struct arena arena;
	VEC(struct name) all;
};

struct walk {
	struct path_search *s;
	const struct path_form *form;
	char path[PATH_MAX]; /* where it is; the rest of it is a caller's */
};

static void names_free(struct names *n)
{
	vec_free(&n->all);
	arena_free(&n->arena);
}

static bool add_name(struct names *n, const struct dirent *e)
{
	struct str text = arena_str(&n->arena, str_of(e->d_name));
	struct name name = {.text = text.p,
			    .may_be_folder = e->d_type == DT_DIR || e->d_type == DT_LNK ||
					     e->d_type == DT_UNKNOWN,
			    .is_link = e->d_type == DT_LNK};

	return text.p && vec_push(&n->all, name);
}

/* What cannot be read has no names: that something is missing there is no fault of the reader's. */
static int read_names(struct walk *w, struct names *ret)
{
	DIR *d = opendir(w->path[0] ? w->path : ".");
	const struct dirent *e;
	bool ok = true;

	if (!d)
		w->s->unreadable += errno != ENOENT && errno != ENOTDIR;
	while (d && ok && (e = readdir(d))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		w->s->cut |= w->s->entries >= PATH_SEARCH_ENTRIES;
		if (w->s->cut)
			break;
		w->s->entries++;
		ok = add_name(ret, e);
	}
	if (d)
		closedir(d);
	return ok ? 0 : -ENOMEM;
}

static int absolute(const char *path, char **ret)
{
	char folder[PATH_MAX];

	if (path[0] == '/' || !getcwd(folder, sizeof(folder)))
		*ret = str_dup(str_of(path));
	else if (asprintf(ret, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, path) < 0)
		*ret = NULL;
	return *ret ? 0 : -ENOMEM;
}

static int add_file(struct path_search *s, const char *path)
{
	struct stat is;
	char *kept;

	if (stat(path, &is) < 0 || S_ISDIR(is.st_mode) ||
	    is.st_mtim.tv_sec * NS_PER_SEC + is.st_mtim.tv_nsec < s->not_before_ns ||
	    (s->exclude && path_pattern_matches(s->exclude, path)))
		return 0;
	if (s->n_before + s->found.n >= PATH_SEARCH_FILES) {
		s->left_out++;
		return 0;
	}
	if (absolute(path, &kept) < 0)
		return -ENOMEM;
	if (vec_push(&s->found, kept))
		return 0;
	free(kept);
	return -ENOMEM;
}

/* Appends a name and, where more follows, a slash: the new length, 0 if that is too long. */
static size_t append(struct walk *w, size_t n, const char *name, bool more)
{
	int added = snprintf(w->path + n, sizeof(w->path) - n, "%s%s", name, more ? "/" : "");

	return (size_t)added < sizeof(w->path) - n ? n + (size_t)added : 0;
}

static int go_on(struct walk *w, size_t n, size_t part, int depth);

/* One name that fits a part of the form. */
static int follow(struct walk *w, size_t n, const char *name, size_t part, int depth)
{
	bool more = part + 1 < w->form->parts.n;
	size_t length = append(w, n, name, more);
	int r = 0;

	if (length > n)
		r = more ? go_on(w, length, part + 1, depth) : add_file(w->s, w->path);
	w->path[n] = '\0';
	return r;
}

/* The folders below this one, each looked through for all that follows the **. */
static int descend(struct walk *w, size_t n, size_t part, const struct names *names, int depth)
{
	int r = 0;

	for (size_t i = 0; i < names->all.n && r == 0; i++) {
		const struct name *name = &names->all.p[i];
		size_t length;

		if (!name->may_be_folder || name->is_link || depth == PATH_SEARCH_DEPTH)
			continue;
		length = append(w, n, name->text, true);
		if (length > n)
			r = go_on(w, length, part, depth + 1);
		w->path[n] = '\0';
	}
	return r;
}

static int go_on(struct walk *w, size_t n, size_t part, int depth)
{
	const char *pattern = w->form->parts.p[part];
	bool deep = path_part_is_deep(pattern);
	struct names names = {0};
	int r;

	if (!deep && !strpbrk(pattern, "*?[\\"))
		return follow(w, n, pattern, part, depth);
	r = deep ? go_on(w, n, part + 1, depth) : 0;
	if (r == 0)
		r = read_names(w, &names);
	if (deep && r == 0)
		r = descend(w, n, part, &names, depth);
	for (size_t i = 0; !deep && i < names.all.n && r == 0; i++)
		if (fnmatch(pattern, names.all.p[i].text, 0) == 0)
			r = follow(w, n, names.all.p[i].text, part, depth);
	names_free(&names);
	return r;
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Forms may overlap, and a ** reaches a file by several ways. */
static void sort_once(struct path_search *s)
{
	size_t kept = 0;

	if (s->found.n)
		qsort(s->found.p, s->found.n, sizeof(*s->found.p), compare_texts);
	for (size_t i = 0; i < s->found.n; i++)
		if (kept && strcmp(s->found.p[kept - 1], s->found.p[i]) == 0)
			free(s->found.p[i]);
		else
			s->found.p[kept++] = s->found.p[i];
	s->found.n = kept;
}

static void forget(struct path_search *s)
{
	vec_each (&s->found, path)
		free(*path);
	s->found.n = 0;
}

int path_search_run(struct path_search *s, const struct path_pattern *p)
{
	struct walk *w = calloc(1, sizeof(*w)); /* too large for a worker's stack */
	int r = w ? 0 : -ENOMEM;

	s->n_before += s->found.n;
	forget(s);
	for (size_t i = 0; r == 0 && i < p->forms.n; i++) {
		w->s = s;
		w->form = &p->forms.p[i];
		r = go_on(w, 0, 0, 0);
	}
	sort_once(s);
	free(w);
	return r;
}

void path_search_free(struct path_search *s)
{
	forget(s);
	vec_free(&s->found);
}
