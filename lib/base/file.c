/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files. Contracts in file.h. */
#include "base/file.h"

#include "base/check.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int file_read_fd(int fd, struct buf *b, size_t max)
{
	for (size_t total = 0;;) {
		check(total <= max);
		size_t want = max - total < 65536 ? max - total : 65536;
		char probe, *room = want ? buf_reserve(b, want) : &probe;
		ssize_t n;

		if (!room)
			return -ENOMEM;
		n = read(fd, room, want ? want : 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		if (!want)
			return -E2BIG;
		b->n += (size_t)n;
		total += (size_t)n;
	}
}

int file_read(int at, const char *path, struct buf *b, size_t max)
{
	_cleanup_(closep) int fd = openat(at, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : file_read_fd(fd, b, max);
}

int file_pread(int fd, void *data, size_t n, uint64_t offset)
{
	char *p = data;

	while (n) {
		ssize_t r = pread(fd, p, n, (off_t)offset);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? -errno : -ENODATA;
		p += r;
		n -= (size_t)r;
		offset += (uint64_t)r;
	}
	return 0;
}

int file_write_fd(int fd, const void *data, size_t n)
{
	const char *p = data;

	while (n) {
		ssize_t r = write(fd, p, n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		p += r;
		n -= (size_t)r;
	}
	return 0;
}

int file_replace(const char *path, const void *data, size_t n, struct error *err)
{
	_cleanup_(freep) char *beside = NULL;
	_cleanup_(closep) int fd = -1;
	int r;

	if (asprintf(&beside, "%s.%d.tmp", path, (int)getpid()) < 0) {
		beside = NULL;
		return -ENOMEM;
	}
	fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return error_errno(err, -errno, "cannot create %s", beside);
	r = file_write_fd(fd, data, n);
	if (r < 0)
		error_errno(err, r, "cannot write %s", beside);
	else if (rename(beside, path) < 0)
		r = error_errno(err, -errno, "cannot rename %s to %s", beside, path);
	if (r < 0)
		unlink(beside);
	return r;
}

/* Owner before mode: a change of owner may clear bits of the mode. */
static int keep_rights(int fd, const struct stat *st)
{
	struct stat now;

	if (fstat(fd, &now) < 0)
		return -errno;
	if ((now.st_uid != st->st_uid || now.st_gid != st->st_gid) &&
	    fchown(fd, st->st_uid, st->st_gid) < 0)
		return -errno;
	return fchmod(fd, st->st_mode & 07777) < 0 ? -errno : 0;
}

int file_rewrite(const char *path, const void *data, size_t n, struct error *err)
{
	_cleanup_(freep) char *file = realpath(path, NULL);
	_cleanup_(freep) char *beside = NULL;
	_cleanup_(closep) int fd = -1;
	struct stat st;
	int r;

	if (!file || stat(file, &st) < 0)
		return error_errno(err, -errno, "cannot write %s", path);
	if (!S_ISREG(st.st_mode))
		return error_set(err, -EINVAL, "cannot write %s: it is no regular file", path);
	if (asprintf(&beside, "%s.%d.tmp", file, (int)getpid()) < 0) {
		beside = NULL;
		return error_set(err, -ENOMEM, "out of memory");
	}
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return error_errno(err, -errno, "cannot create %s", beside);
	r = keep_rights(fd, &st);
	if (r < 0)
		error_errno(err, r, "cannot keep owner and mode of %s", file);
	else if ((r = file_write_fd(fd, data, n)) < 0)
		error_errno(err, r, "cannot write %s", beside);
	else if (fsync(fd) < 0) /* else a crash leaves an empty file */
		r = error_errno(err, -errno, "cannot write %s", beside);
	else if (rename(beside, file) < 0)
		r = error_errno(err, -errno, "cannot rename %s to %s", beside, file);
	if (r < 0)
		unlink(beside);
	return r;
}
