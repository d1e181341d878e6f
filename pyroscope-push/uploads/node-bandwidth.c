/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a node's budget. Contract in node-bandwidth.h. */
#include "pyroscope-push/uploads/node-bandwidth.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_range(const char *directory)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/uploads", directory);
	int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, fd;

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, flags, 0600);
	if (fd < 0 && errno == ENOENT && (mkdir(directory, 0755) == 0 || errno == EEXIST))
		fd = open(path, flags, 0600);
	return fd < 0 ? -errno : fd;
}

/* The first part that is free: a descriptor, -EAGAIN, or another negative errno. */
static int lock_part(const char *directory, int64_t rate, int64_t limit)
{
	int fd = open_range(directory), r = -EAGAIN;

	if (fd < 0)
		return fd;
	for (int64_t i = 0; r == -EAGAIN && i < limit / rate; i++) {
		struct flock part = {.l_type = F_WRLCK,
				     .l_whence = SEEK_SET,
				     .l_start = i * rate,
				     .l_len = rate};

		r = fcntl(fd, F_OFD_SETLK, &part) == 0 ? 0 : -errno;
		r = r == -EACCES ? -EAGAIN : r; /* either may say that it is taken */
	}
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

int64_t upload_share_rate(const struct uploads_options *o)
{
	int64_t rate = o->bytes_per_second / o->max_parallel;

	return o->bytes_per_second && !rate ? 1 : rate;
}

bool upload_share_take(struct upload_share *s, const struct uploads_options *o, int *ret_part)
{
	struct error why = ERROR_NULL;
	int part = -1;

	if (o->bytes_per_second)
		part = lock_part(o->share, upload_share_rate(o), o->bytes_per_second);
	if (part == -EAGAIN)
		return false;
	if (part < 0 && o->bytes_per_second && !s->told) {
		s->told = true;
		error_errno(&why, part, "no file in %s can be locked", o->share);
		abi_log(&s->context, ANDIRON_LOG_WARN,
			"debuginfo.bytes_per_second is kept by this block for itself, not by all "
			"of the node together: %s",
			why.text);
	}
	*ret_part = part < 0 ? -1 : part;
	return true;
}

void upload_share_give(int *part)
{
	if (*part >= 0)
		close(*part);
	*part = -1;
}
