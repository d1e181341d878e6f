/* SPDX-License-Identifier: Apache-2.0 */
/* Dropping all that a process which parses untrusted bytes does not need. */
#pragma once

#include "base/error.h"

/* For good: no capability, no new privilege, no core file, at most 1,024 descriptors, files (in
 * memory) of at most 512 MiB, 1 GiB of addresses; and only the system calls that computing, memory,
 * and reading and sending over open descriptors take. All others answer EPERM. 0 or a negative
 * errno with a sentence. */
int sandbox_enter(struct error *err);
