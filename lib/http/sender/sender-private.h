/* SPDX-License-Identifier: Apache-2.0 */
/* A sender as its files share it: sender.c has what its owner asks, answers.c what the process
 * says, process.c its life. Private to lib/http/sender. */
#pragma once

#include "base/error.h"
#include "base/vec.h"
#include "http/client.h"
#include "http/due-heap.h"
#include "http/sender/channel.h"
#include "http/sender/numbered.h"
#include "http/sender/sender.h"

/* A request without its answer. */
struct waiting {
	struct numbered number; /* first */
	struct due deadline;    /* in no heap: it may take for ever */
	struct http_request request; /* functions and bounds */
	char *peer;
	uint64_t last_packet; /* of what was put for it */
	uint64_t last_piece;  /* of its body, as packet */
	bool left, begun;
	uint64_t made, received;
	struct buf body;
	bool given;
	int64_t begun_ns; /* CLOCK_MONOTONIC */
};

struct aside {
	uint32_t type;
	uint64_t id;
	struct buf payload;
};

struct sender {
	struct http_client base; /* first: a client is one of these */
	struct http_loop loop;
	struct http_process process;
	struct channel channel; /* fd -1: no process runs */
	int pidfd;
	int unreaped; /* pidfd of one that was killed and has not ended yet; -1: there is none */
	bool ready; /* it has said that it is confined */
	bool watches_out;
	int broken;        /* why it is to be ended, and is told no more; 0: it is not */
	bool heard_out;    /* what it may still say does not count */
	bool in_turn;      /* ready or timeout runs: what is asked now may be from a callback */
	struct error told; /* what it said of itself */
	char why[200];     /* the last one has ended */
	struct numbered_table requests;
	struct due_heap deadlines;
	VEC(struct aside) aside;
	size_t aside_bytes;
	uint64_t last_id, starts;
	int64_t started_ns, wait_ms, next_ns; /* next_ns: when another is started */
	int64_t silent_ns;                    /* since when a withdrawal has no answer; 0: none */
	int64_t armed_ns;                     /* INT64_MAX: the timer is off */
	/* The process before this one, with the requests that it still makes: it has
	 * what belongs to a process: channel to aside, started_ns and silent_ns. NULL: there is
	 * none. */
	struct sender *former;
	int64_t former_until_ns; /* how long it may take for them */
};

/* process.c: 0, or why there is none. */
int sender_start(struct sender *a);
/* Ends the process and waits for its end, but for no more than a moment: what waits in the kernel
 * ends when it can, and is reaped when the next is started. `leave` gives it a moment to take leave
 * of servers, which is for one that listens. How it ended is in ret_how. What it has said can still
 * be read. */
void sender_stop(struct sender *a, bool leave, char *ret_how, size_t n);
/* The same, unless none runs or that has been done, and forgets what it has said. */
void sender_discard(struct sender *a, bool leave, char *ret_how, size_t n);
/* Reaps the one that was killed if it has ended by now, and forgets it in any case. */
void sender_forget_unreaped(struct sender *a);
/* What `broken` means; `how` is sender_stop's. */
const char *sender_reason(const struct sender *a, const char *how);
/* Sets the time of the next one, and tells the owner. */
void sender_plan_next(struct sender *a, const char *why);
/* Sets the one timer, and watches for room where something waits for it: of the former one, too. */
void sender_arm(struct sender *a);
void sender_clear_aside(struct sender *a);

/* answers.c: a message to the process; failure shows in `broken`. */
void sender_put(struct sender *a, uint32_t type, uint64_t id, struct str payload);
/* Does what a message says: 0, or what is wrong with it. May call the request's functions. */
int sender_handle(struct sender *a, const struct channel_message *m);
struct waiting *sender_find(const struct sender *a, uint64_t id);
/* Whether all of it was given to a process that could send it. */
bool sender_was_given(const struct sender *a, const struct waiting *w);
/* Puts it among the requests, under its id, and takes it out. The first: 0 or -ENOMEM. */
int waiting_link(struct sender *a, struct waiting *w);
void waiting_unlink(struct sender *a, struct waiting *w);
void waiting_free(struct waiting *w);
/* Calls `done` and frees it. */
void waiting_end(struct sender *a, struct waiting *w, int result, bool sent, const char *why);
