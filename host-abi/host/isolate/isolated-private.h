/* SPDX-License-Identifier: Apache-2.0 */
/* An isolated component as its files share it: isolated.c has what the host calls, process.c the
 * life of the process, answers.c what it says, holdings.c the batches that it has. Everything runs
 * within the instance's strand. Private to host/isolate. */
#pragma once

#include "base/vec.h"
#include "host/isolate/isolated.h"
#include "host/isolate/message.h"
#include "host/state.h"

/* Between two processes: doubled each time up to the second, and from the first again where one
 * lived longer than that. */
#define ISOLATE_FIRST_NS NS_PER_SEC
#define ISOLATE_LAST_NS  (60 * NS_PER_SEC)

/* Messages that answer one batch: what it sends on, counts, and that it is done; and one more. */
#define ISOLATE_ANSWERS 4

/* A batch that it has, or is to get again. */
struct holding {
	const struct andiron_batch *batch;
	uint64_t left; /* samples that are not settled */
	bool given;    /* to the process that runs */
};

struct isolated {
	struct andiron_component component; /* the stand-in */
	const struct andiron_component *of;
	struct instance *instance;
	bool forwards; /* what it is given goes on to others */
	struct buf arguments;
	struct isolate_packet *packet;

	int socket, pidfd; /* -1: none runs */
	int dying;         /* the one before, which has not ended yet; -1: it has */
	uint64_t watch, timer;
	bool ready;    /* it has started */
	bool in_hand;  /* it has not come back from the last batch */
	bool drains;   /* the host drains it ... */
	bool told;     /* ... and it knows */
	bool ended;    /* it has said so: it was drained */
	bool stopping; /* there is to be none any more */
	/* The last batch, or targets, could not be handed over, to it or from it: that was said. */
	bool short_to, short_from;
	char why[400]; /* it could not start */
	int64_t started_ns, due_ns, next_ns, wait_ns;
	uint64_t n_starts, n_lost;

	VEC(struct holding) holdings; /* in the order in which they were given */
	uint64_t held_bytes;
	uint64_t forgotten;     /* samples of batches that cannot be given again */
	bool holds_queue, lost; /* lost: what the queue waits for */
	uint64_t number;        /* of the batch given last */
	struct buf targets;     /* that it is to be given */
	uint64_t taken;         /* bytes of targets in this turn */
	/* Samples of the process that runs: given to it, passed on, settled; and what the last one
	 * has left in its store. */
	uint64_t given, passed, settled, left;
	struct isolate_counts counts;
	struct buf metrics;
	int64_t window_ns;                     /* of what it says too much */
	uint64_t n_messages, n_lines, n_asked; /* n_asked: batches given */
	uint64_t heard[]; /* of each export: what its targets come to since its last snapshot */
};

/* process.c: starts one: 0, or why there is none. */
int isolated_start(struct isolated *p);
/* Ends it; how it was is in ret_how. One that waits in the kernel and cannot be killed is waited
 * for a tenth of a second; this instance starts no next one before it is gone. */
void isolated_close(struct isolated *p, char *ret_how, size_t n);
/* Whether the one before has not ended. */
bool isolated_is_dying(struct isolated *p);
/* What is in the store of one that has ended. */
uint64_t isolated_stored(const struct isolated *p);
/* The sentence for it. */
void isolated_reason(const struct isolated *p, int code, const char *how, char *ret, size_t n);
/* Sets the one timer. */
void isolated_arm(struct isolated *p);
/* After what came of a step, `r`: gives what waits, and sets the timer; or it is broken. */
void isolated_go_on(struct isolated *p, int r);
/* Watches the process that runs; 0 or a negative errno. */
int isolated_watch(struct isolated *p);

/* answers.c: does what the messages say that are there: 0, or what is wrong. */
int isolated_read(struct isolated *p);

/* holdings.c: keeps a batch, to be given. -ENOMEM: it was dropped and counted. */
int holdings_add(struct isolated *p, const struct andiron_batch *batch);
/* Gives the next batch, or has the queue go on; tells of the drain. 0, or what is wrong. */
int holdings_pump(struct isolated *p);
/* So many more samples are settled. */
void holdings_settle(struct isolated *p, uint64_t samples);
/* The process has ended: drops what that loses under this reason. */
void holdings_lose(struct isolated *p, struct str reason);
/* Drops all. */
void holdings_clear(struct isolated *p, struct str reason);
/* Tells the ledger what is in flight. */
void holdings_show(struct isolated *p);
/* Samples that it has settled for good, by these counts. */
uint64_t isolated_out(const struct isolated *p, const struct isolate_counts *counts);
void isolated_count(struct isolated *p, uint32_t entry, struct str reason, uint64_t samples);
/* Drops samples that this process could not hand over, and says so unless that was said. */
void holdings_unhanded(struct isolated *p, int code, uint64_t samples, bool *said);
