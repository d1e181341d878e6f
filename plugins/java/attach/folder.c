/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in folder.h. */
#include "java/attach/folder.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "java/attach/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define RECORDING "recording.jfr"
#define LOG       "log"
#define PART      LIBRARY_NAME ".part"
#define MAX_LOG   (64u << 10)

/* Opens a path within the root, whatever links are in it. */
static int open_within(int root, const char *path, uint64_t flags)
{
	struct open_how how = {.flags = flags | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	long fd = syscall(SYS_openat2, root, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

/* Opens for reading what an O_PATH descriptor leads to, if that is a file; -EBADMSG: it is none. It
 * is looked at before, since opening a device may do something; and a lease is not waited for. */
static int reopen(int path)
{
	char name[32];
	struct stat st;
	int fd;

	if (fstat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", path);
	fd = open(name, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* A file in the folder, not by a link. */
static int open_file(const struct folder *f, const char *name)
{
	_cleanup_(closep) int path = openat(f->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	return path < 0 ? -errno : reopen(path);
}

int folder_root(uint32_t pid, struct error *err)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/root", pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	if (errno == EACCES || errno == EPERM)
		return error_set(err, -EPERM,
				 "%s may not be entered; the agent needs CAP_SYS_PTRACE for "
				 "processes of others",
				 path);
	return error_errno(err, -errno, "cannot open %s", path);
}

/* --- The folder --- */

static int lock(struct folder *f, struct error *err)
{
	struct stat st;

	f->fd = openat(f->parent, f->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (f->fd < 0 || fstat(f->fd, &st) < 0)
		return error_errno(err, -errno, "cannot open the JVM's %s", f->path);
	if (st.st_uid != f->uid || st.st_mode & 077)
		return error_set(err, -EPERM, "the JVM's %s is not its own user's alone; remove it",
				 f->path);
	if (flock(f->fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return error_set(err, -EBUSY,
				 "another component or agent profiles this JVM; two cannot");
	return error_errno(err, -errno, "cannot lock the JVM's %s", f->path);
}

static int make(struct folder *f, int root, struct str tmp_dir, struct error *err)
{
	char dir[256];

	snprintf(dir, sizeof(dir), "%.*s", STR_FMT(tmp_dir));
	f->tmp = open_within(root, "/tmp", O_PATH | O_DIRECTORY);
	if (f->tmp < 0)
		return error_errno(err, f->tmp, "cannot open the JVM's /tmp, where it listens");
	f->parent = open_within(root, dir, O_PATH | O_DIRECTORY);
	if (f->parent < 0)
		return error_errno(err, f->parent,
				   "cannot open %s as the JVM sees it; tmp_dir must be a folder "
				   "there",
				   dir);
	if (mkdirat(f->parent, f->name, 0700) < 0 && errno != EEXIST)
		return error_errno(err, -errno,
				   "cannot make a folder in the JVM's %s as its user %u; tmp_dir "
				   "names another",
				   dir, f->uid);
	return lock(f, err);
}

int folder_open(struct folder *ret, int root, const struct jvm *jvm, struct str tmp_dir,
		struct error *err)
{
	struct folder f = FOLDER_NULL;
	int r;

	f.uid = jvm->uid;
	snprintf(f.name, sizeof(f.name), "andiron-java-%u", jvm->inner_pid);
	snprintf(f.path, sizeof(f.path), "%.*s/%s", STR_FMT(str_first(tmp_dir, 200)), f.name);
	r = make(&f, root, tmp_dir, err);
	if (r < 0)
		folder_close(&f);
	else
		*ret = f;
	return r;
}

void folder_close(struct folder *f)
{
	const int fds[] = {f->tmp, f->parent, f->fd};

	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	*f = FOLDER_NULL;
}

void folder_remove(struct folder *f)
{
	static const char *const files[] = {RECORDING, LOG, LIBRARY_NAME, PART};

	for (size_t i = 0; f->fd >= 0 && i < sizeof(files) / sizeof(*files); i++)
		unlinkat(f->fd, files[i], 0);
	if (f->fd >= 0)
		unlinkat(f->parent, f->name, AT_REMOVEDIR);
	folder_close(f);
}

/* --- The library --- */

static bool sees(int root, const struct library *library)
{
	_cleanup_(closep) int path = open_within(root, library->path, O_PATH);
	_cleanup_(closep) int fd = -1;
	struct stat st;

	if (path < 0 || fstat(path, &st) < 0 || st.st_dev != library->device ||
	    st.st_ino != library->inode)
		return false;
	fd = reopen(path); /* may it be read? */
	return fd >= 0;
}

/* An earlier agent's copy stays if it is the same: a JVM that has it loaded would otherwise get a
 * second one beside it. */
static bool is_copied(const struct folder *f, const struct library *library)
{
	_cleanup_(closep) int fd = open_file(f, LIBRARY_NAME);
	struct buf there = BUF_NULL;
	bool same = fd >= 0 && file_read_fd(fd, &there, library->bytes.n) == 0 &&
		    str_eq(buf_str(&there), buf_str(&library->bytes));

	buf_free(&there);
	return same;
}

static int copy(const struct folder *f, const struct library *library)
{
	_cleanup_(closep) int fd = -1;
	int r;

	unlinkat(f->fd, PART, 0);
	fd = openat(f->fd, PART, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0700);
	r = fd < 0 ? -errno : file_write_fd(fd, library->bytes.p, library->bytes.n);
	if (r == 0 && renameat(f->fd, PART, f->fd, LIBRARY_NAME) < 0)
		r = -errno;
	return r;
}

int folder_place(struct folder *f, int root, const struct library *library, struct error *err)
{
	int r = 0;

	if (sees(root, library)) {
		snprintf(f->library, sizeof(f->library), "%s", library->path);
		return 0;
	}
	snprintf(f->library, sizeof(f->library), "%.200s/" LIBRARY_NAME, f->path);
	f->copied = true;
	if (!is_copied(f, library))
		r = copy(f, library);
	return r < 0 ? error_errno(err, r, "cannot write %s in the JVM's root", f->library) : 0;
}

/* --- The recording --- */

bool folder_has_recording(const struct folder *f)
{
	return faccessat(f->fd, RECORDING, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int read_recording(const struct folder *f, struct buf *out, struct error *err)
{
	_cleanup_(closep) int fd = open_file(f, RECORDING);
	int r;

	if (fd == -ENOENT)
		return error_set(err, -ENOENT, "async-profiler has left no recording");
	if (fd == -EBADMSG)
		return error_set(err, -EBADMSG, "%s/" RECORDING " is not a file", f->path);
	if (fd < 0)
		return error_errno(err, fd, "cannot open %s/" RECORDING, f->path);
	r = file_read_fd(fd, out, FOLDER_MAX_RECORDING);
	if (r == -E2BIG)
		return error_set(err, r,
				 "a recording has more than %u MiB and is left out; shorten "
				 "interval, or sample less",
				 FOLDER_MAX_RECORDING >> 20);
	if (r < 0)
		return error_errno(err, r, "cannot read %s/" RECORDING, f->path);
	if (!recording_whole(buf_str(out)))
		return error_set(err, -EBADMSG, "the recording was cut short and is left out");
	return 0;
}

int folder_take(struct folder *f, struct buf *out, struct error *err)
{
	int r = read_recording(f, out, err);

	if (r < 0)
		buf_free(out);
	unlinkat(f->fd, RECORDING, 0);
	return r;
}

void folder_log(const struct folder *f, char *out, size_t n)
{
	_cleanup_(closep) int fd = open_file(f, LOG);
	struct buf text = BUF_NULL;
	struct str rest, found = STR_NULL;
	size_t length = 0;

	if (fd >= 0)
		file_read_fd(fd, &text, MAX_LOG);
	for (rest = buf_str(&text); rest.n;) {
		struct str line = str_cut(&rest, '\n');

		if (str_starts(line, STR("[ERROR] ")))
			found = str_trim(str_skip(line, 8));
	}
	found = str_first(found, n - 1);
	for (; length < found.n; length++)
		out[length] = found.p[length] >= ' ' && found.p[length] < 0x7f ? found.p[length]
									       : ' ';
	out[length] = '\0';
	buf_free(&text);
}
