/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel side sends of processes and their stacks, taken in two steps. A record is
 * looked at as soon as it can be: its process is found, matched, and asked what it has mapped, all of which
 * takes microseconds and may be too late milliseconds on. Then it is dealt with, in the
 * order in which records came: files are read, and stack snapshots are walked. Reading the files of one
 * process can take longer than another one lives, so it looks at what has come meanwhile again and
 * again (news_look_meanwhile), which deals with nothing. For half of the time: where records come as fast as they are looked
 * at, the files that would end this would never be read. Stacks that can be walked without what is being read (file-unwind.h) are, and
 * so do not wait: where a compiler begins they would by the hundred, with hundreds of KiB each.
 *
 * Where threads list themselves what is mapped (bpf/task-work/deferred-snapshot.h), the list of a new process comes right behind the report of it and
 * says all, most of the time. So processes are asked in the second step there, if they have to be at all: asking
 * all of them took a third of the agent's time.
 *
 * Stacks need no second step, except those of a buffer that is being read: they would move under the reader.
 */
#ifndef EBPF_SAMPLES_EVENT_INTAKE_H
#define EBPF_SAMPLES_EVENT_INTAKE_H

#include "ebpf/unwinding/stack-copies.h"
#include "ebpf/processes/target-match.h"
#include "ebpf/options.h"
#include "ebpf/processes/process.h"
#include "ebpf/kernel/session.h"
#include "ebpf/kernel/sample-table.h"
#include "ebpf/unwinding/unwinder.h"

struct news_record;

struct news {
	/* Borrowed. */
	const struct ebpf_options *options;
	struct matcher *matcher;
	struct processes *processes;
	struct stacks *stacks;   /* SAMPLER_BUFFERS */
	struct session *session; /* NULL: none sends, and nothing waits */
	struct walks *walks;
	bool defer_snapshots; /* as in session_info */
	size_t bytes_max; /* behind so much no snapshot waits: its stack ends where the kernel's own walk did, and says so.
			   * Where a compiler begins they come by the megabyte, and who comes after is looked at all the same.
			   * Behind twice as much nothing does */

	uint32_t reading; /* the buffer that is being read; SAMPLER_BUFFERS: none */
	bool meanwhile; /* files are being read: what can be walked without them need not wait */
	int64_t next_look; /* while they are; clock_mono's */
	struct copies copies;
	struct news_record *first, *last; /* looked at, and not dealt with */
	size_t bytes;                     /* of these */
	/* Since the beginning: */
	uint64_t n_processes; /* reports of processes */
	uint64_t n_left_out;  /* snapshots */
};

#define NEWS_BYTES_MAX ((size_t)32 << 20) /* for bytes_max, in the agent's budget */

/* A session_record_fn, of which `context` is the news: looks at a record and keeps it. */
void news_record(void *context, const void *record, size_t size);

/* Finds the target of a process; in the way, what is needed to know it. */
void news_match(struct news *n, struct process *p);

/* Looks at what the ring has. Not within news_record. */
void news_look(struct news *n);
/* The same while files are read, as often as they like: for 10 ms at most, and after as long as the last look took. */
void news_look_meanwhile(struct news *n);

/* Deals with what was looked at, and with what comes while it does, until nothing waits. Not within itself. */
void news_deal(struct news *n);

/* Ends an interval: gives memory back. */
void news_rest(struct news *n);

/* Forgets what waits. */
void news_clear(struct news *n);

#endif
