/* SPDX-License-Identifier: Apache-2.0 */
/* Files found. Contract in path-search.h. A folder's names are read before any is followed, so that
 * one descriptor is open at a time. */
#include "discovery/path-search.h"

#include "base/arena.h"
#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct name {
	const char *text;
	bool fits;   /* the part that is looked for */
	bool folder; /* and no link to one */
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

/* Whether one more may be looked at. */
static bool count(struct path_search *s)
{
	s->cut |= s->entries >= PATH_SEARCH_ENTRIES;
	if (s->cut || s->stop)
		return false;
	s->entries++;
	return true;
}

static bool is_folder(DIR *d, const struct dirent *e)
{
	struct stat is;

	if (e->d_type != DT_UNKNOWN)
		return e->d_type == DT_DIR;
	return fstatat(dirfd(d), e->d_name, &is, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(is.st_mode);
}

static bool add_name(struct names *n, const struct dirent *e, bool fits, bool folder)
{
	struct str text = arena_str(&n->arena, str_of(e->d_name));
	struct name name = {text.p, fits, folder};

	return text.p && vec_push(&n->all, name);
}

/* Those of a folder that fit a part, and the folders in it, if these are asked for. */
static int read_entries(struct path_search *s, DIR *d, const char *part, bool folders,
			struct names *ret)
{
	const struct dirent *e;

	while (errno = 0, (e = readdir(d))) {
		bool fits, folder;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (!count(s))
			return 0;
		fits = part && fnmatch(part, e->d_name, 0) == 0;
		folder = folders && is_folder(d, e);
		if ((fits || folder) && !add_name(ret, e, fits, folder))
			return -ENOMEM;
	}
	if (errno)
		s->failed = errno;
	return 0;
}

/* A folder that is not there has no names: nothing says that it must be. */
static int read_names(struct walk *w, const char *part, bool folders, struct names *ret)
{
	DIR *d = opendir(w->path[0] ? w->path : ".");
	int r;

	if (!d && (errno == EACCES || errno == EPERM))
		w->s->unreadable++;
	else if (!d && errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
		w->s->failed = errno;
	if (!d)
		return 0;
	r = read_entries(w->s, d, part, folders, ret);
	closedir(d);
	return r;
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
	s->found.n = s->n_sorted = kept;
}

static bool is_full(const struct path_search *s)
{
	return s->n_before + s->found.n >= PATH_SEARCH_FILES;
}

/* Where there is no room left, what was found twice makes some. */
static int keep(struct path_search *s, char *path)
{
	bool known;

	if (is_full(s) && s->n_sorted < s->found.n)
		sort_once(s);
	known = s->n_sorted &&
		bsearch(&path, s->found.p, s->n_sorted, sizeof(path), compare_texts);
	if (!known && !is_full(s) && vec_push(&s->found, path))
		return 0;
	free(path);
	if (known || is_full(s))
		s->left_out += !known;
	else
		return -ENOMEM;
	return 0;
}

static int add_file(struct path_search *s, const char *path)
{
	struct stat is;
	char *kept;

	if (!count(s) || stat(path, &is) < 0 || S_ISDIR(is.st_mode) ||
	    is.st_mtim.tv_sec < s->not_before_ns / NS_PER_SEC ||
	    (s->exclude && path_pattern_matches(s->exclude, path)))
		return 0;
	return absolute(path, &kept) < 0 ? -ENOMEM : keep(s, kept);
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

/* A folder below this one, looked through for all that follows the **. */
static int descend(struct walk *w, size_t n, const char *name, size_t part, int depth)
{
	size_t length = depth < PATH_SEARCH_DEPTH ? append(w, n, name, true) : 0;
	int r = length > n ? go_on(w, length, part, depth + 1) : 0;

	w->path[n] = '\0';
	return r;
}

/* Looks for what fits a part of the form and all behind it; where that part is a **, the next one
 * is looked for here, and the ** in each folder. A ** is never the last, nor beside another. */
static int go_on(struct walk *w, size_t n, size_t part, int depth)
{
	bool deep = path_part_is_deep(w->form->parts.p[part]);
	size_t next = part + deep;
	const char *fits = w->form->parts.p[next];
	struct names names = {0};
	int r = 0;

	if (w->s->cut || w->s->stop)
		return 0;
	if (path_part_is_name(fits)) {
		r = follow(w, n, fits, next, depth);
		fits = NULL;
	}
	if (r == 0 && (fits || deep))
		r = read_names(w, fits, deep, &names);
	for (size_t i = 0; i < names.all.n && r == 0; i++) {
		const struct name *name = &names.all.p[i];

		if (name->fits)
			r = follow(w, n, name->text, next, depth);
		if (name->folder && r == 0)
			r = descend(w, n, name->text, part, depth);
	}
	names_free(&names);
	return r;
}

static void forget(struct path_search *s)
{
	vec_each (&s->found, path)
		free(*path);
	s->found.n = s->n_sorted = 0;
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
