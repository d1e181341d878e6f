/* SPDX-License-Identifier: Apache-2.0 */
/* The privileges of this process. */
#ifndef PROC_PRIVILEGES_H
#define PROC_PRIVILEGES_H

/* For good: gives up every capability, and whatever exec could grant. For a process with one
 * thread. 0 or a negative errno; then nothing is sure. */
int privileges_drop(void);

#endif
