/* SPDX-License-Identifier: Apache-2.0 */
/* The heap of a process that runs for months and is mostly idle: freed memory goes back to the
 * kernel. */
#pragma once

/* To be called before there are threads. It acts on the whole process, so only the command may. */
void heap_keep_small(void);
