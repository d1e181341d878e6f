/* SPDX-License-Identifier: Apache-2.0 */
/* Dropping all that a process does not need which parses untrusted bytes, or speaks to servers. */
#pragma once

#include "base/error.h"

/* For good: no capability, no new privilege, no core file, at most 1,024 descriptors, files (in
 * memory) of at most 512 MiB, 1 GiB of addresses; and only the system calls that computing, memory,
 * and reading and sending over open descriptors take. All others answer EPERM. 0 or a negative
 * errno with a sentence. */
int sandbox_enter(struct error *err);

/* For a process that speaks to servers. For good: no capability, no new privilege, no core file, 8
 * GiB of addresses; the agent's filter of system calls in its strongest form
 * (proc/syscall-filter.h), and of files those alone that finding servers and trusting them take, to
 * be read (proc/client-files.h; where the kernel has no Landlock: what its user may read). 0 or a
 * negative errno with a sentence. */
int sandbox_enter_sending(struct error *err);

/* For a process that runs a whole component, which may be any. For good: no capability, no new
 * privilege, no core file, 8 GiB of addresses; and what the agent is confined to itself, which is
 * inherited. 0 or a negative errno with a sentence. */
int sandbox_enter_isolated(struct error *err);
