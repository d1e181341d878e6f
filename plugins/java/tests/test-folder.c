/* SPDX-License-Identifier: Apache-2.0 */
/* The folder in a JVM's root, here a tree of the test's: nothing in it leads out, or makes us wait.
 */
#include "java/attach/folder.h"

#include "base/check.h"
#include "base/file.h"
#include "java/attach/identity.h"
#include "testing/test.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "andiron-java-5"

struct tree {
	char path[32];
	int root;
	struct jvm jvm;
	struct library library;
};

static struct tree tree_new(void)
{
	struct tree t = {.path = "/tmp/test-folder-XXXXXX",
			 .jvm = {.inner_pid = 5, .uid = geteuid(), .gid = getegid()},
			 .library = {.path = "/nowhere/" LIBRARY_NAME, .bytes = BUF_NULL}};

	check(mkdtemp(t.path));
	t.root = open(t.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	check(mkdirat(t.root, "tmp", 01777) == 0);
	buf_str_append(&t.library.bytes, STR("the library"));
	return t;
}

static void tree_free(struct tree *t)
{
	buf_free(&t->library.bytes);
	unlinkat(t->root, "tmp", 0);
	unlinkat(t->root, "tmp", AT_REMOVEDIR);
	expect_eq(rmdir(t->path), 0);
	close(t->root);
}

static int enter(struct tree *t, struct folder *f, const char *tmp_dir)
{
	struct error err = ERROR_NULL;

	return folder_open(f, t->root, &t->jvm, str_of(tmp_dir), &err);
}

static void put(const struct folder *f, const char *name, const void *data, size_t n)
{
	int fd = openat(f->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	expect_eq(file_write_fd(fd, data, n), 0);
	close(fd);
}

static void put_recording(const struct folder *f)
{
	char chunk[100] = "FLR";
	uint64_t length = htobe64(sizeof(chunk));

	memcpy(chunk + 8, &length, sizeof(length));
	put(f, "recording.jfr", chunk, sizeof(chunk));
}

static int take(struct folder *f)
{
	struct error err = ERROR_NULL;
	struct buf out = BUF_NULL;
	int r = folder_take(f, &out, &err);

	expect(r < 0 ? out.n == 0 && err.text[0] : out.n == 100);
	buf_free(&out);
	return r;
}

/* It is made, found again, used by one at a time, and goes with all that is in it. */
TEST(one_has_the_folder)
{
	struct tree t = tree_new();
	struct folder f, other;
	struct error err = ERROR_NULL;

	expect_eq(enter(&t, &f, "/tmp"), 0);
	expect_eq(enter(&t, &other, "/tmp"), -EBUSY);
	expect_eq(folder_place(&f, t.root, &t.library, &err), 0);
	expect(strcmp(f.library, "/tmp/" NAME "/" LIBRARY_NAME) == 0);
	folder_close(&f);
	expect_eq(enter(&t, &f, "/tmp"), 0);
	put_recording(&f);
	put(&f, "log", "x", 1);
	folder_remove(&f);
	tree_free(&t);
}

/* A whole recording is taken once. */
TEST(a_recording_is_taken)
{
	struct tree t = tree_new();
	struct folder f;

	expect_eq(enter(&t, &f, "/tmp"), 0);
	expect(!folder_has_recording(&f));
	expect_eq(take(&f), -ENOENT);
	put_recording(&f);
	expect(folder_has_recording(&f));
	expect_eq(take(&f), 0);
	expect_eq(take(&f), -ENOENT);
	put(&f, "recording.jfr", "FLR", 4);
	expect_eq(take(&f), -EBADMSG);
	folder_remove(&f);
	tree_free(&t);
}

/* A link is not followed, a pipe not waited for, and a large file not read. */
TEST(what_lies_in_the_way_harms_nobody)
{
	struct tree t = tree_new();
	struct folder f;
	int fd;

	expect_eq(enter(&t, &f, "/tmp"), 0);
	expect_eq(symlinkat("/etc/passwd", f.fd, "recording.jfr"), 0);
	expect_eq(take(&f), -EBADMSG);
	expect_eq(mkfifoat(f.fd, "recording.jfr", 0600), 0);
	expect_eq(take(&f), -EBADMSG);
	fd = openat(f.fd, "recording.jfr", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	expect_eq(ftruncate(fd, (off_t)FOLDER_MAX_RECORDING + 1), 0);
	close(fd);
	expect_eq(take(&f), -E2BIG);
	folder_remove(&f);
	tree_free(&t);
}

/* Makes a pipe and watches whether it is opened. */
static void lay(const struct folder *f, const char *name, int watcher)
{
	char path[64];

	expect_eq(mkfifoat(f->fd, name, 0600), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", f->fd, name);
	expect(inotify_add_watch(watcher, path, IN_OPEN) >= 0);
}

static bool was_opened(int watcher)
{
	_Alignas(struct inotify_event) char events[4096];
	struct inotify_event event;
	ssize_t n;

	while ((n = read(watcher, events, sizeof(events))) > 0)
		for (ssize_t at = 0; at < n; at += (ssize_t)(sizeof(event) + event.len)) {
			memcpy(&event, events + at, sizeof(event));
			if (event.mask & IN_OPEN)
				return true;
		}
	expect_eq(errno, EAGAIN);
	return false;
}

/* What is no file is not even opened: with a device that may do something. */
TEST(only_files_are_opened)
{
	struct tree t = tree_new();
	struct folder f;
	struct stat st;
	struct error err = ERROR_NULL;
	int watcher = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	char text[40];

	expect_eq(enter(&t, &f, "/tmp"), 0);
	lay(&f, "recording.jfr", watcher);
	lay(&f, "log", watcher);
	lay(&f, LIBRARY_NAME, watcher);
	folder_log(&f, text, sizeof(text));
	expect_str(str_of(text), "");
	expect_eq(fstatat(f.fd, LIBRARY_NAME, &st, 0), 0);
	snprintf(t.library.path, sizeof(t.library.path), "/tmp/" NAME "/" LIBRARY_NAME);
	t.library.device = st.st_dev;
	t.library.inode = st.st_ino;
	expect_eq(folder_place(&f, t.root, &t.library, &err), 0);
	expect(f.copied);
	expect_eq(take(&f), -EBADMSG);
	expect(!was_opened(watcher));
	close(openat(f.fd, "log", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
	expect(was_opened(watcher)); /* or the test could not fail */
	close(watcher);
	folder_remove(&f);
	tree_free(&t);
}

/* The library itself is used where the JVM sees the same file, and its user may read it. */
TEST(the_library_is_seen)
{
	struct tree t = tree_new();
	struct folder f;
	struct stat st;
	struct error err = ERROR_NULL;

	expect_eq(enter(&t, &f, "/tmp"), 0);
	put(&f, "log", "x", 1);
	expect_eq(fstatat(f.fd, "log", &st, 0), 0);
	snprintf(t.library.path, sizeof(t.library.path), "/tmp/" NAME "/log");
	t.library.device = st.st_dev;
	t.library.inode = st.st_ino;
	expect_eq(folder_place(&f, t.root, &t.library, &err), 0);
	expect(!f.copied && strcmp(f.library, t.library.path) == 0);
	if (geteuid() != 0) {
		expect_eq(fchmodat(f.fd, "log", 0, 0), 0);
		expect_eq(folder_place(&f, t.root, &t.library, &err), 0);
		expect(f.copied);
	}
	folder_remove(&f);
	tree_free(&t);
}

/* All of it as the JVM's user, whose files we may open only by that user's rights. */
TEST(another_user_has_the_folder)
{
	struct tree t;
	struct folder f;
	struct identity identity;
	struct error err = ERROR_NULL;
	char text[40];

	if (geteuid() != 0)
		return; /* nobody else can be become */
	t = tree_new();
	t.jvm.uid = t.jvm.gid = 1234;
	expect_eq(chmod(t.path, 0755), 0);
	expect_eq(fchmodat(t.root, "tmp", 01777, 0), 0);
	expect_eq(identity_enter(&identity, t.jvm.uid, t.jvm.gid, &err), 0);
	expect_eq(enter(&t, &f, "/tmp"), 0);
	expect_eq(folder_place(&f, t.root, &t.library, &err), 0);
	put(&f, "log", "[ERROR] why", 11);
	folder_log(&f, text, sizeof(text));
	expect_str(str_of(text), "why");
	put_recording(&f);
	expect_eq(take(&f), 0);
	folder_remove(&f);
	identity_leave(&identity);
	tree_free(&t);
}

/* A link in the root stays within it; a folder that somebody made for us is refused. */
TEST(nothing_leads_out_of_the_root)
{
	struct tree t = tree_new();
	struct folder f;

	expect_eq(symlinkat("/../../tmp", t.root, "scratch"), 0);
	expect_eq(enter(&t, &f, "/scratch"), 0);
	expect_eq(faccessat(t.root, "tmp/" NAME, F_OK, 0), 0);
	folder_remove(&f);
	unlinkat(t.root, "scratch", 0);
	expect_eq(enter(&t, &f, "/absent"), -ENOENT);
	expect_eq(symlinkat("/etc", t.root, "tmp/" NAME), 0);
	expect(enter(&t, &f, "/tmp") < 0);
	unlinkat(t.root, "tmp/" NAME, 0);
	expect_eq(mkdirat(t.root, "tmp/" NAME, 0700), 0);
	expect_eq(fchmodat(t.root, "tmp/" NAME, 0777, 0), 0);
	expect_eq(enter(&t, &f, "/tmp"), -EPERM);
	unlinkat(t.root, "tmp/" NAME, AT_REMOVEDIR);
	tree_free(&t);
}

static ino_t inode_of(const struct folder *f)
{
	struct stat st;

	expect_eq(fstatat(f->fd, LIBRARY_NAME, &st, AT_SYMLINK_NOFOLLOW), 0);
	expect(S_ISREG(st.st_mode));
	return st.st_ino;
}

/* The same copy stays as it is, since the JVM may have it loaded; another takes its place. */
TEST(a_copy_is_kept)
{
	struct tree t = tree_new();
	struct folder f;
	struct error err = ERROR_NULL;
	ino_t first;

	expect_eq(enter(&t, &f, "/tmp"), 0);
	expect_eq(folder_place(&f, t.root, &t.library, &err), 0);
	first = inode_of(&f);
	expect_eq(folder_place(&f, t.root, &t.library, &err), 0);
	expect_eq(inode_of(&f), first);
	buf_str_append(&t.library.bytes, STR(", newer"));
	expect_eq(folder_place(&f, t.root, &t.library, &err), 0);
	expect(inode_of(&f) != first);
	folder_remove(&f);
	tree_free(&t);
}

/* The last error is what people are shown, on one line. */
TEST(the_log_says_why)
{
	static const char log[] = "[INFO] a\n[ERROR] first\n[ERROR] Profiler \x1b[0m\n";
	struct tree t = tree_new();
	struct folder f;
	char text[40];

	expect_eq(enter(&t, &f, "/tmp"), 0);
	folder_log(&f, text, sizeof(text));
	expect_str(str_of(text), "");
	put(&f, "log", log, sizeof(log) - 1);
	folder_log(&f, text, sizeof(text));
	expect_str(str_of(text), "Profiler  [0m");
	folder_remove(&f);
	tree_free(&t);
}
