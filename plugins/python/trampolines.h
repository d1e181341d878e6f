/* SPDX-License-Identifier: Apache-2.0 */
/* Code that CPython makes for perf, from 3.12 on (`-X perf`, PYTHONPERFSUPPORT): one trampoline for
 * each function, through which the loop is called. No table describes it, so that without a claim a
 * stack ends there. How one is left stands in activation.h. Source: Python/asm_trampoline.S and
 * perf_trampoline.c. On arm64 a trampoline has a frame pointer, which native walks follow. */
#pragma once

#include <andiron/runtime.h>

#include <stdbool.h>
#include <stddef.h>

#define TRAMPOLINE_BYTES 16u         /* by which one is known */
#define TRAMPOLINE_ARENA (64u << 10) /* CPython maps so much for them at once */

struct target_reader;

/* Whether these bytes, TRAMPOLINE_BYTES of them, begin with a trampoline. */
bool trampoline_known(const unsigned char *code);

/* Whether any of these mappings may have some: it has no file, and is as large as theirs. The
 * kernel's own code, which each process has, is smaller. */
bool trampolines_possible(const struct andiron_runtime_mapping *mappings, uint64_t n);

/* The mappings that begin with a trampoline, into ret[0 … max): how many. It reads the process's
 * memory, at most 32 times. */
int32_t trampolines_claim(struct target_reader *reader,
			  const struct andiron_runtime_process *process,
			  const struct andiron_runtime_mapping *mappings, uint64_t n,
			  struct andiron_runtime_claim *ret, uint64_t max);
