/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of process.h, over a tree that looks like /proc and over /proc. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "testing/test.h"
#include "proc/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A directory that goes away with the test. */
struct tree {
	char path[64];
	int fd;
};

static void write_file(struct tree *t, const char *name, const char *data, size_t n)
{
	int fd = openat(t->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	expect(fd >= 0 && write(fd, data, n) == (ssize_t)n);
	close(fd);
}

static void tree_init(struct tree *t)
{
	snprintf(t->path, sizeof(t->path), "/tmp/andiron-proc-XXXXXX");
	expect(mkdtemp(t->path) != NULL);
	t->fd = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	expect(t->fd >= 0 && !mkdirat(t->fd, "42", 0700));
}

static void tree_fini(struct tree *t)
{
	static const char *const files[] = {"42/stat",   "42/status", "42/cmdline",
					    "42/cgroup", "42/exe",    "42/cwd"};

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		unlinkat(t->fd, files[i], 0);
	unlinkat(t->fd, "42", AT_REMOVEDIR);
	close(t->fd);
	rmdir(t->path);
}

static void write_stat(struct tree *t, const char *comm, unsigned int flags)
{
	char text[256];
	int n = snprintf(text, sizeof(text),
			 "42 (%s) S 7 42 42 0 -1 %u 0 0 0 0 0 0 0 0 20 0 1 0 123456 0 0\n", comm,
			 flags);

	write_file(t, "42/stat", text, (size_t)n);
}

/* A name may look like the rest of the line; fields behind it are found all the same. */
TEST(fields_behind_a_hostile_name)
{
	struct proc_info info = PROC_INFO_NULL;
	struct tree t;

	tree_init(&t);
	write_stat(&t, "a) R 1 (b", 0x400000);
	expect_eq(proc_read(t.fd, 42, 0, &info), 0);
	expect_eq(info.pid, 42);
	expect_eq(info.parent, 7);
	expect_str(str_of(info.comm), "a) R 1 (b");
	expect_eq(info.start_ns, INT64_C(1234560) * NS_PER_MSEC);
	expect(!info.kernel_thread && !info.zombie && info.uid == UINT32_MAX);
	write_stat(&t, "kworker/0:1-a-very-long-name", 0x200000);
	expect_eq(proc_read(t.fd, 42, 0, &info), 0);
	expect(info.kernel_thread);
	expect_str(str_of(info.comm), "kworker/0:1-a-v");
	expect(!info.exiting);
	write_stat(&t, "worker", 0x40404);
	expect_eq(proc_read(t.fd, 42, 0, &info), 0);
	expect(info.exiting && !info.kernel_thread);
	proc_info_free(&info);
	tree_fini(&t);
}

static void write_all(struct tree *t)
{
	write_stat(t, "x", 0);
	write_file(t, "42/status", "Name:\tx\nUid:\t1000\t0\t0\t0\nGid:\t5\t5\t5\t5\n", 38);
	write_file(t, "42/cmdline", "/bin/x\0-a\0\0b\0", 14);
	write_file(t, "42/cgroup", "0::/system.slice/x.service\n", 27);
	expect(!symlinkat("/bin/x", t->fd, "42/exe") && !symlinkat("/srv", t->fd, "42/cwd"));
}

/* Each text is what /proc says, and only what was asked for is read. */
TEST(texts)
{
	struct proc_info info = PROC_INFO_NULL;
	struct tree t;

	tree_init(&t);
	write_all(&t);
	expect_eq(proc_read(t.fd, 42, PROC_ALL, &info), 0);
	expect_eq(info.uid, 1000);
	expect_str(info.exe, "/bin/x");
	expect_str(info.cwd, "/srv");
	expect_str(info.cmdline, "/bin/x -a  b");
	expect_str(info.cgroup, "0::/system.slice/x.service\n");
	expect_eq(proc_read(t.fd, 42, PROC_CWD, &info), 0);
	expect_str(info.cwd, "/srv");
	expect_eq(info.exe.n + info.cmdline.n + info.cgroup.n, 0);
	proc_info_free(&info);
	tree_fini(&t);
}

/* Files that are missing leave their text empty, and a long one is cut off. */
TEST(missing_and_long_texts)
{
	struct proc_info info = PROC_INFO_NULL;
	char *line = calloc(1, 100000);
	struct tree t;

	expect(line != NULL);
	memset(line, 'a', 99999);
	tree_init(&t);
	write_stat(&t, "x", 0);
	write_file(&t, "42/cmdline", line, 100000);
	expect_eq(proc_read(t.fd, 42, PROC_ALL, &info), 0);
	expect_eq(info.cmdline.n, PROC_TEXT_MAX);
	expect_eq(info.exe.n + info.cwd.n + info.cgroup.n, 0);
	expect_eq(info.uid, UINT32_MAX);
	expect_eq(proc_read(t.fd, 43, PROC_ALL, &info), -ENOENT);
	free(line);
	proc_info_free(&info);
	tree_fini(&t);
}

/* A stat file that is none is refused, whatever stands in it. */
TEST(broken_stat)
{
	static const char good[] = "42 (x) S 7 42 42 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 123456 0 0\n";
	struct proc_info info = PROC_INFO_NULL;
	struct tree t;

	tree_init(&t);
	for (size_t n = 0; n <= str_search(str_of(good), STR("123456")); n++) {
		write_file(&t, "42/stat", good, n);
		expect_eq(proc_read(t.fd, 42, 0, &info), -EBADMSG);
	}
	write_file(&t, "42/stat", "42 )x( S 7", 10);
	expect_eq(proc_read(t.fd, 42, 0, &info), -EBADMSG);
	srand(3);
	for (int round = 0; round < 3000; round++) {
		char text[sizeof(good)];

		memcpy(text, good, sizeof(good));
		for (int edits = 1 + rand() % 5; edits > 0; edits--)
			text[(size_t)rand() % (sizeof(good) - 1)] = (char)(rand() % 256);
		write_file(&t, "42/stat", text, sizeof(good) - 1);
		if (!proc_read(t.fd, 42, 0, &info))
			expect(strlen(info.comm) < sizeof(info.comm));
	}
	proc_info_free(&info);
	tree_fini(&t);
}

/* The real thing: a child of ours, alive and dead; its pid is listed while it lives; its start time
 * is the same to both clocks' grains. */
TEST(a_real_process)
{
	struct proc_info info = PROC_INFO_NULL;
	struct proc_pids pids = {0};
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), listed = 0;
	int64_t before = clock_boot();
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	expect(pid > 0 && proc >= 0);
	expect_eq(proc_read(proc, (uint32_t)pid, PROC_ALL, &info), 0);
	expect_eq(info.parent, getpid());
	expect_eq(info.uid, getuid());
	expect(info.exe.n && info.cwd.n && info.cmdline.n);
	expect((int64_t)info.start_ns >= before - 10 * NS_PER_MSEC);
	expect((int64_t)info.start_ns <= clock_boot());
	expect(proc_same_start(info.start_ns, info.start_ns + 9999999));
	expect(!proc_same_start(info.start_ns, info.start_ns + 10000000));
	expect_eq(proc_list(proc, &pids), 0);
	for (size_t i = 0; i < pids.n; i++)
		listed += pids.p[i] == (uint32_t)pid;
	expect_eq(listed, 1);
	kill(pid, SIGKILL);
	expect(waitpid(pid, NULL, 0) == pid);
	expect(proc_read(proc, (uint32_t)pid, PROC_ALL, &info) < 0);
	free(pids.p);
	proc_info_free(&info);
	close(proc);
}

static int read_once(void *context)
{
	struct proc_info info = PROC_INFO_NULL;
	struct tree *t = context;
	int r = proc_read(t->fd, 42, PROC_ALL, &info);

	if (!r)
		expect_str(info.exe, "/bin/x");
	proc_info_free(&info);
	return r;
}

TEST(out_of_memory)
{
	struct tree t;

	tree_init(&t);
	write_all(&t);
	test_each_failing_allocation(read_once, &t);
	tree_fini(&t);
}
