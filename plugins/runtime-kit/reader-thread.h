/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that reads from a descriptor for a caller who waits no longer than a deadline. What the
 * thread does not end until then is left behind: nothing of the caller's is written after it has
 * gone on.
 *
 * The thread has a table of descriptors of its own (from Linux 5.9). So an agent that ends while a
 * read does not still closes what it has: BPF programs, events, ports. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define READER_BYTES  (256u << 10) /* of one request */
#define READER_PIECES 12u          /* likewise */

struct reader_thread;

/* Pieces of `n` bytes each, to be read one after the other. They cost little more than one, since
 * most of its cost is to wake the thread and to be woken. */
struct reader_request {
	int fd;
	uint32_t n_pieces;
	size_t n;
	uint64_t at[READER_PIECES];
};

/* NULL: no memory, or no thread can be made. */
struct reader_thread *reader_thread_new(void);

/* Reads what is requested, at most READER_BYTES in all. 0; -EAGAIN if the thread has not begun
 * within seconds, as this process has no CPU; -ETIMEDOUT if it has, but has not ended `deadline_ms`
 * later: the thread is left behind then, and this is the last call but reader_thread_keep(),
 * _collect() and _free(). */
int reader_thread_read(struct reader_thread *t, const struct reader_request *request,
		       uint32_t deadline_ms);

/* What the last call has read of a piece: *ret_n bytes, 0 if none are there, or a negative
 * errno. */
const unsigned char *reader_thread_piece(const struct reader_thread *t, uint32_t i, ssize_t *ret_n);

/* How long the last call's reads have slept. */
uint64_t reader_thread_slept_ns(const struct reader_thread *t);

/* For a thread that is left behind while `*fd` is read: the thread keeps the descriptor if it has
 * no table of its own, and the caller has a copy, or -1. */
void reader_thread_keep(struct reader_thread *t, int *fd);

/* Frees a thread that is left behind, if its read has ended by now. */
bool reader_thread_collect(struct reader_thread *t);

/* Frees a thread. One that is left behind frees itself when its read ends. NULL is accepted. */
void reader_thread_free(struct reader_thread *t);
