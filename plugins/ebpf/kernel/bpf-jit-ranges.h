/* SPDX-License-Identifier: Apache-2.0 */
/* Address ranges of JIT-compiled BPF programs: struct kernel_jit of bpfwire/kernel-tables.h. */
#pragma once

#include "bpfwire/kernel-tables.h"

#include <stdint.h>

struct bpf_object;

/* Adds the programs of a loaded object; what the kernel hides, or there is no room for, is left
 * out. Some system calls a program. */
void bpf_jit_ranges_add(struct kernel_jit *c, const struct bpf_object *object);

/* Adds code. What lies within a page of code that is there already is one range with it: between
 * them there is nothing but other programs, since pages of their code are theirs alone. */
void bpf_jit_ranges_add_range(struct kernel_jit *c, uint64_t start, uint64_t bytes);
