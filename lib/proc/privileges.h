/* SPDX-License-Identifier: Apache-2.0 */
/* The privileges of this process. */
#pragma once

/* For good: gives up every capability, and whatever exec could grant. For a process with one
 * thread. 0 or a negative errno; then nothing is sure. */
int privileges_drop(void);
