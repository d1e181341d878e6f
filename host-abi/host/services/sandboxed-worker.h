/* SPDX-License-Identifier: Apache-2.0 */
/* andiron.apart/1 (andiron/apart.h) as a service of the host. */
#ifndef HOST_SERVICES_SANDBOXED_WORKER_H
#define HOST_SERVICES_SANDBOXED_WORKER_H

#include <andiron/apart.h>

/* The descriptor under which the process finds its end of the socket. */
#define APART_SOCKET 3

/* Its `self` is not used. Any thread. */
const struct andiron_apart *apart_table(void);

#endif
