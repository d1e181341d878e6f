/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns to files to rows. Contract in read-files.h. A folder that is not there is watched for in
 * the nearest one above it that is. A pipe that nobody writes to would hold up its reader for good,
 * so only regular files are read. */
#include "discovery/read-files.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "discovery/files.h"
#include "discovery/groups.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHANGES                                                                                    \
	(IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF |   \
	 IN_MOVE_SELF | IN_ONLYDIR)

/* Watches the folder of a pattern, or the nearest one above it. */
static bool watch_folder(int fd, const char *pattern)
{
	_cleanup_(freep) char *path = str_dup(str_of(pattern));
	char *slash;

	if (!path)
		return false;
	while ((slash = strrchr(path, '/'))) {
		slash[slash == path ? 1 : 0] = '\0';
		if (inotify_add_watch(fd, path, CHANGES) >= 0)
			return true;
		if ((errno != ENOENT && errno != ENOTDIR) || slash == path)
			return false;
	}
	return inotify_add_watch(fd, ".", CHANGES) >= 0;
}

static void watch_folders(char *const *patterns, size_t n, struct read_files *ret)
{
	ret->watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	for (size_t i = 0; i < n; i++)
		ret->unwatched += ret->watch_fd < 0 || !watch_folder(ret->watch_fd, patterns[i]);
}

static int fail(struct read_file *file, const struct error *err, int code)
{
	file->fault = str_dup(err->code ? str_of(err->text) : str_of(strerror(-code)));
	return file->fault ? 0 : -ENOMEM;
}

static int read_text(const char *path, struct buf *text, struct error *err)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat is;
	int r;

	if (fd < 0 || fstat(fd, &is) < 0)
		return -errno;
	if (!S_ISREG(is.st_mode))
		return error_set(err, -EINVAL, "it is no regular file");
	r = file_read_fd(fd, text, GROUPS_MAX_BYTES);
	if (r == -E2BIG)
		error_set(err, r, "it is larger than %zu MiB", GROUPS_MAX_BYTES >> 20);
	return r;
}

static int read_one(struct read_file *file)
{
	_cleanup_(buf_free) struct buf text = BUF_NULL;
	struct target_label label = {STR("__meta_filepath"), str_of(file->path)};
	struct str ending = str_skip(str_of(file->path), str_rfind(str_of(file->path), '.'));
	struct error err = ERROR_NULL;
	int r = read_text(file->path, &text, &err);

	if (r == 0)
		r = strcasecmp(ending.p, ".json") == 0
			    ? groups_from_json(buf_str(&text), label, &file->rows, &err)
			    : groups_from_yaml(buf_str(&text), label, &file->rows, &err);
	return r == 0 ? 0 : r == -ENOMEM ? r : fail(file, &err, r);
}

/* Whether one of the first n is this. */
static bool has(const struct read_files *files, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(files->all.p[i].path, path) == 0)
			return true;
	return false;
}

static int add(struct read_files *ret, const char *path)
{
	struct read_file file = {0};

	if (ret->all.n >= FILES_MAX) {
		ret->left_out++;
		return 0;
	}
	file.path = str_dup(str_of(path));
	if (!file.path || !vec_push(&ret->all, file)) {
		free(file.path);
		return -ENOMEM;
	}
	return read_one(&ret->all.p[ret->all.n - 1]);
}

/* All files of a pattern. A folder that cannot be read has none. */
static int add_pattern(struct read_files *ret, const char *pattern)
{
	glob_t found = {0};
	size_t before = ret->all.n; /* a pattern alone gives no file twice */
	int r = glob(pattern, GLOB_PERIOD, NULL, &found);

	if (r == GLOB_NOSPACE)
		return -ENOMEM;
	r = 0;
	for (size_t i = 0; i < found.gl_pathc && r == 0; i++)
		if (!has(ret, before, found.gl_pathv[i]))
			r = add(ret, found.gl_pathv[i]);
	globfree(&found);
	return r;
}

int read_files(const struct str *patterns, size_t n, struct read_files *ret)
{
	char **texts = calloc(n + 1, sizeof(*texts));
	int r = texts ? 0 : -ENOMEM;

	*ret = (struct read_files){.watch_fd = -1};
	for (size_t i = 0; i < n && r == 0; i++) {
		texts[i] = str_dup(patterns[i]);
		r = texts[i] ? 0 : -ENOMEM;
	}
	if (r == 0)
		watch_folders(texts, n, ret);
	for (size_t i = 0; i < n && r == 0; i++)
		r = add_pattern(ret, texts[i]);
	for (size_t i = 0; texts && i < n; i++)
		free(texts[i]);
	free(texts);
	if (r < 0)
		read_files_free(ret);
	return r;
}

void read_files_free(struct read_files *files)
{
	vec_each (&files->all, file) {
		target_rows_free(&file->rows);
		free(file->fault);
		free(file->path);
	}
	vec_free(&files->all);
	if (files->watch_fd >= 0)
		close(files->watch_fd);
	files->watch_fd = -1;
}
