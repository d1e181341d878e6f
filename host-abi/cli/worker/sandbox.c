/* SPDX-License-Identifier: Apache-2.0 */
/* The sandboxes. What parses has a list of what is allowed, since a list of what is not is never
 * whole. What speaks to servers runs libc's resolver and whatever else of libraries finding a name
 * takes, so it has a list of what is refused. Contract in sandbox.h. */
#include "cli/worker/sandbox.h"

#include "base/check.h"
#include "cli/malloc-tuning.h"
#include "proc/client-files.h"
#include "proc/privileges.h"
#include "proc/syscall-filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define WITH_SANITIZER 1
#else
#define WITH_SANITIZER 0
#endif

#define ADDRESSES ((rlim_t)1 << 30)
/* Each thread reserves 8 MiB of them for its stack, and in an isolated component 128 MiB for a heap
 * of its own. */
#define ADDRESSES_SENDING ((rlim_t)8 << 30)
/* Twice as many as pyroscope.scrape has requests under way at most. */
#define DESCRIPTORS_SENDING 16384

static const int allowed[] = {
	SYS_read,        SYS_write,       SYS_pread64,      SYS_pwrite64,       SYS_recvmsg,
	SYS_sendmsg,     SYS_close,       SYS_fstat,        SYS_newfstatat,     SYS_lseek,
	SYS_ftruncate,   SYS_fcntl,       SYS_memfd_create, SYS_munmap,         SYS_mremap,
	SYS_madvise,     SYS_brk,         SYS_futex,        SYS_clock_gettime,  SYS_getrandom,
	SYS_exit,        SYS_exit_group,  SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_rt_sigaction,
	SYS_sigaltstack, SYS_sched_yield, SYS_getpid,       SYS_gettid,         SYS_restart_syscall,
};
#define N_ALLOWED (sizeof(allowed) / sizeof(allowed[0]))

/* To that, or to as much as it may have. */
static int limit(int what, rlim_t value)
{
	struct rlimit l, now;

	if (getrlimit((__rlimit_resource_t)what, &now) == 0 && now.rlim_max < value)
		value = now.rlim_max;
	l = (struct rlimit){value, value};
	return setrlimit((__rlimit_resource_t)what, &l) < 0 ? -errno : 0;
}

static int set_limits(void)
{
	int r = limit(RLIMIT_CORE, 0);

	if (r == 0)
		r = limit(RLIMIT_NOFILE, 1024);
	if (r == 0)
		r = limit(RLIMIT_FSIZE, (rlim_t)512 << 20);
	/* A sanitizer's shadow alone is terabytes of addresses. */
	return r == 0 && !WITH_SANITIZER ? limit(RLIMIT_AS, ADDRESSES) : r;
}

/* mmap is allowed without PROT_EXEC, mprotect likewise: what is parsed never becomes code. */
static int install_filter(void)
{
	const __u32 nr = offsetof(struct seccomp_data, nr),
		    arch = offsetof(struct seccomp_data, arch);
	const __u32 prot = offsetof(struct seccomp_data, args[2]);
	struct sock_filter f[N_ALLOWED + 16];
	struct sock_fprog program = {.filter = f};
	unsigned short n = 0;

	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, arch);
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYSCALL_FILTER_ARCH, 1, 0);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, nr);
	for (size_t i = 0; i < N_ALLOWED; i++)
		f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (__u32)allowed[i],
						      (__u8)(N_ALLOWED - i - 1 + 7), 0);
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 2, 0);
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 1, 0);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, prot);
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 2);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	check(n == N_ALLOWED + 12 && N_ALLOWED + 7 <= 255); /* jumps are one byte */
	program.len = n;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}

/* What both kinds begin with; `r` is what setting their limits has given. */
static int give_up(int r, struct error *err)
{
	if (r < 0)
		return error_errno(err, r, "cannot limit what the process may take");
	r = privileges_drop();
	if (r == 0 && !WITH_SANITIZER && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		r = -errno;
	return r < 0 ? error_errno(err, r, "cannot give up privileges") : 0;
}

int sandbox_enter(struct error *err)
{
	int r = give_up(set_limits(), err);

	if (r < 0)
		return r;
	r = install_filter();
	return r < 0 ? error_errno(err, r, "cannot install the filter of system calls") : 0;
}

int sandbox_enter_isolated(struct error *err)
{
	int r = limit(RLIMIT_CORE, 0);

	if (r == 0 && !WITH_SANITIZER)
		r = limit(RLIMIT_AS, ADDRESSES_SENDING);
	return give_up(r, err);
}

int sandbox_enter_sending(struct error *err)
{
	int r = limit(RLIMIT_CORE, 0);

	/* Else each thread that finds a name has an arena. */
	heap_keep_small();

	if (r == 0)
		r = limit(RLIMIT_NOFILE, DESCRIPTORS_SENDING);
	if (r == 0 && !WITH_SANITIZER)
		r = limit(RLIMIT_AS, ADDRESSES_SENDING);
	r = give_up(r, err);
	if (r < 0)
		return r;
	r = client_files_confine(NULL);
	if (r < 0)
		return error_set(err, r,
				 "it cannot be confined to few files, so it does not run (%s); "
				 "where Landlock is there, let its system calls pass, or switch it "
				 "off",
				 strerror(-r));
	r = syscall_filter_install(SYSCALLS_SENDING);
	return r < 0 ? error_errno(err, r, "cannot install the filter of system calls") : 0;
}
