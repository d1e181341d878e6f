/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel support: what this kernel lacks for sampling, and the remedy. Any thread. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* Whether this kernel is of that release or a later one. */
bool kernel_support_since(unsigned int major, unsigned int minor);

/* 0 where this kernel has what sampling needs; -ENOTSUP or an errno with cause and remedy. */
int kernel_support_check(struct error *err);

/* Explains that the programs did not load: returns `code`, with cause and remedy. */
int kernel_support_explain(struct error *err, int code);

/* Whether walks may be one loop (bpf_loop): Linux 5.17. Asked by loading a program; true also where
 * nothing may be loaded. */
bool kernel_support_loop(void);

/* Whether a program that has functions may call another by tail call; asked by loading one. False
 * before Linux 6.0 on arm64, whose JIT could not do both, and where nothing may be loaded. */
bool kernel_support_tail_calls(void);
