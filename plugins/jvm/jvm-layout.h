/* SPDX-License-Identifier: Apache-2.0 */
/* A process's JVM as the program reads it: from the JVM's own tables to a struct jvm_process. */
#pragma once

#include "runtime-kit/target-memory.h"

#include "jvm/vm-structs.h"
#include "jvm/walk/jvm-records.h"

/* Fills offsets and flags. NULL, or the name of a member that this version lacks and that nothing
 * stands in for. */
const char *layout_offsets(const struct vm_structs *vm, uint32_t major, struct jvm_offsets *ret);

/* Has the words read at once that are looked at first. */
void layout_announce(struct target_memory *memory, const struct vm_structs *vm);

/* Fills in where the process has its code: heaps, interpreter, call stub. 0; -EAGAIN: it is not set
 * up yet. Some 300 µs, most of it for the interpreter's code. */
int layout_code(struct target_memory *memory, const struct vm_structs *vm, struct jvm_process *ret);
