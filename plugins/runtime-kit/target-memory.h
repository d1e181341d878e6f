/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of target processes, read with bounds on time, number and bytes.
 *
 * A read of another process waits for the owner of the page, which may be a file system in user
 * space that never answers. So a thread makes the reads (reader-thread.h). One that takes longer
 * than TARGET_DEADLINE_MS is left behind with its thread, and another thread serves the others. The
 * process is not read as long as that lasts, nor once it has been waited for TARGET_WAITS_MS in a
 * minute. Both hold for the process, also where it is opened again.
 *
 * The descriptor of /proc/PID/mem holds the address space that the process had when it was opened:
 * after its end, an exec or a reuse of its pid nothing is read any more, and never another's.
 *
 * Reads go through copies of blocks of 4 KiB, so that small reads beside each other cost one read.
 * What is to be seen as it is now needs target_reader_refresh() before.
 *
 * Every byte may be forged, and half of it older than the other half. One thread at a time for a
 * reader and its memories, but for what is marked [any]. */
#pragma once

#include <andiron/runtime.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TARGET_DEADLINE_MS 500u        /* less, once all have been waited for 5 s in a minute */
#define TARGET_WAITS_MS    1000u       /* in a minute, by processes that sleep over a read */
#define TARGET_PATIENCE    3u          /* a patient reader waits so many times as long */
#define TARGET_STUCK_MAX   128u        /* threads left behind; beyond, no process is read */
#define TARGET_READS       50000u      /* of one process in a second */
#define TARGET_BYTES       (32u << 20) /* likewise */
#define TARGET_READ_MAX    (16u << 20) /* bytes of one read */

struct target_reader;
struct target_memory;

/* 400 KB and a thread. `patient`: the caller bounds the time that it gives to a process, in a
 * thread of its own. Then reads and bytes are not counted, nor waits that end before the deadline,
 * and all that is waited for is TARGET_PATIENCE times as long. Threads that map memory hold the
 * readers of their process up: sixteen that begin on one CPU have done so for 670 ms at a time.
 * NULL: no memory, or no thread can be made. */
struct target_reader *target_reader_new(bool patient);
/* [any] From now on all reads and opens fail with -ECANCELED: before one waits for a thread that
 * reads. NULL is accepted. */
void target_reader_end(struct target_reader *r);
/* The memories have been closed. NULL is accepted. Waits for no process. */
void target_reader_free(struct target_reader *r);

/* Forgets the copies of blocks: what is read from now on is as it is now. */
void target_reader_refresh(struct target_reader *r);

/* [any] How many threads are left behind in reads that do not end. */
uint32_t target_reader_stuck(struct target_reader *r);

/* [any] The memory that this process has now. 0, -ESRCH if the pid is another one's by now,
 * -ETIMEDOUT if it is not to be waited for at the moment, -EMFILE if half of the descriptors that
 * RLIMIT_NOFILE allows are open memories, -ENOMEM, or open's errno. */
int target_memory_open(struct target_reader *r, const struct andiron_runtime_process *process,
		       struct target_memory **ret);
/* For tests: what stands in a file at its offsets. The descriptor is the memory's from here on. */
int target_memory_of(struct target_reader *r, int fd, struct target_memory **ret);
/* NULL is accepted. */
void target_memory_close(struct target_memory *m);

/* Reads all of [at, at + n), or fails, and `ret` is undefined: -EFAULT if it is not there, -EDQUOT
 * if the process has used up its second, -ETIMEDOUT if it is not to be waited for at the moment,
 * -EAGAIN if too many threads are left behind, or this process has no CPU for seconds. 0.1 us from
 * a copy, some 15 us else. */
int target_memory_read(struct target_memory *m, uint64_t at, void *ret, size_t n);

/* Has blocks copied at once that are about to be read, in this order: n addresses, READER_PIECES at
 * most. It saves a wait for each; each counts as a read of the process, whatever comes of it. */
void target_memory_announce(struct target_memory *m, const uint64_t *at, uint32_t n);

/* A word, which is 0 if it cannot be read. */
uint64_t target_memory_word(struct target_memory *m, uint64_t at);
uint32_t target_memory_word32(struct target_memory *m, uint64_t at);

/* A text into ret[0 … max), ended by a NUL, cut where it is longer or ends within memory that is
 * not there. Its length. */
size_t target_memory_text(struct target_memory *m, uint64_t at, char *ret, size_t max);
