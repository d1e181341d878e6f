/* SPDX-License-Identifier: Apache-2.0 */
/* System calls that nothing of ours makes, refused for good (seccomp), so that code which has taken
 * over a process has none of them. A list of what is refused: what is not on it works as before.
 * The parser of untrusted files has a list of what is allowed, which is much stronger
 * (cli/worker/sandbox.h). */
#pragma once

#include <linux/audit.h>

/* This machine's own system calls, as a filter sees them. */
#if defined(__x86_64__)
#define SYSCALL_FILTER_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SYSCALL_FILTER_ARCH AUDIT_ARCH_AARCH64
#else
#define SYSCALL_FILTER_ARCH AUDIT_ARCH_RISCV64
#endif

/* What the process does; each is refused what those before it are, and more. */
enum syscalls {
	SYSCALLS_SAMPLING,
	SYSCALLS_PLAIN,
	SYSCALLS_SENDING, /* speaks to servers, and does nothing else */
};

/* For this process, the threads that it makes and what they execute; before it has threads, and
 * with no_new_privs. All on the list answer EPERM:
 * - attaching to processes, and writing into them; opening files by handle, past all folders
 * - mounts, namespaces, modules, other kernels, clocks, keys, io_uring, accounting, swap
 * - sockets but AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK
 * - system calls in another machine's numbers (32 bits, x32)
 * SYSCALLS_PLAIN: also bpf, perf events, reading other processes' memory and descriptors.
 * SYSCALLS_SENDING: also programs and processes, signals to others, their limits and turns,
 * System V's and POSIX's shared memory and queues, files to be written, made, renamed, removed or
 * marked (modes, owners, times, attributes), what drives terminals and other devices (of ioctl a
 * few questions about sockets are left), listening to others, sockets of AF_UNIX, behind which
 * services of root's wait (a pair that stays connected can be had), and of the others all but TCP,
 * UDP and the questions about interfaces (NETLINK_ROUTE). What is newer than Linux 6.18 answers
 * ENOSYS.
 * 0 or a negative errno; nothing has changed then. A call that is allowed costs some 50 ns more. */
int syscall_filter_install(enum syscalls what);
