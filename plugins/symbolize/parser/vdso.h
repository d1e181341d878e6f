/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's file in every process. */
#pragma once

/* A descriptor of this process's vDSO as a file, to close; the vDSO of every 64-bit process of this
 * kernel has the same bytes. -ENOENT: there is none; -ENOEXEC: it is larger than 64 KiB; or an
 * errno. */
int vdso_open(int *ret_fd);
