/* SPDX-License-Identifier: Apache-2.0 */
/* What `run` and `record` share: a host, signals as events of its loop, and the counts at the end,
 * with the cost of the agent itself. */
#pragma once

#include "base/error.h"
#include "host/host.h"
#include "host/report/log.h"

#include <stdbool.h>

struct session;

struct session_options {
	const char *verb;
	struct host_options host; /* `worker`, `live`, `reload`, `refresh` and `context` are ours */
	/* The counts go here as a line, if machines read it; else plainly to standard error. */
	struct log *log;
	const char *ledger_path; /* JSON goes here at the end; NULL: nowhere */
	void (*live)(void *context, const char *failed);
	int (*reload)(void *context, struct error *err); /* see host.h; NULL: nobody does */
	int (*refresh)(void *context);                   /* likewise */
	void (*signal)(void *context, int number);       /* SIGINT, SIGTERM, SIGHUP; on the loop */
	void *context;
};

/* Blocks the three signals, ignores SIGPIPE and makes the host: from here on there may be threads,
 * so children are forked before. Options are copied, strings borrowed. */
int session_new(const struct session_options *options, struct session **ret, struct error *err);
void session_free(struct session *s);

struct host *session_host(struct session *s);

/* Readable when one of the signals has come, outside of host_run. */
int session_signal_fd(const struct session *s);
/* Takes one signal, 0 if there is none. Echoes are left out. */
int session_next_signal(struct session *s);

struct last_signal {
	int number;
	int64_t at_ns;
};

/* Whether it is the same request to end as half a second before. `timeout` and others that pass
 * signals on send one to the process and one to its group, and nobody has lost patience then.
 * Remembers those that are none. */
bool signal_is_echo(struct last_signal *last, int number, int64_t now_ns);

/* host_load; remembers the node that samples. Takes ownership of the plan. */
int session_load(struct session *s, struct plan *plan, struct error *err);

/* host_run, with the cost counted from the moment all is live. */
int session_run(struct session *s, struct error *err);

/* Prints ledger and cost in one line to standard error and writes the JSON. 0, or -EIO after a
 * message when that could not be written. */
int session_report(struct session *s);

/* Whether a node of the plan needs what sampling needs, so that precheck matters: a sampler, or
 * what follows processes by the kernel's events. */
bool session_samples(const struct plan *plan);
/* Whether a node of the plan is a sampler. */
bool session_has_sampler(const struct plan *plan);
