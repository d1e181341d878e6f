/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc says about a process that may be a JVM: whether it is one that can be attached to, as
 * which user, and by which pid it knows itself.
 *
 * HotSpot is asked to listen by SIGQUIT, which ends any process that does not expect it. So all
 * that must hold for a JVM that expects it is looked at first. */
#pragma once

#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>

struct jvm {
	uint32_t pid, inner_pid; /* inner_pid: in its own pid namespace */
	uid_t uid;               /* effective, as our namespace has them */
	gid_t gid;
	uint16_t machine; /* ELF's e_machine of its program, 0: not known */
	char name[16];
};

/* 0, or with a text:
 * -ESRCH  there is no such process
 * -ENOEXEC it is no JVM (it has not mapped libjvm.so)
 * -EAGAIN  it is one that is still starting
 * -ENOTSUP it is one that cannot be attached to
 * or another errno where /proc does not answer. [any], some ms for a process with many mappings. */
int jvm_inspect(uint32_t pid, struct jvm *ret, struct error *err);

/* Whether SIGQUIT has a handler now: a process that has begun another program (exec) keeps its pid,
 * and not its handlers. 1: it has; 0: it has none, so the signal may end it; or a negative errno as
 * above. */
int jvm_expects_quit(uint32_t pid, struct error *err);
