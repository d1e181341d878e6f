/* SPDX-License-Identifier: Apache-2.0 */
/* libandiron-host: runs a plan. One epoll loop on the caller's thread, a few workers for what
 * computes or blocks, and for each component a strand, so that it is called serially. See loop.h,
 * strand.h, scheduler.h, ledger.h.
 *
 * Everything here is for the thread that calls host_run, unless marked [any]. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "host/plan.h"

#include <stdbool.h>
#include <stdint.h>

struct host;

struct host_options {
	uint32_t log_level; /* ANDIRON_LOG_* */
	uint32_t log_format; /* enum log_format of host/report/log.h */
	int log_fd;         /* usually 2 */
	/* Gets the log in place of log_fd, line by line: the message with its keys and values,
	 * without time and level. Not under a lock. [any] */
	void (*log)(void *context, uint32_t level, const char *component, const char *line);
	unsigned int workers;    /* 0: 2 */
	int64_t drain_ns;        /* deadline of the whole drain; 0: 10 s */
	uint64_t queue_bytes;    /* bound of each consumer's queue; 0: 64 MiB */
	const char *status_path; /* unix socket for metrics and health; NULL: none */
	int kernel_symbols; /* /proc/kallsyms, opened by who may see addresses; the host closes it.
			     * 0: it is opened when it is needed */
	bool keep_targets;       /* of all exports, to be looked at (inspect.h) */
	bool without_services;   /* components run also where an extension they need is not there */
	/* The program that runs components in a sandbox, as `andiron worker FILE COMPONENT`
	 * (host/services/sandboxed-worker.h); an absolute path. NULL: there are no such processes,
	 * and components that want one do without. */
	const char *worker;
	int64_t isolate_call_ns; /* how long a call into a process of its own may take; 0: 30 s */
	/* Called once, on the loop, when every node has started, or failed to (then `failed` names
	 * those that did). May call host_stop. */
	void (*live)(void *context, const char *failed);
	/* Reads the configuration again and calls host_reload: its result, and in a sentence why
	 * it was refused. On the loop, outside of any component. NULL: nobody does. */
	int (*reload)(void *context, struct error *err);
	/* Makes a plan anew of the configuration that runs, with host_supplied, and calls
	 * host_reload: its result. On the loop, outside of any component. NULL: values that
	 * components supply reach nobody, so a plan that waits for one is refused. */
	int (*refresh)(void *context);
	void *context; /* of these functions */
};

int host_new(const struct host_options *options, struct host **ret, struct error *err);
/* Stops and destroys what is left. */
void host_free(struct host *host);

/* Makes the plan's instances and wires them; takes the plan over (also on failure). On failure
 * nothing of it is left. Called once before host_run. */
int host_load(struct host *host, struct plan *plan, struct error *err);

/* Changes the running graph to another plan: same id and component → update (a new instance where
 * it cannot), gone → drained and destroyed, new → made. All or nothing: on failure the old plan
 * goes on. Takes the plan over. */
int host_reload(struct host *host, struct plan *plan, struct error *err);

/* plan_loses of the plan that runs and another. */
const struct plan_waiting *host_would_lose(const struct host *host, const struct plan *plan);

/* What components have supplied, for plan_build_with; borrowed until the loop goes on. */
const struct supplied *host_supplied(const struct host *host);

/* From here on the log is written so: a level, and an enum log_format. */
void host_log_change(struct host *host, uint32_t level, uint32_t format);

/* A configuration was tried: from here on the metrics say whether the last one was taken, when one
 * was, and how many were refused. What was not taken need not have reached host_reload. */
void host_note_configuration(struct host *host, bool taken);
/* Likewise whether a changed one waits for a value. */
void host_note_waiting(struct host *host, bool waits);

/* Starts everything (consumers first) and serves until host_stop; then drains producers before
 * consumers and stops. 0, or -EIO if a component failed to start (the others ran all the same). */
int host_run(struct host *host, struct error *err);

/* Ends host_run: drain, then return. A second call skips what is left of the drain. [any],
 * async-signal-safe. */
void host_stop(struct host *host);

/* Calls fn on the loop thread every `every_ns` (0: once) / when fd is readable, while host_run
 * runs; for the command line's progress bar, signals and children. 0 or negative errno. Both live
 * as long as the host. */
int host_timer(struct host *host, int64_t after_ns, int64_t every_ns, void (*fn)(void *context),
	       void *context);
int host_watch(struct host *host, int fd, void (*fn)(void *context), void *context);

/* The ledger, whole: totals and, for each writer, its row. */
struct ledger_reason {
	const char *component; /* "" for skipped */
	const char *reason;
	uint64_t samples;
};
struct ledger_writer {
	const char *component;
	uint64_t carried, delivered, spooled, uncertain, in_flight, dropped;
	const struct ledger_reason *reasons;
	size_t n_reasons;
};
struct ledger_view {
	uint64_t taken;
	const struct ledger_reason *skipped;
	size_t n_skipped;
	const struct ledger_writer *writers;
	size_t n_writers;
};

/* As it is now; borrowed until the next call. */
const struct ledger_view *host_ledger(struct host *host);
/* As JSON, in the shape of docs/ledger.md; 0 or -ENOMEM. */
int host_ledger_json(struct host *host, struct buf *out);
/* As one line for people. */
int host_ledger_line(struct host *host, struct buf *out);

/* Prometheus text of all metrics; health of all components as JSON. */
int host_metrics(struct host *host, struct buf *out);
int host_health_json(struct host *host, struct buf *out);
/* All components in the form of Alloy's /api/v0/web/components: 0 or -ENOMEM. [loop], O(components
 * and edges). */
int host_components_json(struct host *host, struct buf *out);
/* One of them, with its arguments and exports (alloy-values.h): 0, -ENOENT, -ENOMEM. [loop] */
int host_component_json(struct host *host, struct str id, struct buf *out);
/* Targets with their processes, in the shape of docs/targets.md: 0; -EBUSY when a component cannot
 * answer now (ask again); -ENOMEM. [loop] */
int host_targets_json(struct host *host, struct buf *out);

/* The value of one metric of one component, NAN if there is none. */
double host_metric(struct host *host, const char *component, const char *name);
