/* SPDX-License-Identifier: Apache-2.0 */
/* andiron.subprocess/1 (andiron/subprocess.h) as a service of the host. */
#pragma once

#include <andiron/subprocess.h>

/* The descriptor under which the process finds its end of the socket. */
#define SANDBOXED_WORKER_SOCKET 3

/* Offered by hosts that have a worker program. Its `self` is not used. Any thread. */
extern const struct andiron_subprocess sandboxed_worker;
