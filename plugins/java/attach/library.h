/* SPDX-License-Identifier: Apache-2.0 */
/* async-profiler's library, which the user provides: found, looked at, and read. It runs in other
 * programs with their rights, so a file is refused that others than root and the agent's user may
 * write, or replace in one of the folders above it. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>

#define LIBRARY_NAME "libasyncProfiler.so"

struct library {
	char path[256]; /* without links */
	struct buf bytes;
	uint16_t machine; /* ELF's e_machine */
	dev_t device;
	ino_t inode;
};

/* Finds it by `dist`, which is a folder of a release or the file, and reads it; empty: in the usual
 * places. 0, to be followed by library_free; -ENOENT: there is none, with what to do; -EPERM,
 * -EINVAL or another errno, with why it is not taken. Some ms. */
int library_load(struct library *ret, struct str dist, struct error *err);
void library_free(struct library *l);

/* e_machine of an ELF file of 64 bits; 0 where it is none or cannot be read. */
uint16_t library_machine(const char *path);
