/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heap of a process that runs for months and is idle for most of it: what is freed goes back to the kernel.
 */
#ifndef CLI_MALLOC_TUNING_H
#define CLI_MALLOC_TUNING_H

/* Before there are threads; for the whole process, hence the command's to say and no library's. */
void heap_keep_small(void);

#endif
