/* SPDX-License-Identifier: Apache-2.0 */
/* The spool's directory and segments. Contracts in spool-files.h. */
#include "pyroscope-push/spool/spool-files.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>

static int explain(struct error *err, const char *what, const char *directory)
{
	return error_errno(err, -errno,
			   "cannot %s the spool's directory %s; name one that can be written", what,
			   directory);
}

/* With its parents; what is in the spool is for its owner alone. */
static int make_directory(const char *directory)
{
	char path[PATH_MAX];
	size_t n = strlen(directory);

	if (n >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(path, directory, n + 1);
	for (size_t i = 1; i < n; i++) {
		if (path[i] != '/')
			continue;
		path[i] = '\0';
		if (mkdir(path, 0755) != 0 && errno != EEXIST && errno != EROFS)
			return -1;
		path[i] = '/';
	}
	return mkdir(path, 0700) != 0 && errno != EEXIST ? -1 : 0;
}

int files_open(struct spool *s, const char *directory, struct error *err)
{
	if (make_directory(directory) != 0)
		return explain(err, "make", directory);
	s->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->directory < 0)
		return explain(err, "open", directory);
	s->lock = openat(s->directory, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock < 0) /* on a disk that has become read-only */
		s->lock = openat(s->directory, "lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (s->lock < 0)
		return explain(err, "lock", directory);
	if (flock(s->lock, LOCK_EX | LOCK_NB) != 0)
		return error_set(err, -EBUSY,
				 "the spool's directory %s is in use by another writer; give each "
				 "one of its own",
				 directory);
	return 0;
}

int spool_sync(struct spool *s)
{
	int rc;

	if (s->fd < 0)
		return 0;
	rc = segment_op(s, SPOOL_SYNC, s->last_number);
	if (rc == 0 && fdatasync(s->fd) != 0)
		rc = -errno;
	if (rc)
		s->failure = rc;
	return rc;
}

static int pwrite_all(int fd, struct str data, uint64_t offset)
{
	while (data.n) {
		ssize_t n = pwrite(fd, data.p, data.n, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data = (struct str){data.p + n, data.n - (size_t)n};
		offset += (uint64_t)n;
	}
	return 0;
}

int files_write(struct spool *s, struct str data)
{
	struct segment *last = &s->segments.p[s->segments.n - 1];
	struct spool_op op = {SPOOL_WRITE, last->number, last->bytes, data};
	int rc = s->before ? s->before(s->context, &op) : 0;

	check(s->fd >= 0 && last->number == s->last_number);
	if (rc == 0)
		rc = pwrite_all(s->fd, data, last->bytes);
	if (rc == 0) {
		last->bytes += data.n;
		s->bytes += data.n;
		return 0;
	}
	/* Half an entry would hide what came after it: nothing comes after it. */
	if (ftruncate(s->fd, (off_t)last->bytes) != 0) {
		close(s->fd);
		s->fd = -1;
	}
	return rc;
}

/* HEAD: version, the last time, whose it is. */
static int put_head(struct spool *s, uint64_t number)
{
	char entry[ENTRY_HEAD_BYTES + 16 + ENTRY_OWNER_BYTES] = {0};
	uint32_t version = htole32(ENTRY_VERSION);
	uint64_t last_time = htole64((uint64_t)s->last_time);

	memcpy(entry + ENTRY_HEAD_BYTES, &version, sizeof(version));
	memcpy(entry + ENTRY_HEAD_BYTES + 8, &last_time, sizeof(last_time));
	memcpy(entry + ENTRY_HEAD_BYTES + 16, s->owner, ENTRY_OWNER_BYTES);
	entry_seal(entry, ENTRY_HEAD, number << 32, sizeof(entry) - ENTRY_HEAD_BYTES);
	return files_write(s, (struct str){entry, sizeof(entry)});
}

/* With room for all of it, where the file system can promise that: on a disk that fills up later
 * marks can still be made. */
static int create_file(struct spool *s, uint64_t number)
{
	char name[SPOOL_NAME_MAX];
	int rc = segment_op(s, SPOOL_CREATE, number), fd;

	if (rc)
		return rc;
	segment_name(number, name);
	fd = openat(s->directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)s->segment_bytes) == 0 || errno != ENOSPC)
		return fd;
	unlinkat(s->directory, name, 0);
	close(fd);
	return -ENOSPC;
}

static int sync_directory(struct spool *s, uint64_t number)
{
	int rc = segment_op(s, SPOOL_SYNC_DIRECTORY, number);

	return rc == 0 && fsync(s->directory) != 0 ? -errno : rc;
}

static void undo_create(struct spool *s, uint64_t number)
{
	char name[SPOOL_NAME_MAX];

	segment_name(number, name);
	unlinkat(s->directory, name, 0);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	s->bytes -= s->segments.p[--s->segments.n].bytes;
}

int files_create(struct spool *s)
{
	uint64_t number = s->last_number + 1;
	int rc = spool_sync(s), fd;

	if (!vec_reserve(&s->segments, 1))
		return -ENOMEM;
	fd = rc ? rc : create_file(s, number);
	if (fd < 0)
		return fd;
	if (s->fd >= 0)
		close(s->fd);
	s->fd = fd;
	s->last_number = number;
	s->segments.p[s->segments.n++] = (struct segment){.number = number};
	s->next_entry = 1;
	rc = put_head(s, number);
	if (rc == 0)
		rc = sync_directory(s, number);
	if (rc)
		undo_create(s, number);
	return rc;
}

int files_remove_first(struct spool *s)
{
	struct segment first = s->segments.p[0];
	char name[SPOOL_NAME_MAX];
	int rc = segment_op(s, SPOOL_UNLINK, first.number);

	segment_name(first.number, name);
	if (rc == 0 && unlinkat(s->directory, name, 0) != 0 && errno != ENOENT)
		rc = -errno;
	if (rc)
		return rc;
	if (first.number == s->last_number && s->fd >= 0) {
		close(s->fd);
		s->fd = -1;
	}
	s->bytes -= first.bytes;
	memmove(s->segments.p, s->segments.p + 1, --s->segments.n * sizeof(first));
	return 0;
}

void files_trim(struct spool *s)
{
	while (s->segments.n > 1 && s->segments.p[0].live == 0 && files_remove_first(s) == 0)
		;
}
