/* SPDX-License-Identifier: Apache-2.0 */
/* A strand: jobs that run one after the other, in the order of submission, whatever thread each of
 * them runs on. Every component has one, which is how its calls are serial without a lock that the
 * loop could block on.
 *
 * A job has a heavy part (on a worker), a light part (on the loop), or both, heavy first. It is
 * embedded in what it belongs to and is not touched after its last part has begun, so that part may
 * free it. */
#pragma once

#include "host/flow/loop.h"
#include "host/flow/worker.h"

struct job {
	struct job *next;
	void (*heavy)(struct job *job);
	void (*light)(struct job *job);
};

struct strand {
	pthread_mutex_t lock;
	struct loop *loop;
	struct workers *workers;
	struct job *jobs, **tail;
	struct job *current;
	bool busy;
	bool closed;
	size_t n_holds;
	struct loop_task on_loop;
	struct worker_task on_worker;
};

void strand_init(struct strand *s, struct loop *loop, struct workers *workers);
void strand_fini(struct strand *s);

/* Runs the job when all before it have. False if the strand is closed: then nothing happens. A job
 * must not be submitted again before its last part has begun. [any], O(1). */
bool strand_submit(struct strand *s, struct job *job);

/* Takes a job back that has not begun; false if it has. O(jobs). [loop] */
bool strand_cancel(struct strand *s, struct job *job);

/* Keeps the strand from closing until it is released; false if it is closed. [any] */
bool strand_hold(struct strand *s);
void strand_release(struct strand *s);

/* Whether somebody keeps it from closing. [any] */
bool strand_held(struct strand *s);

/* Submits a last job and closes; false if it is held. [any] */
bool strand_close(struct strand *s, struct job *last);

/* Enters the strand if it is idle, for a call on the loop thread itself. strand_leave must follow.
 * [loop] */
bool strand_enter(struct strand *s);
void strand_leave(struct strand *s);

/* Whether nothing runs or waits. [any] */
bool strand_idle(struct strand *s);
