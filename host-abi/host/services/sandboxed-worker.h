/* SPDX-License-Identifier: Apache-2.0 */
/* andiron.subprocess/1 (andiron/subprocess.h) as a service of the host. */
#pragma once

#include <andiron/subprocess.h>

/* The descriptor under which the process finds its end of the socket. */
#define SANDBOXED_WORKER_SOCKET 3

struct instance;

/* Starts a process that runs the whole component of the instance (isolate/message.h): as `start` of
 * andiron/subprocess.h. */
int isolated_process_start(const struct instance *i, int *ret_socket, int *ret_pidfd);

/* Offered by hosts that have a worker program. Its `self` is not used. Any thread. */
extern const struct andiron_subprocess sandboxed_worker;
