/* SPDX-License-Identifier: Apache-2.0 */
/* The allocations of a plugin, and of nobody else: what its file imports (malloc and its kin) is
 * led to functions of ours, in the plugin's own table of addresses. So the host and the libraries
 * that the plugin calls allocate as ever. One plugin in a process, for the process's life; calls of
 * all its threads are counted. */
#pragma once

#include <stdbool.h>

/* `library` is from dlopen. How many imports were led elsewhere, 0: it allocates nothing itself; or
 * a negative errno. */
int import_hook_install(void *library);

/* Lets the n-th allocation from now on fail, counted from 0; negative: none. */
void import_hook_fail(long n);

/* Whether one has failed since import_hook_fail. */
bool import_hook_failed(void);
