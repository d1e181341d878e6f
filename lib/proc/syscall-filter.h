/* SPDX-License-Identifier: Apache-2.0 */
/* System calls that nothing of ours makes, refused for good (seccomp), so that code which has taken
 * over a process has none of them. A list of what is refused: what is not on it works as before.
 * The parser of untrusted files has a list of what is allowed, which is much stronger
 * (cli/worker/sandbox.h). */
#pragma once

#include <stdbool.h>

/* For this process, the threads that it makes and what they execute; before it has threads, and
 * with no_new_privs. All on the list answer EPERM:
 * - attaching to processes, and writing into them; opening files by handle, past all folders
 * - mounts, namespaces, modules, other kernels, clocks, keys, io_uring, accounting, swap
 * - sockets but AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK
 * - system calls in another machine's numbers (32 bits, x32)
 * `samples` false: also bpf, perf events, reading other processes' memory and descriptors.
 * 0 or a negative errno; nothing has changed then. A call that is allowed costs some 50 ns more. */
int syscall_filter_install(bool samples);
