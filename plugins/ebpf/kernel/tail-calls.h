/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel support for tail calls from programs that have functions. */
#ifndef EBPF_KERNEL_TAIL_CALLS_H
#define EBPF_KERNEL_TAIL_CALLS_H

#include <stdbool.h>

/* Asks the kernel by loading such a program. False before Linux 6.0 on arm64, whose compiler of
 * programs could not do both; also where nothing may be loaded. */
bool tail_calls_work(void);

#endif
