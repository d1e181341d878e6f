/* SPDX-License-Identifier: Apache-2.0 */
/* The privileges of this process: Linux capabilities, as masks with bit CAP_x set. */
#pragma once

#include <stdint.h>
#include <stdbool.h>

#define PRIVILEGE(capability) ((uint64_t)1 << (capability))

/* What this thread may use, now or after raising it (the permitted set). [any] */
uint64_t privileges_held(void);

/* The capability of a name such as "CAP_BPF"; -1: this text knows none of that name. */
int privilege_number(const char *name);
/* Its name, "CAP_BPF". `capability` is one that privilege_number gives. */
const char *privilege_name(int capability);

/* What this thread uses from now on; the rest can be raised again. -errno: nothing has changed. */
int privileges_use(uint64_t mask);

/* For good: this process, and whatever it executes, has no capability but those of `mask` that it
 * holds, and no program gives it new ones (no_new_privs). The bounding set is cut down too where
 * that is allowed (CAP_SETPCAP); elsewhere no_new_privs makes it void. For a process with one
 * thread. 0, when the kernel confirms it; else a negative errno, and then nothing is sure: -EBUSY
 * if there are more threads. */
int privileges_keep(uint64_t mask);

/* privileges_keep of none, where more threads are none of ours: for a process that parses untrusted
 * bytes. */
int privileges_drop(void);
