/* SPDX-License-Identifier: Apache-2.0 */
/* What a confined process reaches: a child is confined to two folders of its own, tries, and says
 * by its exit status what came of it; another tries the same unconfined, since what the machine
 * refuses anyhow would prove nothing. */
#include "proc/landlock.h"

#include "base/check.h"
#include "testing/test.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_CONFINED 255
#define NO_LANDLOCK  254

/* In the working folder: ours/ may be written, theirs/ be read, and other/ neither. */
static const char *const readable[] = {"theirs", "one-file", "absent", NULL};
static const char *const writable[] = {"ours", NULL};

/* 0 or an errno. */
typedef int (*attempt_fn)(void);

static int outcome(long r)
{
	return r < 0 ? errno : 0;
}

static int try_in_child(attempt_fn attempt, bool confined)
{
	pid_t pid = fork();
	int status, r;

	check(pid >= 0);
	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
			_exit(NOT_CONFINED);
		r = confined ? landlock_confine(readable, writable) : 0;
		_exit(r == -EOPNOTSUPP ? NO_LANDLOCK : r < 0 ? NOT_CONFINED : attempt());
	}
	check(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int read_theirs(void)
{
	return outcome(open("theirs/file", O_RDONLY | O_CLOEXEC));
}

static int read_one_file(void)
{
	return outcome(open("one-file", O_RDONLY | O_CLOEXEC));
}

static int list_theirs(void)
{
	return outcome(open("theirs", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static int write_and_rename_ours(void)
{
	int fd = open("ours/new", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, "x", 1) != 1 || (mkdir("ours/folder", 0700) < 0 && errno != EEXIST))
		return errno;
	return outcome(rename("ours/new", "ours/renamed"));
}

static int connect_somewhere(void)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(9), .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r = outcome(connect(fd, (const struct sockaddr *)&to, sizeof(to)));

	return r == ECONNREFUSED ? 0 : r;
}

static int read_other(void)
{
	return outcome(open("other/file", O_RDONLY | O_CLOEXEC));
}

static int read_the_password_file(void)
{
	return outcome(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
}

static int read_a_process(void)
{
	return outcome(open("/proc/self/status", O_RDONLY | O_CLOEXEC));
}

static int list_other(void)
{
	return outcome(open("other", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static int write_theirs(void)
{
	return outcome(open("theirs/file", O_WRONLY | O_CLOEXEC));
}

static int make_beside(void)
{
	int fd = open("new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	int r = outcome(fd);

	unlink("new");
	return r;
}

static int link_out_of_ours(void)
{
	int r = outcome(linkat(AT_FDCWD, "other/file", AT_FDCWD, "ours/linked", 0));

	unlink("ours/linked");
	return r;
}

static int make_a_socket_file(void)
{
	int r = outcome(mknod("ours/socket", S_IFSOCK | 0600, 0));

	unlink("ours/socket");
	return r;
}

static int run_a_program(void)
{
	execl("/bin/true", "true", (char *)NULL);
	return errno;
}

static int listen_somewhere(void)
{
	const struct sockaddr_in any = {.sin_family = AF_INET,
					.sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return outcome(bind(fd, (const struct sockaddr *)&any, sizeof(any)));
}

static int signal_the_parent(void)
{
	return outcome(kill(getppid(), 0));
}

static void put_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	check(fd >= 0);
	close(fd);
}

static void go_to_a_new_folder(void)
{
	static char path[] = "/tmp/andiron-landlock-XXXXXX";

	check(mkdtemp(path) && chdir(path) == 0);
	check(mkdir("ours", 0700) == 0 && mkdir("theirs", 0700) == 0 && mkdir("other", 0700) == 0);
	put_file("theirs/file");
	put_file("other/file");
	put_file("one-file");
}

static void leave_the_folder(void)
{
	static const char *const paths[] = {"theirs/file", "other/file", "one-file", "ours/renamed",
					    "ours/folder", "ours",       "theirs",   "other"};
	char here[64];

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		remove(paths[i]);
	check(getcwd(here, sizeof(here)) && chdir("/") == 0 && rmdir(here) == 0);
}

/* From which version of Landlock on it is refused; 0: it is allowed. */
static const struct {
	const char *name;
	attempt_fn attempt;
	int since;
} tries[] = {
	{"reading a folder that is readable", read_theirs, 0},
	{"reading a file that is readable", read_one_file, 0},
	{"listing what is readable", list_theirs, 0},
	{"writing and renaming in its own", write_and_rename_ours, 0},
	{"connecting", connect_somewhere, 0},
	{"reading another folder", read_other, 1},
	{"reading the list of users", read_the_password_file, 1},
	{"reading /proc", read_a_process, 1},
	{"listing another folder", list_other, 1},
	{"writing what is readable", write_theirs, 1},
	{"making a file beside", make_beside, 1},
	{"linking into its own", link_out_of_ours, 1},
	{"making a socket", make_a_socket_file, 1},
	{"running a program", run_a_program, 1},
	{"listening", listen_somewhere, 4},
	{"a signal to its parent", signal_the_parent, 6},
};

/* It reaches what it was confined to, and nothing else. */
TEST(nothing_but_what_is_named)
{
	int version = (int)syscall(444, NULL, 0, 1);

	go_to_a_new_folder();
	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		int outside = try_in_child(tries[i].attempt, false);
		int inside = try_in_child(tries[i].attempt, true);
		bool refused = tries[i].since && version >= tries[i].since;

		printf("# %s: outside %d, confined %d\n", tries[i].name, outside, inside);
		expect_eq(outside, 0);
		if (version < 0)
			expect_eq(inside, NO_LANDLOCK);
		else
			expect(refused ? inside == EACCES || inside == EPERM || inside == EXDEV
				       : inside == 0);
	}
	leave_the_folder();
}
