/* SPDX-License-Identifier: Apache-2.0 */
/*
 * andiron.apart/1: a component's own code in a process of its own, for what a stranger's bytes
 * may break. The process has no network, opens no file, holds no capability and
 * gets what it works on as descriptors. That it dies costs what it was working on.
 */
#ifndef ANDIRON_APART_H
#define ANDIRON_APART_H

#include <andiron/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ANDIRON_APART_ID "andiron.apart/1"

struct andiron_apart {
	uint32_t size;
	uint32_t reserved;

	/*
	 * Starts a process that runs the `apart` function of the instance's component, and gives
	 * our end of its socket (SOCK_SEQPACKET) and a pidfd, both the caller's to close. It ends
	 * when the socket does; whoever started it waits for it (waitid with P_PIDFD). It knows
	 * nothing of the instance but what is sent. -ENOENT: the component has no such function; or
	 * the errno of socketpair, posix_spawn or pidfd_open. [any], some milliseconds.
	 */
	int32_t (*start)(void *self, uint64_t instance, int32_t *ret_socket, int32_t *ret_pidfd);
};

#ifdef __cplusplus
}
#endif

#endif
