/* SPDX-License-Identifier: Apache-2.0 */
/* Executable mappings of a process as lines of /proc/PID/maps. PROCMAP_QUERY (Linux 6.11) asks for
 * them one by one: of thousands of mappings a few dozen are executable. Reading the whole text
 * holds the lock that the process needs for mmap and page faults. So, without the ioctl, a process
 * is not read again for PROCMAP_PACE times the last reading: it loses at most 1 %.
 *
 * Sources: include/uapi/linux/fs.h of Linux 6.11; proc(5). */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* One for all processes; zero-initialised. */
struct procmap {
	bool text_only; /* the kernel does not know the question */
	uint64_t asked; /* a hash of the last reading's answers without names; 0: it was a text */
	uint64_t n_texts, n_deferred;
};

/* One for each process; zero-initialised. */
struct procmap_pace {
	int64_t next_ns; /* CLOCK_MONOTONIC; not before */
};

#define PROCMAP_PACE 100

/* Appends the lines of what is executable in the process of which `dir` is the directory in /proc,
 * at most `max` bytes; where only the text is to be had, those of all its mappings. -EAGAIN: its
 * text was read too short a time ago; -E2BIG: there is more (what fits is there); else a negative
 * errno (-ESRCH: it has no memory any more). One ioctl per mapping, or one read of the text. */
int procmap_read(struct procmap *t, struct procmap_pace *pace, int dir, struct buf *text,
		 size_t max);

/* Whether answers are as in a reading of that hash, which is not 0. A file's name may be another by
 * now. Costs half of a reading: without names, and without lines. */
bool procmap_is(const struct procmap *t, int dir, uint64_t asked);
