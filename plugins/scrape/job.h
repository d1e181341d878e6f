/* SPDX-License-Identifier: Apache-2.0 */
/* What the scraper is made of: targets, a job for each profile of a target, and a flight for each
 * request and its answer. Private to scraper.c, targets.c and judge.c.
 *
 * All is under the component's strand, except flights that a worker is judging: these are the
 * worker's, with their job's totals, until judge.c has them back. A job that goes meanwhile leaves
 * its flight behind, which then owns the totals. */
#pragma once

#include "base/index.h"
#include "base/sha256.h"
#include "client/loop.h"
#include "http/due-heap.h"
#include "scrape/answer.h"
#include "scrape/scraper.h"

#define STATE_UNKNOWN 0
#define STATE_UP      1
#define STATE_DOWN    2

struct target {
	struct target_row *row; /* the table's */
	struct job **jobs;      /* one for each kind; NULL: a twin's, or it cannot be asked */
	uint32_t n_jobs;
	bool has_twins; /* another target has the same URL and labels for some kind */
	uint32_t at;    /* in the scraper's array */
	char *fault;    /* why it cannot be asked */
};

/* Identity is that of endpoint.h, by which a job outlives changes of settings and targets. */
struct job {
	struct due due; /* first */
	bool late;      /* it is in the heap of the late */
	struct target *target;
	uint32_t kind;
	uint32_t at; /* in the scraper's array */
	unsigned char identity[SHA256_BYTES];
	struct flight *flight;
	struct totals *totals;
	size_t totals_bytes; /* as of the last answer */
	int state;
	int64_t scraped_ns; /* CLOCK_REALTIME */
	char *why;          /* the last error; NULL: it is up, or unknown */
};

struct flight {
	struct flight *next;
	struct scraper *scraper;
	struct job *job; /* NULL: it is gone */
	uint64_t request; /* 0: answered */
	int totals_kind;
	struct totals *totals; /* the job's, or its own if there is no job */
	struct buf body, send;
	int64_t started_ns, ended_ns; /* CLOCK_REALTIME */
	uint64_t held; /* bytes of `body` that are counted as held */
	bool doubtful; /* the last one failed */
	bool refused;  /* too much is held */
	int result;    /* of judging; 1: nothing to send */
	struct profile_size size;
	char *why; /* NULL: none, or no memory for it */
};

struct scraper {
	struct abi_context context;
	struct settings *settings;
	struct client_loop *loop;
	struct target_table *table;
	VEC(struct target *) targets;
	VEC(struct job *) jobs;
	struct index by_identity;
	struct due_heap heap, late; /* late: due, and fewer of those that fail may be under way */
	uint64_t timer;
	int64_t timer_ns; /* when it fires */
	struct flight *queue, **queue_end; /* answers to be judged */
	struct flight *judging;
	struct buf scratch; /* the worker's */
	size_t totals_room; /* the worker's: what may still be kept of TOTALS_MAX_BYTES */
	uint32_t max_in_flight, n_doubtful; /* n_doubtful: of those that are under way */
	uint32_t max_kept; /* targets whose connections are kept */
	uint64_t held;     /* bytes of answers */
	uint64_t sequence; /* of batches */
	uint32_t logged;   /* lines of the current interval */
	int64_t logged_ns;
	int64_t repair_ns; /* when what memory was short for is made again; 0: nothing is missing */
	size_t failing_at, faulty_at; /* of those that health names, if they still are that */
	bool stopped, draining;
	bool missed; /* an update of the targets was not taken */
	struct scraper_counts counts;
};

/* targets.c */

/* Makes the jobs of all targets anew by the settings; those that stay what they are go on. */
void targets_rebuild(struct scraper *s);
void targets_free(struct scraper *s);
/* Makes what memory was short for, and asks for targets that could not be taken. O(targets). */
void targets_repair(struct scraper *s);
void job_free(struct scraper *s, struct job *job);

/* scraper.c */

/* Memory is short: something is missing until targets_repair, which is soon. */
void scraper_lacks(struct scraper *s);
/* Puts a job at its next time. */
void scraper_schedule(struct scraper *s, struct job *job);
/* Takes it out of its place in time, if it has one. */
void scraper_unschedule(struct scraper *s, struct job *job);
/* Sees that the timer fires when something is due. */
void scraper_arm(struct scraper *s);
/* Says how the component is. */
void scraper_say(struct scraper *s);
/* An answer is judged, or there was none: `flight` is used up. */
void scraper_landed(struct scraper *s, struct flight *flight);
/* Ends a flight whose job goes. */
void scraper_abandon(struct scraper *s, struct job *job);

/* judge.c */

/* Hands an answer to the worker, soon. */
void judge_add(struct scraper *s, struct flight *flight);
/* Begins, if there is something and nothing is being judged. */
void judge_begin(struct scraper *s);
