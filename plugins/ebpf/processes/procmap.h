/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executable mappings of a process as lines of /proc/PID/maps, without its reading the whole of
 * it where the kernel can be asked for them one by one (PROCMAP_QUERY, Linux 6.11). A process of
 * thousands of mappings has a few dozen that are executable; and reading the text holds the lock
 * that the process needs to map memory or to take a page fault.
 *
 * Where only the text can be read, each process is left alone for a hundred times as long as
 * the last reading took, so that it loses at most one per cent to us.
 *
 * Source of the ioctl: include/uapi/linux/fs.h of Linux 6.11; of the format: proc(5).
 */
#ifndef EBPF_PROCESSES_PROCMAP_H
#define EBPF_PROCESSES_PROCMAP_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* One for all processes; zero-initialised. */
struct procmap {
	bool text_only; /* the kernel does not know the question */
	uint64_t n_queries, n_texts, n_deferred;
};

/* One for each process; zero-initialised. */
struct procmap_pace {
	int64_t next_ns; /* CLOCK_MONOTONIC; not before */
};

#define PROCMAP_PACE 100

/*
 * Appends the lines of what is executable in the process of which `dir` is the directory in /proc,
 * at most `max` bytes; where only the text is to be had, those of all its mappings.
 * -EAGAIN: its text was read too short a time ago; -E2BIG: there is more (what fits is there); else
 * a negative errno (-ESRCH: it has no memory any more). One ioctl per mapping, or one read of the
 * text.
 */
int procmap_read(struct procmap *t, struct procmap_pace *pace, int dir, struct buf *text,
		 size_t max);

#endif
