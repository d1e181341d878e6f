/* SPDX-License-Identifier: Apache-2.0 */
/* andiron.subprocess/1: a component's code in a sandboxed process, for parsing untrusted bytes. The
 * process has no network and no capability, and opens no file: its input comes as descriptors. A
 * crash costs the work that it was given, nothing else.
 *
 * A second kind speaks to servers: it has the network, and of files those alone that finding a
 * server and trusting it take. It listens to nobody, starts nothing, and reaches no process. */
#ifndef ANDIRON_SUBPROCESS_H
#define ANDIRON_SUBPROCESS_H

#include <andiron/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ANDIRON_SUBPROCESS_ID "andiron.subprocess/1"

struct andiron_subprocess {
	uint32_t size;
	uint32_t reserved;

	/* Starts a process that runs `subprocess` (component.h) of the instance's component.
	 * Returns our end of its socket (SOCK_SEQPACKET) and a pidfd, both the caller's to close.
	 * The process ends when the socket closes; the caller reaps it (waitid with P_PIDFD). It
	 * does not know the instance: everything it needs is sent. -ENOENT: the component has no
	 * such function; else the errno of socketpair, posix_spawn or pidfd_open. [any], some
	 * milliseconds. */
	int32_t (*start)(void *self, uint64_t instance, int32_t *ret_socket, int32_t *ret_pidfd);

	/* The same for `sender` of the component, and for a process that may speak to servers.
	 * Absent in shorter tables: there is none. */
	int32_t (*start_sender)(void *self, uint64_t instance, int32_t *ret_socket,
				int32_t *ret_pidfd);
};

#ifdef __cplusplus
}
#endif

#endif
