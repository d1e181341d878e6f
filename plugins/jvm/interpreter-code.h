/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter's machine code, which the JVM makes when it starts: where it is, and where in it
 * frames of methods are begun and ended. */
#pragma once

#include "runtime-kit/target-memory.h"

#include "jvm/vm-structs.h"
#include "jvm/walk/jvm-records.h"

/* Whether more of it is still made: the JVM gives back the rest of the memory when it has all, and
 * other code stands there then. A JVM that tells nothing of that, or keeps the rest: true or false
 * for ever. */
bool interpreter_code_grows(struct target_memory *memory, const struct vm_structs *vm);

/* 0, or -EAGAIN: it is not there yet. */
int interpreter_code_read(struct target_memory *memory, const struct vm_structs *vm,
			  struct jvm_process *ret);
