/* SPDX-License-Identifier: Apache-2.0 */
/* What a process in the sandbox can do, and what not: a child enters it as `andiron worker` does,
 * tries, and says by its exit status what came of it. Another child tries the same outside, since a
 * machine that refuses it anyhow would prove nothing. */
#include "cli/worker/sandbox.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "testing/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define NO_SANDBOX 255

/* What the child has from before: a file, and a socket to its parent. */
struct given {
	int file, socket;
};

/* 0 or an errno. */
typedef int (*attempt_fn)(const struct given *given);

static int outcome(long r)
{
	return r < 0 ? errno : 0;
}

static int try_in_child(attempt_fn attempt, bool in_sandbox)
{
	_cleanup_(closep) int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int sockets[2], status;
	pid_t pid;

	check(file >= 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0);
	pid = fork();
	check(pid >= 0);
	if (pid == 0) {
		const struct given given = {file, sockets[1]};

		if (in_sandbox && sandbox_enter(NULL) < 0)
			_exit(NO_SANDBOX);
		_exit(attempt(&given));
	}
	check(waitpid(pid, &status, 0) == pid);
	close(sockets[0]);
	close(sockets[1]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* --- The network --- */

static int make_a_socket(const struct given *given)
{
	return outcome(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static int make_a_local_socket(const struct given *given)
{
	return outcome(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static int make_a_pair(const struct given *given)
{
	int fds[2];

	return outcome(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
}

/* Another end for the socket that it has. */
static int connect_elsewhere(const struct given *given)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(9), .sin_addr = {htonl(INADDR_LOOPBACK)}};

	return outcome(connect(given->socket, (const struct sockaddr *)&to, sizeof(to)));
}

static int listen_here(const struct given *given)
{
	const struct sockaddr any = {.sa_family = AF_UNIX};

	return outcome(bind(given->socket, &any, sizeof(any.sa_family)));
}

/* --- The file system --- */

static int open_a_file(const struct given *given)
{
	return outcome(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
}

static int open_by_another_call(const struct given *given)
{
	const uint64_t how[3] = {O_RDONLY | O_CLOEXEC};

	return outcome(syscall(SYS_openat2, AT_FDCWD, "/proc/self/exe", how, sizeof(how)));
}

/* Its own file again, by the descriptor. */
static int open_what_it_has(const struct given *given)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", given->file);
	return outcome(open(path, O_RDONLY | O_CLOEXEC));
}

static int list_a_folder(const struct given *given)
{
	char bytes[1024];

	return outcome(syscall(SYS_getdents64, given->file, bytes, sizeof(bytes)));
}

static int remove_a_file(const struct given *given)
{
	return outcome(unlink("/nonexistent/file"));
}

static int make_a_folder(const struct given *given)
{
	return outcome(mkdir("/nonexistent/folder", 0700));
}

static int read_a_link(const struct given *given)
{
	char bytes[64];

	return outcome(readlink("/proc/self/exe", bytes, sizeof(bytes)));
}

/* --- Other programs, and code --- */

static int run_a_program(const struct given *given)
{
	char *const none[] = {NULL};

	return outcome(execve("/nonexistent/program", none, none));
}

static int make_a_process(const struct given *given)
{
	return outcome(syscall(SYS_clone3, NULL, 0));
}

static int send_a_signal(const struct given *given)
{
	return outcome(kill(getppid(), 0));
}

static int be_traced(const struct given *given)
{
	return outcome(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static int read_a_process(const struct given *given)
{
	char from = 1, to = 0;
	struct iovec source = {&from, 1}, target = {&to, 1};

	return outcome(process_vm_readv(getpid(), &target, 1, &source, 1, 0));
}

/* Of the kernel that is asked so, whoever asks: the size is impossible. */
static int use_perf(const struct given *given)
{
	struct perf_event_attr attr = {.size = 1};

	return outcome(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}

/* Who may use bpf: root, and where anybody may. */
static int use_bpf(const struct given *given)
{
	char attr[256] = {0};

	return outcome(syscall(SYS_bpf, 9999, attr, sizeof(attr)));
}

static int map_code(const struct given *given)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? errno : 0;
}

static int map_a_file_as_code(const struct given *given)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, given->file, 0);

	return p == MAP_FAILED ? errno : 0;
}

static int make_memory_code(const struct given *given)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NO_SANDBOX - 1 : outcome(mprotect(p, 4096, PROT_READ | PROT_EXEC));
}

/* A parser that strangers have taken over reaches no network, no file, no program and no other
 * process, and brings no code. */
TEST(what_is_not_needed_is_refused)
{
	static const struct {
		const char *name;
		attempt_fn attempt;
		bool for_root; /* others may be refused it anyhow */
	} attempts[] = {
		{"a socket", make_a_socket},
		{"a local socket", make_a_local_socket},
		{"a pair of sockets", make_a_pair},
		{"connecting its socket", connect_elsewhere},
		{"binding its socket", listen_here},
		{"opening a file", open_a_file},
		{"opening by openat2", open_by_another_call},
		{"opening its descriptor again", open_what_it_has},
		{"listing a folder", list_a_folder},
		{"removing a file", remove_a_file},
		{"making a folder", make_a_folder},
		{"reading a link", read_a_link},
		{"running a program", run_a_program},
		{"making a process", make_a_process},
		{"a signal", send_a_signal},
		{"being traced", be_traced},
		{"reading a process", read_a_process},
		{"perf events", use_perf},
		{"bpf", use_bpf, .for_root = true},
		{"code in memory", map_code},
		{"code out of a file", map_a_file_as_code},
		{"memory that becomes code", make_memory_code},
	};

	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
		int outside = try_in_child(attempts[i].attempt, false);
		int inside = try_in_child(attempts[i].attempt, true);

		printf("# %s: outside %d, inside %d\n", attempts[i].name, outside, inside);
		expect(outside >= 0 && (outside != EPERM || attempts[i].for_root));
		expect_eq(inside, EPERM);
	}
}

static int do_the_work(const struct given *given)
{
	char bytes[4], text[] = "done";
	int memory = memfd_create("names", MFD_CLOEXEC);
	struct iovec io = {text, sizeof(text)};
	const struct msghdr answer = {.msg_iov = &io, .msg_iovlen = 1};
	void *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || pread(given->file, bytes, sizeof(bytes), 0) != sizeof(bytes) ||
	    memory < 0 || write(memory, bytes, sizeof(bytes)) != sizeof(bytes) ||
	    munmap(p, 1 << 20) < 0)
		return errno;
	return outcome(sendmsg(given->socket, &answer, MSG_NOSIGNAL));
}

/* What reading files and answering take is allowed. */
TEST(what_is_needed_is_allowed)
{
	expect_eq(try_in_child(do_the_work, true), 0);
}
