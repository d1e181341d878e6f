/* SPDX-License-Identifier: Apache-2.0 */
/* What code can do that has taken over a process behind the filter: a child gives up what the agent
 * gives up, installs the filter, tries, and says by its exit status what came of it. Another child
 * tries the same without the filter: a call that this machine refuses anyhow proves nothing, and is
 * not counted. */
#include "proc/privileges.h"
#include "proc/syscall-filter.h"

#include "base/check.h"
#include "testing/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define NO_FILTER 255

enum where { OUTSIDE, SAMPLING, NOT_SAMPLING, SENDING };

static const enum syscalls levels[] = {[SAMPLING] = SYSCALLS_SAMPLING,
				       [NOT_SAMPLING] = SYSCALLS_PLAIN,
				       [SENDING] = SYSCALLS_SENDING};

/* 0 or an errno. */
typedef int (*attempt_fn)(void);

static int outcome(long r)
{
	return r < 0 ? errno : 0;
}

static int try_in_child(attempt_fn attempt, enum where where)
{
	pid_t pid = fork();
	int status;

	check(pid >= 0);
	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    (where != OUTSIDE && syscall_filter_install(levels[where]) < 0))
			_exit(NO_FILTER);
		_exit(attempt());
	}
	check(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* --- Other processes --- */

#if !defined(__SANITIZE_ADDRESS__)
static int be_traced(void)
{
	return outcome(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static int attach_to_parent(void)
{
	return outcome(ptrace(PTRACE_SEIZE, getppid(), NULL, NULL));
}
#endif

static int write_into_a_process(void)
{
	char from = 1, to = 0;
	struct iovec source = {&from, 1}, target = {&to, 1};

	return outcome(process_vm_writev(getpid(), &source, 1, &target, 1, 0));
}

static int read_a_process(void)
{
	char from = 1, to = 0;
	struct iovec source = {&from, 1}, target = {&to, 1};

	return outcome(process_vm_readv(getpid(), &target, 1, &source, 1, 0));
}

static int take_a_descriptor(void)
{
	int self = (int)syscall(SYS_pidfd_open, getpid(), 0);

	return self < 0 ? NO_FILTER : outcome(syscall(SYS_pidfd_getfd, self, 0, 0));
}

/* --- Files and mounts --- */

static int name_by_handle(void)
{
	struct {
		struct file_handle head;
		unsigned char bytes[MAX_HANDLE_SZ];
	} handle = {.head.handle_bytes = MAX_HANDLE_SZ};
	int mount;

	return outcome(name_to_handle_at(AT_FDCWD, "/", &handle.head, &mount, 0));
}

static int open_by_handle(void)
{
	struct {
		struct file_handle head;
		unsigned char bytes[8];
	} handle = {.head.handle_bytes = 0};

	return outcome(open_by_handle_at(AT_FDCWD, &handle.head, O_RDONLY | O_CLOEXEC));
}

static int mount_something(void)
{
	return outcome(mount("none", "/nonexistent", "tmpfs", 0, NULL));
}

static int change_root(void)
{
	return outcome(chroot("/"));
}

static int run_a_descriptor(void)
{
	char *const none[] = {NULL};

	return outcome(syscall(SYS_execveat, -1, "nonexistent", none, none, 0));
}

/* --- The kernel --- */

static int load_a_module(void)
{
	return outcome(syscall(SYS_init_module, NULL, 0, ""));
}

static int load_a_kernel(void)
{
	return outcome(syscall(SYS_kexec_load, 0, 1 << 20, NULL, 0));
}

static int use_bpf(void)
{
	char attr[256] = {0};

	return outcome(syscall(SYS_bpf, 9999, attr, sizeof(attr)));
}

static int use_perf(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_DUMMY,
				       .exclude_kernel = 1};

	return outcome(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}

static int use_io_uring(void)
{
	return outcome(syscall(SYS_io_uring_setup, 0, NULL));
}

static int use_a_key(void)
{
	return outcome(syscall(SYS_keyctl, 0, -3, 1));
}

/* --- Namespaces, families, other numbers --- */

static int make_a_user_namespace(void)
{
	return outcome(unshare(CLONE_NEWUSER));
}

static int clone_into_a_namespace(void)
{
	long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, NULL, NULL, 0);

	if (pid == 0)
		_exit(0);
	return outcome(pid);
}

static int talk_to_the_crypto_layer(void)
{
	return outcome(socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

#ifdef __x86_64__
/* getpid of 32-bit programs. */
static int call_in_32_bits(void)
{
	long r;

	__asm__ volatile("int $0x80" : "=a"(r) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
	return r < 0 ? (int)-r : 0;
}
#endif

struct
try {
	const char *name;
	attempt_fn attempt;
	bool for_sampling;
};

static const struct try tries[] = {
#if !defined(__SANITIZE_ADDRESS__)
	{"being traced", be_traced},
	{"attaching", attach_to_parent},
#endif
	{"writing into a process", write_into_a_process},
	{"reading a process", read_a_process, true},
	{"taking a descriptor", take_a_descriptor, true},
	{"naming a file by handle", name_by_handle},
	{"opening a file by handle", open_by_handle},
	{"mounting", mount_something},
	{"another root", change_root},
	{"running a descriptor", run_a_descriptor},
	{"loading a module", load_a_module},
	{"loading a kernel", load_a_kernel},
	{"bpf", use_bpf, true},
	{"perf events", use_perf, true},
	{"io_uring", use_io_uring},
	{"keys", use_a_key},
	{"a user namespace", make_a_user_namespace},
	{"a user namespace by clone", clone_into_a_namespace},
	{"AF_ALG", talk_to_the_crypto_layer},
#ifdef __x86_64__
	{"a call in 32 bits", call_in_32_bits},
#endif
};

/* Code in an agent that samples can attach to nothing, mount nothing and load nothing into the
 * kernel but BPF; in one that does not, not even that. */
TEST(what_nothing_of_ours_does_is_refused)
{
	int counted = 0;

	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		const struct try *t = &tries[i];
		int outside = try_in_child(t->attempt, OUTSIDE);
		int sampling = try_in_child(t->attempt, SAMPLING);
		int other = try_in_child(t->attempt, NOT_SAMPLING);

		printf("# %s: outside %d, sampling %d, not sampling %d\n", t->name, outside,
		       sampling, other);
		if (outside < 0) /* this machine has no such calls, and they kill */
			continue;
		expect_eq(other, EPERM);
		expect_eq(sampling, t->for_sampling ? outside : EPERM);
		counted += outside != EPERM;
	}
	expect(counted >= 8); /* what anybody may do */
}

static void *nothing(void *context)
{
	return context;
}

static int work(void)
{
	pthread_t thread;
	int status, fds[2];
	pid_t pid;

	if (pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0)
		return 1;
	pid = fork();
	if (pid == 0)
		execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 7)
		return 2;
	for (size_t i = 0; i < 4; i++) {
		static const int family[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
		int fd = socket(family[i], SOCK_DGRAM | SOCK_CLOEXEC, 0);

		if (fd < 0 && errno == EPERM)
			return 3;
		close(fd);
	}
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0 ? 0 : 4;
}

/* Threads, programs and the sockets that we have work as before. */
TEST(what_ours_does_is_allowed)
{
	expect_eq(try_in_child(work, SAMPLING), 0);
	expect_eq(try_in_child(work, NOT_SAMPLING), 0);
}

static int open_for_writing(void)
{
	return outcome(open("/dev/null", O_WRONLY | O_CLOEXEC));
}

static int remove_a_file(void)
{
	return outcome(unlink("/nonexistent"));
}

static int begin_a_process(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return outcome(pid);
}

static int run_a_program(void)
{
	char *const none[] = {NULL};

	return outcome(execve("/nonexistent", none, none));
}

static int signal_another(void)
{
	return outcome(kill(getppid(), 0));
}

static int signal_a_thread_of_another(void)
{
	return outcome(syscall(SYS_tgkill, getppid(), getppid(), 0));
}

static int talk_to_services(void)
{
	return outcome(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static int list_sockets(void)
{
	return outcome(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
}

static int talk_past_transport(void)
{
	return outcome(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_TCP));
}

static int talk_by_other_protocols(void)
{
	return outcome(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_MPTCP));
}

/* A datagram socket may be connected anew. */
static int talk_to_services_by_a_pair(void)
{
	int fds[2];

	return outcome(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds));
}

static int limit_another(void)
{
	struct rlimit now;

	return outcome(prlimit(getppid(), RLIMIT_CPU, NULL, &now));
}

static int put_another_behind(void)
{
	id_t parent = (id_t)getppid();

	return outcome(setpriority(PRIO_PROCESS, parent, getpriority(PRIO_PROCESS, parent)));
}

static int signal_by_an_owner(void)
{
	return outcome(fcntl(open("/dev/null", O_RDONLY | O_CLOEXEC), F_SETOWN, getppid()));
}

static int share_memory(void)
{
	return outcome(shmget(1, 1, 0));
}

static int have_memory_as_a_file(void)
{
	return outcome(memfd_create("m", MFD_CLOEXEC));
}

/* As the filter has them: older headers do not. */
static int change_a_mode(void)
{
	return outcome(syscall(452, AT_FDCWD, "/nonexistent", 0600, 0));
}

static int add_an_attribute(void)
{
	return outcome(syscall(463, AT_FDCWD, "/nonexistent", 0, "user.a", NULL, 0));
}

static int remove_an_attribute(void)
{
	return outcome(removexattr("/nonexistent", "user.a"));
}

static int remove_an_attribute_below(void)
{
	return outcome(syscall(466, AT_FDCWD, "/nonexistent", 0, "user.a"));
}

static int set_attributes_of_a_file(void)
{
	return outcome(syscall(469, AT_FDCWD, "/nonexistent", NULL, 0, 0));
}

static int set_times(void)
{
	return outcome(utimensat(AT_FDCWD, "/nonexistent", NULL, 0));
}

static int cut_a_file(void)
{
	return outcome(ftruncate(-1, 0));
}

static int fill_a_file(void)
{
	return outcome(fallocate(-1, 0, 0, 1));
}

/* As if somebody had typed it. */
static int type_into_a_terminal(void)
{
	return outcome(ioctl(open("/dev/null", O_RDONLY | O_CLOEXEC), TIOCSTI, "x"));
}

static int listen_to_others(void)
{
	return outcome(listen(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), 1));
}

static const struct try by_sending[] = {
	{"opening for writing", open_for_writing},
	{"removing a file", remove_a_file},
	{"a process", begin_a_process},
	{"a program", run_a_program},
	{"a signal", signal_another},
	{"a signal to a thread", signal_a_thread_of_another},
	{"NETLINK_SOCK_DIAG", list_sockets},
	{"raw sockets", talk_past_transport},
	{"MPTCP", talk_by_other_protocols},
	{"AF_UNIX", talk_to_services},
	{"AF_UNIX, of a pair", talk_to_services_by_a_pair},
	{"limits of another", limit_another},
	{"turn of another", put_another_behind},
	{"a signal by an owner", signal_by_an_owner},
	{"shared memory", share_memory},
	{"memory as a file", have_memory_as_a_file},
	{"a mode", change_a_mode},
	{"an attribute", add_an_attribute},
	{"removing an attribute", remove_an_attribute},
	{"removing an attribute below", remove_an_attribute_below},
	{"attributes of a file", set_attributes_of_a_file},
	{"times of a file", set_times},
	{"cutting a file", cut_a_file},
	{"filling a file", fill_a_file},
	{"typing", type_into_a_terminal},
	{"listening", listen_to_others},
};

/* What speaks to servers has none of what others are refused, and changes no file, starts nothing
 * and reaches no other process. */
TEST(what_sends_does_nothing_else)
{
	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++)
		if (try_in_child(tries[i].attempt, OUTSIDE) >= 0 &&
		    tries[i].attempt != take_a_descriptor)
			expect_eq(try_in_child(tries[i].attempt, SENDING), EPERM);
	for (size_t i = 0; i < sizeof(by_sending) / sizeof(by_sending[0]); i++) {
		const struct try *t = &by_sending[i];
		int outside = try_in_child(t->attempt, OUTSIDE);

		if (outside == ENOSYS) /* an older kernel has no such call */
			continue;
		if (outside == EPERM || try_in_child(t->attempt, SENDING) != EPERM)
			test_fail(__FILE__, __LINE__, "%s: outside %d", t->name, outside);
	}
}

/* What clients open: one of the last kind, or negative. */
static int have_sockets(void)
{
	static const struct {
		int family, type, protocol;
	} of_clients[] = {
		{AF_NETLINK, SOCK_RAW, NETLINK_ROUTE},	{AF_INET6, SOCK_DGRAM, 0},
		{AF_INET, SOCK_STREAM, 0},		{AF_INET, SOCK_DGRAM, IPPROTO_UDP},
		{AF_INET, SOCK_STREAM, IPPROTO_TCP},
	};
	int fd = -1;

	for (size_t i = 0; i < sizeof(of_clients) / sizeof(of_clients[0]); i++) {
		fd = socket(of_clients[i].family, of_clients[i].type | SOCK_NONBLOCK,
			    of_clients[i].protocol);
		if (fd < 0 && errno == EPERM)
			return -1;
	}
	return fd;
}

static int send_work(void)
{
	pthread_t thread;
	int fds[2], waiting, on = 1, fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct ifreq name = {.ifr_name = "lo"};
	struct rlimit now;

	if (pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0)
		return 1;
	if (fd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return 2;
	fd = have_sockets();
	if (fd < 0)
		return 3;
	if (fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0 || ioctl(fds[0], FIONREAD, &waiting) < 0 ||
	    ioctl(fds[0], FIONBIO, &on) < 0 || getrlimit(RLIMIT_NOFILE, &now) < 0)
		return 5;
	if (ioctl(fd, SIOCGIFINDEX, &name) < 0 && errno == EPERM)
		return 6;
	return syscall(SYS_tgkill, getpid(), getpid(), 0) == 0 ? 0 : 4;
}

#define NOT_YET_A_CALL 470

/* Has an older filter say of a number that nobody has yet that it was called: of two filters that
 * answer with an errno the newer counts. */
static bool make_a_call_known(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NOT_YET_A_CALL, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = sizeof(f) / sizeof(f[0]), .filter = f};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int call_what_is_new(void)
{
	if (!make_a_call_known() || syscall(NOT_YET_A_CALL) == 0 || errno != EXDEV ||
	    syscall_filter_install(SYSCALLS_SENDING) < 0)
		return NO_FILTER;
	return outcome(syscall(NOT_YET_A_CALL));
}

/* What a newer kernel can do is not there for what speaks to servers. */
TEST(what_nobody_has_looked_at_is_not_there)
{
	expect_eq(try_in_child(call_what_is_new, OUTSIDE), ENOSYS);
}

/* Resolver threads, certificates, sockets to servers, and abort. */
TEST(what_sending_takes_is_allowed)
{
	expect_eq(try_in_child(send_work, SENDING), 0);
}

static int shed_privileges_later(void)
{
	return privileges_keep(0) == 0 ? 0 : 1;
}

/* A child can still enter a sandbox of its own. */
TEST(less_is_always_possible)
{
	expect_eq(try_in_child(shed_privileges_later, SAMPLING), 0);
}
