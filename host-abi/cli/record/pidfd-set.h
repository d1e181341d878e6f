/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for processes to end, as one descriptor. A pidfd stays readable once its process has
 * ended, which would keep a level-triggered loop spinning; here each speaks once. */
#pragma once

#include "base/vec.h"

#include <stdint.h>
#include <sys/types.h>

struct ends {
	int fd;         /* readable when some process has ended; -1: none was added */
	VEC(int) owned; /* pidfds */
	size_t n_left;  /* processes that have not ended */
};

#define ENDS_NULL ((struct ends){.fd = -1})

void ends_fini(struct ends *ends);

/* Adds a process: 0, or a negative errno (-ESRCH: there is none). */
int ends_add(struct ends *ends, pid_t pid);

/* Takes what has ended since, and returns how many are left. */
size_t ends_take(struct ends *ends);
