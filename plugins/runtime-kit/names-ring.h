/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that takes records out of a ring of the BPF program (BPF_MAP_TYPE_RINGBUF) as soon as
 * they come. A ring that is read once in an interval is full within a second on a busy node.
 *
 * The program submits with flags 0, so that the kernel wakes the thread when it has read all that
 * was there before. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct names_ring;

/* A record, untrusted and not aligned beyond 8 bytes, on the thread, or within
 * names_ring_drain(), never both at once. The ring waits meanwhile, and so do those who close it:
 * what reads of processes here is told to end before (target_reader_end()). */
typedef void (*names_ring_fn)(void *context, const void *record, size_t n);

/* Starts the thread, which calls `take` for each record. `thread_name` has at most 15 bytes. 0 or a
 * negative errno. */
int names_ring_open(int map_fd, const char *thread_name, names_ring_fn take, void *context,
		    struct names_ring **ret);

/* Ends the thread, after the record that it has at hand. NULL is accepted. */
void names_ring_close(struct names_ring *r);

/* Takes what has been reported, on the caller's thread, in some 0.15 s and a record at most: it
 * gives up where the ring's thread has a record at hand for long, and stops where there are too
 * many. Any thread but within `take`. */
void names_ring_drain(struct names_ring *r);
