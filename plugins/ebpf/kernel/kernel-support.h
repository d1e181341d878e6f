/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel support: why this kernel cannot be sampled, and the remedy. Any thread. */
#ifndef EBPF_KERNEL_KERNEL_SUPPORT_H
#define EBPF_KERNEL_KERNEL_SUPPORT_H

#include "base/error.h"

/* 0 where this kernel has what sampling needs; -ENOTSUP or an errno with cause and remedy. */
int kernel_support_check(struct error *err);

/* What it means that the kernel did not load the programs, for `code`: returned with cause and remedy. */
int kernel_support_explain(struct error *err, int code);

#endif
