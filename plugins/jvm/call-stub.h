/* SPDX-License-Identifier: Apache-2.0 */
/* The stub by which native code calls Java, in which no debug information tells where its frame is
 * made and left. */
#pragma once

#include "runtime-kit/target-memory.h"

#include "jvm/walk/jvm-records.h"

/* Finds the stub's bounds around ret->call_stub, where its call returns to. They stay 0 if the code
 * there is none of a known stub. One read. */
void call_stub_read(struct target_memory *memory, struct jvm_process *ret);
