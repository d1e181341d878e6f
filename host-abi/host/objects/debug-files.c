/* SPDX-License-Identifier: Apache-2.0 */
/* Files that belong to another. Contract in debug-files.h. */
#include "host/objects/debug-files.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define ROOT_OF_PROCESS "/proc/"
#define PATH_BYTES      8192

/* A path cut into the root that holds it, and the rest, which begins with '/'. */
struct split {
	char root[64];
	const char *rest;
};

static struct split split(const char *reopen)
{
	const size_t n = sizeof(ROOT_OF_PROCESS) - 1;
	struct split s = {.root = "/", .rest = reopen};
	size_t digits;

	if (strncmp(reopen, ROOT_OF_PROCESS, n) != 0)
		return s;
	digits = strspn(reopen + n, "0123456789");
	if (!digits || digits > 10 || strncmp(reopen + n + digits, "/root/", 6) != 0)
		return s;
	snprintf(s.root, sizeof(s.root), "%.*s/root", (int)(n + digits), reopen);
	s.rest = reopen + n + digits + 5;
	return s;
}

/* Beneath the root, whatever links say; links that the kernel makes up
 * (/proc/PID/fd/…) are not followed. */
static int open_as(const char *root, const char *path, uint64_t flags, int32_t *ret_fd)
{
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_(closep) int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(closep) int fd = -1;
	struct stat st;

	if (dir < 0)
		return -ENOENT;
	fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -ENOENT;
	*ret_fd = take_fd(fd);
	return 0;
}

static int open_below(const char *root, const char *path, int32_t *ret_fd)
{
	return open_as(root, path, 0, ret_fd);
}

int debug_file_by_id(const char *reopen, struct str id, int32_t *ret_fd)
{
	struct split s = split(reopen);
	char path[192];
	int r;

	if (id.n < 4 || id.n > 128 || !str_is_hex(id))
		return -ENOENT;
	snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%.*s.debug", id.p,
		 (int)id.n - 2, id.p + 2);
	r = open_below("/", path, ret_fd);
	return r < 0 && s.root[1] ? open_below(s.root, path, ret_fd) : r;
}

int debug_file_by_link(const char *reopen, struct str name, int32_t *ret_fd)
{
	static const char *const places[][2] = {
		{"", "/"}, {"", "/.debug/"}, {"/usr/lib/debug", "/"}};
	struct split s = split(reopen);
	struct str folder = str_of(s.rest);
	char path[PATH_BYTES];

	if (!name.n || name.n > 255 || memchr(name.p, '/', name.n) || str_is(name, ".") ||
	    str_is(name, "..") || !folder.n || str_rfind(folder, '/') == folder.n)
		return -ENOENT;
	folder = str_first(folder, str_rfind(folder, '/'));
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int n = snprintf(path, sizeof(path), "%s%.*s%s%.*s", places[i][0], STR_FMT(folder),
				 places[i][1], STR_FMT(name));

		if (n > 0 && (size_t)n < sizeof(path) && open_below(s.root, path, ret_fd) == 0)
			return 0;
	}
	return -ENOENT;
}

int debug_file_package(const char *reopen, int32_t *ret_fd)
{
	struct split s = split(reopen);
	char path[PATH_BYTES];
	int n = snprintf(path, sizeof(path), "%s.dwp", s.rest);

	return s.rest[0] == '/' && n > 0 && (size_t)n < sizeof(path)
		       ? open_below(s.root, path, ret_fd)
		       : -ENOENT;
}

/* Whether a part of the path is "..". */
static bool goes_up(struct str path)
{
	while (path.n) {
		struct str part = str_first(path, str_find(path, '/'));

		if (str_is(part, ".."))
			return true;
		path = str_skip(path, part.n + 1);
	}
	return false;
}

int debug_file_split(const char *reopen, struct str name, int32_t *ret_fd)
{
	struct split s = split(reopen);
	struct str folder = str_of(s.rest);
	char path[PATH_BYTES];
	int n;

	if (!name.n || memchr(name.p, '\0', name.n) || !str_ends(name, STR(".dwo")) ||
	    goes_up(name) || str_rfind(folder, '/') == folder.n)
		return -ENOENT;
	folder = name.p[0] == '/' ? STR("") : str_first(folder, str_rfind(folder, '/') + 1);
	n = snprintf(path, sizeof(path), "%.*s%.*s", STR_FMT(folder), STR_FMT(name));
	return n > 0 && (size_t)n < sizeof(path) ? open_as(s.root, path, O_NOFOLLOW, ret_fd)
						 : -ENOENT;
}
