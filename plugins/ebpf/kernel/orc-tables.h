/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's own ORC tables, by which its stack is unwound: bpfwire/kernel-tables.h. */
#pragma once

#include "bpfwire/kernel-tables.h"

#include <stdbool.h>
#include <stdint.h>

/* The tables by the addresses of KERNEL_SYMBOLS symbols, 0 for one that there is not. False, and
 * *ret is as it was: they are not there (another unwinder, another machine), hidden from us, or not
 * as they are expected. */
bool orc_make(const __u64 *symbols, struct kernel_tables *ret);

/* Whether orc_tables may have an answer here; asked of the kernel's version only. */
bool orc_may_be_known(void);

/* Those of this kernel; all zero if hidden or of another format by its BTF. Some 20 ms. */
struct kernel_tables orc_tables(void);

/* Writes them where programs read them that run already. */
void orc_show(volatile struct kernel_tables *to);
