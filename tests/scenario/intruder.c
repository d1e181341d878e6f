/* SPDX-License-Identifier: Apache-2.0 */
/* Code that has taken over a process: preloaded, it stands where the agent's loop waits, where
 * andiron-debuginfod begins a request, and where the agent's parser and its senders are told what
 * to do. Once, it tries what intruders try, on the process that INTRUDER_VICTIM names among others,
 * and says on standard error for each whether it got it: "intruder: NAME 0", or the errno. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t victim(void)
{
	return (pid_t)strtol(getenv("INTRUDER_VICTIM"), NULL, 10);
}

static long read_a_file(void)
{
	return open("/etc/passwd", O_RDONLY | O_CLOEXEC);
}

static long read_a_file_of_root(void)
{
	return open("/etc/shadow", O_RDONLY | O_CLOEXEC);
}

static long write_a_file(void)
{
	return open("intruded", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

static long open_memory_of(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	return open(path, O_RDWR | O_CLOEXEC);
}

static long open_memory(void)
{
	return open_memory_of(victim());
}

/* Of the test, which root runs with all that root has. */
static long open_memory_of_root(void)
{
	return open_memory_of(getppid());
}

static long open_by_handle(void)
{
	struct {
		struct file_handle head;
		unsigned char bytes[MAX_HANDLE_SZ];
	} handle = {.head.handle_bytes = MAX_HANDLE_SZ};
	int mount_id;

	return name_to_handle_at(AT_FDCWD, "/", &handle.head, &mount_id, 0);
}

static long listen_for_others(void)
{
	const struct sockaddr_in any = {.sin_family = AF_INET,
					.sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return bind(fd, (const struct sockaddr *)&any, sizeof(any));
}

/* Of root's services: container engines, systemd. */
static long talk_to_services(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static long send_raw_packets(void)
{
	return socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
}

static long attach(void)
{
	return ptrace(PTRACE_SEIZE, victim(), NULL, NULL);
}

static long signal_it(void)
{
	return kill(victim(), 0);
}

static long make_a_map(void)
{
	union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY};

	attr.key_size = attr.value_size = 4;
	attr.max_entries = 1;
	return syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
}

static long watch_it(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_CPU_CLOCK};

	return syscall(SYS_perf_event_open, &attr, victim(), -1, -1, 0);
}

static long mount_something(void)
{
	return mount("none", "/proc", "tmpfs", MS_REMOUNT | MS_BIND, NULL);
}

static long make_a_namespace(void)
{
	return unshare(CLONE_NEWUSER);
}

static long load_a_module(void)
{
	return syscall(SYS_init_module, NULL, 0, "");
}

static long become_another(void)
{
	return syscall(SYS_setresuid, 65534, 65534, -1);
}

static long run_a_program(void)
{
	char *const argv[] = {(char[]){"true"}, NULL}, *const none[] = {NULL};
	pid_t pid;

	errno = posix_spawn(&pid, "/bin/true", NULL, NULL, argv, none);
	return errno ? -1 : 0;
}

static const struct {
	const char *name;
	long (*attempt)(void);
} attempts[] = {
	{"read", read_a_file},
	{"read-root", read_a_file_of_root},
	{"write", write_a_file},
	{"memory", open_memory},
	{"memory-root", open_memory_of_root},
	{"handle", open_by_handle},
	{"listen", listen_for_others},
	{"packets", send_raw_packets},
	{"services", talk_to_services},
	{"ptrace", attach},
	{"signal", signal_it},
	{"bpf", make_a_map},
	{"perf", watch_it},
	{"mount", mount_something},
	{"namespace", make_a_namespace},
	{"module", load_a_module},
	{"user", become_another},
	{"program", run_a_program},
};

static void intrude(void)
{
	static atomic_flag done = ATOMIC_FLAG_INIT;

	if (!getenv("INTRUDER_VICTIM") || atomic_flag_test_and_set(&done))
		return;
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
		long r = attempts[i].attempt();

		dprintf(STDERR_FILENO, "intruder: %s %d\n", attempts[i].name, r < 0 ? errno : 0);
	}
	dprintf(STDERR_FILENO, "intruder: done 0\n");
}

int epoll_wait(int fd, struct epoll_event *events, int n, int timeout)
{
	intrude();
	return epoll_pwait(fd, events, n, timeout, NULL);
}

#ifdef OF_FETCHER
int curl_multi_add_handle(void *multi, void *easy);
int curl_multi_add_handle(void *multi, void *easy)
{
	int (*real)(void *, void *) =
		(int (*)(void *, void *))(uintptr_t)dlsym(RTLD_NEXT, "curl_multi_add_handle");

	intrude();
	return real(multi, easy);
}
#endif

ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	intrude();
	return syscall(SYS_recvmsg, fd, m, flags);
}
