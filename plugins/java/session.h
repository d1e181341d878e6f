/* SPDX-License-Identifier: Apache-2.0 */
/* One JVM that is profiled, as a machine of short steps: a step does what can be done at once, on a
 * worker, and says what it waits for: a time, and perhaps a socket. So a JVM that never answers
 * costs a timer and no thread.
 *
 *   idle → (an earlier agent's recording is stopped →) start → runs → stop, take → start …
 *
 * async-profiler is told to stop by itself GRACE after the interval's end: an agent that is killed
 * leaves no JVM profiling for longer. */
#pragma once

#include "java/attach/attach.h"
#include "java/attach/folder.h"
#include "java/attach/jvm.h"
#include "java/settings.h"

#include <stdbool.h>
#include <stdint.h>

#define SESSION_GRACE_NS   (30 * NS_PER_SEC)
#define SESSION_CONNECT_NS (10 * NS_PER_SEC) /* from SIGQUIT until the JVM listens */
#define SESSION_ANSWER_NS  (30 * NS_PER_SEC)
#define SESSION_BROKEN_NS  (10 * NS_PER_SEC) /* from a broken connection until it is a refusal */

enum session_phase {
	SESSION_IDLE,    /* nothing is held; to be begun when it is due */
	SESSION_CONNECT, /* a command waits for the JVM to listen */
	SESSION_ANSWER,  /* a command waits for its answer */
	SESSION_RUNS,    /* profiling */
	SESSION_BROKEN,  /* the connection broke: is the JVM ending? */
};

enum session_command { SESSION_CLEAR, SESSION_START, SESSION_STOP };

struct session {
	/* Set by the owner between steps. */
	uint32_t pid;
	struct settings *settings; /* of the next start */
	bool closing;              /* stop what runs, take it, and leave nothing */
	bool ended;                /* the pidfd says that the JVM has ended */

	/* Said by a step. */
	enum session_phase phase;
	int64_t due_ns;         /* CLOCK_MONOTONIC: the next step, at the latest */
	int wait_fd;            /* the next step, if this is readable; -1: none */
	bool attached;          /* the JVM's folder is open */
	bool running;           /* profiling was begun, and not ended by us */
	bool foreign;           /* no JVM: news for whoever asks, not for the log */
	bool failed;            /* this step has, or the recording that it took */
	bool no_library;        /* the reason is the library, not the JVM */
	struct error why;       /* code 0: nothing is wrong */
	struct buf recording;   /* taken, for the owner to send and free */
	int64_t from_ns, to_ns; /* of the recording, CLOCK_REALTIME */
	int64_t sample_rate;

	/* Its own. */
	enum session_command command;
	struct jvm jvm;
	struct folder folder;
	struct attach attach;
	int pidfd;
	int64_t deadline_ns; /* of the phase */
	int64_t began_ns, interval_ns;
	unsigned int failures; /* since profiling went well */
};

/* Takes a reference of the settings. Due at once. */
void session_init(struct session *s, uint32_t pid, struct settings *settings);
/* Closes what is open, and removes its files. What a running JVM still records ends by its own time
 * limit. */
void session_fini(struct session *s);

/* One step. [worker], not two of one session at once; some ms, and a copy of the library at the
 * first. While `closing`, it is over when it is not `attached` any more. */
void session_step(struct session *s);
