/* SPDX-License-Identifier: Apache-2.0 */
/* What the host does for a component. The table is passed to every life cycle function and lives as
 * long as the process. `instance` is the id the component was created with.
 *
 * WHAT A HOST MUST HAVE. All functions up to `extension` are there, in every call but `validate`,
 * whose host has `error_add` and `report_add` at least. What a host does not do it refuses: spawn,
 * watch_add, work and the like with -ENOSYS, extension with -ENOENT. log, health, ledger_add,
 * ledger_set and drained may do nothing. Functions behind `extension` may be absent (abi.h).
 * docs/hosts.md has a table of what each component cannot do without; host-min.h is a host. */
#ifndef ANDIRON_HOST_H
#define ANDIRON_HOST_H

#include <andiron/batch.h>
#include <andiron/target.h>
#include <andiron/value.h>

#ifdef __cplusplus
extern "C" {
#endif

struct andiron_error;  /* a host-owned chain of causes, see error_add */
struct andiron_report; /* a host-owned list of findings, see report_add */

#define ANDIRON_LOG_ERROR 0u
#define ANDIRON_LOG_WARN  1u
#define ANDIRON_LOG_INFO  2u
#define ANDIRON_LOG_DEBUG 3u

#define ANDIRON_HEALTH_UNKNOWN   0u
#define ANDIRON_HEALTH_HEALTHY   1u
#define ANDIRON_HEALTH_UNHEALTHY 2u
#define ANDIRON_HEALTH_EXITED    3u

#define ANDIRON_REPORT_ERROR   0u
#define ANDIRON_REPORT_WARNING 1u

/* Ledger entries, in samples, for each writer W:
 *   taken + carried = delivered + spooled + uncertain + in flight + dropped
 * Each is counted where it happens. Counters are added to; IN_FLIGHT,
 * SPOOLED and UNCERTAIN are levels that are set. DROPPED by a component
 * counts against every writer downstream of it. The host itself counts what
 * waits in its queues and what overflows there. SKIPPED ("idle",
 * "unselected", "missed") stands outside the equation, and so does UNREAD: samples
 * that the kernel holds and the sampler has not read, which a kill would cost. */
#define ANDIRON_LEDGER_TAKEN     1u
#define ANDIRON_LEDGER_SKIPPED   2u /* needs a reason */
#define ANDIRON_LEDGER_DROPPED   3u /* needs a reason */
#define ANDIRON_LEDGER_DELIVERED 4u
#define ANDIRON_LEDGER_CARRIED   5u
#define ANDIRON_LEDGER_IN_FLIGHT 6u /* level */
#define ANDIRON_LEDGER_SPOOLED   7u /* level */
#define ANDIRON_LEDGER_UNCERTAIN 8u /* level */
#define ANDIRON_LEDGER_UNREAD    9u /* level */

#define ANDIRON_WATCH_IN  1u
#define ANDIRON_WATCH_OUT 4u

typedef void (*andiron_call_fn)(void *arg);
typedef void (*andiron_offer_fn)(void *arg, int32_t result);
typedef void (*andiron_watch_fn)(void *arg, int32_t fd, uint32_t events);

/* A child process for `spawn`. argv and envp end with NULL; argv[0] is an absolute path. `input` is
 * written to its standard input. It is killed when deadline_ns (from now) passes. Its standard
 * output and error are collected up to max_output bytes each. */
struct andiron_spawn {
	uint32_t size;
	uint32_t flags;
	const char *const *argv;
	const char *const *envp;
	struct andiron_str input;
	int64_t deadline_ns;
	uint64_t max_output;
};

/* What became of it; `status` as wait(2) gives it, -ETIMEDOUT when it was killed at its deadline.
 * Borrowed for the call. */
struct andiron_spawn_result {
	uint32_t size;
	int32_t status;
	struct andiron_str output;
	struct andiron_str errors;
};

typedef void (*andiron_spawn_fn)(void *arg, const struct andiron_spawn_result *result);

/* An extension offered by the host or by another plugin: its table of functions and the first
 * argument these want. */
struct andiron_extension {
	const void *table;
	void *self;
};

struct andiron_host {
	uint32_t size;
	uint32_t abi_minor;

	/* Adds a cause to `err`, outermost last, and returns `code`, so that a failing function
	 * ends with `return host->error_add(err, -ENOENT, …)`. The text is a full sentence part for
	 * people (what happened, why, what to do), without a trailing newline; it is copied. err
	 * may be NULL. [any], O(len). */
	int32_t (*error_add)(struct andiron_error *err, int32_t code, const char *text,
			     uint64_t len);

	/* Adds a finding to the report of `validate`. `at` says where in the file
	 * (NULL: the whole component). Text is copied. Within validate only;
	 * O(len). */
	void (*report_add)(struct andiron_report *report, uint32_t severity,
			   const struct andiron_value *at, const char *text, uint64_t len);

	/* Whether a line of this level would be written: 0 or 1. [any], O(1). */
	int32_t (*log_enabled)(uint64_t instance, uint32_t level);

	/* Writes a log line with the component's id. Everything is copied; never fails. [any],
	 * O(len). */
	void (*log)(uint64_t instance, uint32_t level, const struct andiron_str *message,
		    const struct andiron_kv *kv, uint64_t n_kv);

	/* Calls `fn` whenever `fd` is ready for ANDIRON_WATCH_* (level-triggered;
	 * hang-up and error report as both). The descriptor stays the caller's
	 * and must be removed before it is closed. Calls to fn: [loop] [serial].
	 * watch_add: -ENOMEM, -EEXIST if fd is already watched by the instance.
	 * [serial], O(1). */
	int32_t (*watch_add)(uint64_t instance, int32_t fd, uint32_t events, andiron_watch_fn fn,
			     void *arg, uint64_t *ret_watch);
	int32_t (*watch_modify)(uint64_t instance, uint64_t watch, uint32_t events);
	void (*watch_remove)(uint64_t instance, uint64_t watch);

	/* Calls `fn` after `after_ns` and then every `every_ns` (0: once) of CLOCK_MONOTONIC;
	 * missed ticks are merged into one. fn: [loop] [serial]. A one-shot timer's id is void once
	 * fn was called. Cancelling an unknown id does nothing. timer_set: -ENOMEM. [serial], O(log
	 * n). */
	int32_t (*timer_set)(uint64_t instance, int64_t after_ns, int64_t every_ns,
			     andiron_call_fn fn, void *arg, uint64_t *ret_timer);
	void (*timer_cancel)(uint64_t instance, uint64_t timer);

	/* Calls `fn` once, [loop] [serial], after the running call has returned.
	 * -ENOMEM; -ESHUTDOWN after destroy, and then fn is not called. [any],
	 * O(1). */
	int32_t (*post)(uint64_t instance, andiron_call_fn fn, void *arg);

	/* Runs `run` on a worker, [worker] and NOT [serial]: it may not touch the component's
	 * state, only `arg`. Then calls `done`, [loop] [serial]. Neither is called before `work`
	 * has returned. It is the host that waits: it calls destroy after all work of the instance
	 * has returned, and done is always called. -ENOMEM. [any], O(1). */
	int32_t (*work)(uint64_t instance, andiron_call_fn run, andiron_call_fn done, void *arg);

	/* Starts a child process; `fn` is called once, [loop] [serial], when it has ended.
	 * Everything is copied. Negative errno if it could not be started, and then fn is not
	 * called. [serial]. */
	int32_t (*spawn)(uint64_t instance, const struct andiron_spawn *spawn, andiron_spawn_fn fn,
			 void *arg);

	/* Hands a batch to everything behind `forward_to` (through a symbolizer where one is
	 * needed). Never blocks: consumers have queues bounded in bytes, and what does not fit is
	 * dropped and counted in the ledger by the host. The host takes references of its own; the
	 * caller keeps and releases its one. -EINVAL for a batch that breaks batch.h, dropped and
	 * counted. [any], O(consumers). */
	int32_t (*send_batch)(uint64_t instance, const struct andiron_batch *batch);

	/* Publishes targets under one of the component's exports. The host keeps what late
	 * consumers need, unless the component has `resend`. Ownership as for send_batch. -EINVAL
	 * for an update that breaks target.h. [serial], O(rows). */
	int32_t (*send_targets)(uint64_t instance, const char *export_name,
				const struct andiron_targets *update);

	/* Counts; see the ledger above. `reason` is a word, NULL where none belongs. [any], O(1).
	 */
	void (*ledger_add)(uint64_t instance, uint32_t entry, const struct andiron_str *reason,
			   uint64_t samples);
	void (*ledger_set)(uint64_t instance, uint32_t entry, uint64_t samples);

	/* States how the component is and why, for status and log. Repeating the state and text
	 * costs nothing. Text is copied. [any], O(len). */
	void (*health)(uint64_t instance, uint32_t state, const struct andiron_str *message);

	/* Says that `drain` is complete: nothing is held back any more. [any], O(1). */
	void (*drained)(uint64_t instance);

	/* Finds an extension, of the host ("andiron.objects/1") or of another plugin
	 * ("andiron.process-events/1"). -ENOENT: not offered. The table lives as long as the
	 * process, `self` as long as the instance that asks. [serial], O(extensions). */
	int32_t (*extension)(uint64_t instance, const char *id, struct andiron_extension *ret);

	/* Asks for all targets that the option `port` refers to. They arrive soon through
	 * `targets`, each row at least once, as replaced rows or in SNAPSHOTs. So a component
	 * need not keep targets. Absent in shorter tables. [loop] [serial], O(exports), plus
	 * the producers' cost. */
	void (*request_targets)(uint64_t instance, const char *port);

	/* Calls fn for each extension that other plugins offer and whose id begins with `prefix`,
	 * in order of id, once each; ids are borrowed for the call. Absent in shorter tables.
	 * [serial], O(extensions²). */
	void (*each_extension)(uint64_t instance, const char *prefix,
			       void (*fn)(void *context, const char *id), void *context);

	/* As send_batch, for a producer to whom somebody listens: to all consumers or to none, so
	 * that it can say what came of it. The host counts the samples as TAKEN. `done` is called,
	 * [loop] [serial], once no consumer has the batch any more; not after destroy. Its `result`
	 * is 0 if every consumer has returned from it, which is when a writer with a spool has it
	 * on disk; -ECANCELED if the host has dropped it before one of them got it, which is when
	 * that one stops, or has not started; the ledger counts that. -EAGAIN: one of those behind
	 * it has no room, or is full; nothing was taken, and nothing is counted. -E2BIG: more than
	 * a queue holds at all. -ENOTCONN: `forward_to` is empty. -ESHUTDOWN: a consumer is
	 * stopping, or has not started. -EINVAL as for send_batch, but not counted. Absent in
	 * shorter tables. [any], O(consumers). */
	int32_t (*offer_batch)(uint64_t instance, const struct andiron_batch *batch,
			       andiron_offer_fn done, void *arg);

	/* Says whether the component's own store is as good as full, so that what it takes now
	 * costs something older. While it is, offer_batch refuses. Absent in shorter tables. [any],
	 * O(1). */
	void (*full)(uint64_t instance, uint32_t full);
};

#ifdef __cplusplus
}
#endif

#endif
