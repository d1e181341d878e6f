/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that a process is confined to (Landlock, kernels from 5.13 on that have it switched on).
 * Not for what samples: a confined process may look at no process outside, whatever capability it
 * has. */
#pragma once

/* For good, for a process with one thread and no_new_privs: it reads what lies beneath `readable`,
 * makes, writes and removes files and folders beneath `writable`, and opens, makes, renames and
 * executes nothing else, whatever its user may do. Listens on no TCP port (kernels from 6.7 on);
 * sends no signal to a process outside, and reaches no abstract socket there (6.12). What is open
 * stays open. Lists end with NULL; paths that are absent are left out.
 *
 * 0; -EOPNOTSUPP: there is no Landlock here (the kernel's, or a container's filter refuses it), and
 * nothing has changed; else a negative errno. */
int landlock_confine(const char *const *readable, const char *const *writable);
