/* SPDX-License-Identifier: Apache-2.0 */
/* See store.h. All paths are relative to descriptors of folders, and no link is followed: others
 * may write to the folder. */
#include "debuginfod/store.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/search.h"
#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
#define FILES_MAX    (1u << 20)

/* Every folder on the way, as `mkdir -p`. */
static int make_folders(const char *path)
{
	char *copy = str_dup(str_of(path));
	int r = copy ? 0 : -ENOMEM;

	for (char *p = copy ? copy + 1 : NULL; r == 0 && p && *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		r = mkdir(copy, 0700) < 0 && errno != EEXIST ? -errno : 0;
		*p = '/';
	}
	free(copy);
	if (r == 0 && mkdir(path, 0700) < 0 && errno != EEXIST)
		r = -errno;
	return r;
}

int store_open(struct store *ret, const char *path, uint64_t n_bytes, struct error *err)
{
	int r = path[0] == '/' ? make_folders(path) : -EINVAL;
	int fd = r < 0 ? r : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return error_errno(err, r < 0 ? r : -errno, "cannot keep debug files in %s", path);
	*ret = (struct store){fd, n_bytes};
	return 0;
}

void store_close(struct store *s)
{
	closep(&s->fd);
	*s = STORE_NULL;
}

bool store_is_id(struct str id)
{
	return id.n >= 8 && id.n <= STORE_ID_MAX && id.n % 2 == 0 && str_is_hex(id);
}

/* The folder of an id, to close. */
static int open_folder(const struct store *s, struct str id, bool make)
{
	char name[STORE_ID_MAX + 1];
	int fd;

	if (!store_is_id(id))
		return -EINVAL;
	snprintf(name, sizeof(name), "%.*s", STR_FMT(id));
	if (make && mkdirat(s->fd, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(s->fd, name, FOLDER_FLAGS);
	return fd < 0 ? -errno : fd;
}

/* A setting that lies in the folder. */
static int64_t seconds_of(const struct store *s, const char *name, int64_t otherwise)
{
	_cleanup_(buf_free) struct buf text = BUF_NULL;
	uint64_t value;

	if (file_read(s->fd, name, &text, 32) < 0 || !str_u64(str_trim(buf_str(&text)), &value) ||
	    value > INT32_MAX)
		return otherwise;
	return (int64_t)value;
}

/* Empty: nobody had it; after a while that is forgotten. */
static int judge_empty(const struct store *s, int folder, const char *name, const struct stat *st)
{
	if (time(NULL) - st->st_mtime < seconds_of(s, "cache_miss_s", STORE_MISS_SECONDS))
		return -ENODATA;
	unlinkat(folder, name, 0);
	return -ENOENT;
}

int store_find(const struct store *s, struct str id, const char *name)
{
	_cleanup_(closep) int folder = open_folder(s, id, false), fd = -1;
	const struct timespec used[] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
	struct stat st;

	if (folder < 0)
		return folder == -ENOMEM ? folder : -ENOENT;
	fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -ENOENT;
	if (st.st_size == 0)
		return judge_empty(s, folder, name, &st);
	/* Whose file it is may be somebody else; then it ages as it would. */
	(void)!futimens(fd, used);
	return take_fd(fd);
}

int store_begin(const struct store *s, struct str id, const char *name, struct store_draft *ret)
{
	struct store_draft d = {.folder = open_folder(s, id, true), .fd = -1};

	if (d.folder < 0)
		return d.folder;
	/* As elfutils names them: what is left behind by a crash is cleaned up by both. */
	for (unsigned int i = 0; i < 100 && d.fd < 0; i++) {
		snprintf(d.name, sizeof(d.name), "%.*s.%06x", STORE_NAME_MAX, name,
			 ((unsigned int)getpid() + (i << 16)) & 0xffffff);
		d.fd = openat(d.folder, d.name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			      0600);
	}
	if (d.fd < 0) {
		int r = -errno;

		close(d.folder);
		return r;
	}
	*ret = d;
	return 0;
}

void store_drop(struct store_draft *d)
{
	if (d->fd >= 0)
		unlinkat(d->folder, d->name, 0);
	closep(&d->fd);
	closep(&d->folder);
	*d = STORE_DRAFT_NULL;
}

int store_keep(struct store_draft *d, const char *name)
{
	int r = 0;

	check(d->fd >= 0 && d->folder >= 0);
	if (fchmod(d->fd, 0400) < 0 || renameat(d->folder, d->name, d->folder, name) < 0)
		r = -errno;
	if (r < 0) {
		store_drop(d);
		return r;
	}
	closep(&d->fd);
	closep(&d->folder);
	*d = STORE_DRAFT_NULL;
	return 0;
}

int store_deny(const struct store *s, struct str id, const char *name)
{
	struct store_draft d;
	int r = store_begin(s, id, name, &d);

	return r < 0 ? r : store_keep(&d, name);
}

/* --- Cleaning --- */

struct kept {
	char folder[STORE_ID_MAX + 1], name[STORE_NAME_MAX + 8];
	int64_t used;
	uint64_t bytes;
};

struct inventory {
	VEC(struct kept) files;
	uint64_t n_bytes;
};

static int by_use(const void *x, const void *y)
{
	const struct kept *a = x, *b = y;

	return compare(a->used, b->used);
}

static int list_file(struct inventory *all, int folder, const char *id, const char *name)
{
	struct kept k = {.bytes = 0};
	struct stat st;

	if (strlen(name) >= sizeof(k.name) || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode))
		return 0;
	if (all->files.n >= FILES_MAX)
		return -E2BIG;
	memcpy(k.folder, id, strlen(id) + 1);
	memcpy(k.name, name, strlen(name) + 1);
	k.used = st.st_atime;
	k.bytes = (uint64_t)st.st_blocks * 512;
	all->n_bytes += k.bytes;
	return vec_push(&all->files, k) ? 0 : -ENOMEM;
}

/* Calls for each entry of a folder; takes the descriptor over. */
static int each_entry(int fd, int (*call)(void *context, int folder, const char *name),
		      void *context)
{
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int r = 0;

	if (!dir) {
		closep(&fd);
		return 0;
	}
	while (r == 0 && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			r = call(context, dirfd(dir), e->d_name);
	closedir(dir);
	return r;
}

struct listing {
	struct inventory *all;
	const char *id;
};

static int list_entry(void *context, int folder, const char *name)
{
	const struct listing *l = context;

	return list_file(l->all, folder, l->id, name);
}

static int list_folder(void *context, int root, const char *name)
{
	struct listing l = {context, name};

	if (!store_is_id(str_of(name)))
		return 0;
	return each_entry(openat(root, name, FOLDER_FLAGS), list_entry, &l);
}

static void remove_kept(const struct store *s, const struct kept *k)
{
	char path[sizeof(k->folder) + sizeof(k->name) + 1];

	snprintf(path, sizeof(path), "%s/%s", k->folder, k->name);
	unlinkat(s->fd, path, 0);
	/* The last one takes its folder along. */
	unlinkat(s->fd, k->folder, AT_REMOVEDIR);
}

/* Whether the old ones are due; notes that they were looked for. */
static bool is_due(const struct store *s, int64_t now_seconds)
{
	static const char name[] = "cache_clean_interval_s", text[] = "86400";
	const struct timespec now[] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
	struct stat st;
	_cleanup_(closep) int fd = -1;

	if (fstatat(s->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (now_seconds - st.st_mtime < seconds_of(s, name, STORE_CLEAN_SECONDS))
			return false;
		utimensat(s->fd, name, now, AT_SYMLINK_NOFOLLOW);
		return true;
	}
	fd = openat(s->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd >= 0)
		file_write_fd(fd, text, sizeof(text) - 1);
	return false;
}

int store_clean(const struct store *s, int64_t now_seconds)
{
	int64_t age = is_due(s, now_seconds)
			      ? seconds_of(s, "max_unused_age_s", STORE_UNUSED_SECONDS)
			      : INT64_MAX;
	struct inventory all = {.n_bytes = 0};
	int r = each_entry(openat(s->fd, ".", FOLDER_FLAGS), list_folder, &all);

	if (all.files.n)
		qsort(all.files.p, all.files.n, sizeof(*all.files.p), by_use);
	vec_each (&all.files, k) {
		bool much = s->n_bytes && all.n_bytes > s->n_bytes;

		if (!much && now_seconds - k->used <= age)
			break;
		check(all.n_bytes >= k->bytes);
		all.n_bytes -= k->bytes;
		remove_kept(s, k);
	}
	vec_free(&all.files);
	return r;
}
