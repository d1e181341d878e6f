/* SPDX-License-Identifier: Apache-2.0 */
/* A component: one kind of node in the graph, and the verbs by which the host runs it.
 *
 * LIFE CYCLE
 *   validate*  create  start  (update | targets | batch)*  drain  stop  destroy
 * `describe` is the constant table itself: reading it runs no code. Any state
 * may go to stop and destroy; destroy accepts an instance that never started.
 * The host starts consumers before producers and drains producers before
 * consumers. */
#ifndef ANDIRON_COMPONENT_H
#define ANDIRON_COMPONENT_H

#include <andiron/host.h>
#include <andiron/option.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What may be referenced: `discovery.process.all.targets`. A CAPSULE is a name for something that
 * only options made for it can take; nothing flows. A VALUE is what the component has sent last
 * (andiron/values.h): other components' arguments are made of it. Frozen. */
#define ANDIRON_EXPORT_TARGETS  1u
#define ANDIRON_EXPORT_RECEIVER 2u
#define ANDIRON_EXPORT_CAPSULE  3u
#define ANDIRON_EXPORT_VALUE    4u

struct andiron_export {
	const char *name;
	uint32_t type;
	uint32_t reserved;
	const char *doc;
};

#define ANDIRON_COMPONENT_RAW_FRAMES 1u /* its batches hold frames without names */
/* wants named frames; the host puts a symbolizer before it */
#define ANDIRON_COMPONENT_WANTS_NAMES 2u
#define ANDIRON_COMPONENT_SYMBOLIZER  4u /* is a symbolizer: gives names to what it forwards */
#define ANDIRON_COMPONENT_WRITER      8u /* the end of a path, a row in the ledger */
/* offers extensions; created by the host when one is needed, at most once */
#define ANDIRON_COMPONENT_SERVICE  16u
#define ANDIRON_COMPONENT_NO_LABEL 32u /* a block without a label, at most one in a configuration */

/* A metric as it is now. Names follow Prometheus; labels are sorted by key;
 * the host adds component_id. Borrowed for the call. Frozen. */
#define ANDIRON_METRIC_COUNTER 1u
#define ANDIRON_METRIC_GAUGE   2u

struct andiron_metric {
	const char *name;
	const char *help;
	uint32_t kind;
	uint32_t n_labels;
	const struct andiron_kv *labels;
	double value;
};

struct andiron_metric_sink {
	uint32_t size;
	uint32_t reserved;
	void *self;
	void (*add)(void *self, const struct andiron_metric *metric);
};

struct andiron_component {
	uint32_t size;
	uint32_t flags;
	const char *name;    /* as in the configuration: "pyroscope.write" */
	const char *summary; /* one line */
	const struct andiron_options *options;
	const struct andiron_export *exports;
	uint64_t n_exports;
	/* Ids of extensions that it is meant to have; ends with NULL, may be NULL. The host makes
	 * the services that offer them, and may refuse to make an instance where it lacks one. If
	 * it makes it all the same, `create` or `start` fails with -ENOENT, or the component goes
	 * on with less and says so in its health. */
	const char *const *needs;
	/* Ids of the extensions that it has tables for; ends with NULL, may be NULL. Others use
	 * those of a SERVICE; the host itself uses "andiron.dropped-targets/1" and
	 * "andiron.target-processes/1" of every component. */
	const char *const *offers;
	/* Linux capabilities it needs, "CAP_BPF"; ends with NULL, may be NULL. For doctor, help and
	 * packaging. */
	const char *const *capabilities;

	/* Checks what types alone cannot say and reports every finding through host->report_add. No
	 * side effects, no network, no privilege. [any]. Returns 0, also with findings. May be
	 * NULL. */
	int32_t (*validate)(const struct andiron_host *host, const struct andiron_value *args,
			    struct andiron_report *report);

	/* Makes an instance. Cheap and without side effects outside the process.
	 * `args` is borrowed. On failure *ret_self is untouched and nothing is
	 * held. [loop]. */
	int32_t (*create)(const struct andiron_host *host, uint64_t instance,
			  const struct andiron_value *args, void **ret_self,
			  struct andiron_error *err);

	/* Begins to work; returns when it is live (a sampler samples). May block. On failure the
	 * instance can only be stopped and destroyed. [worker] [serial]. */
	int32_t (*start)(void *self, struct andiron_error *err);

	/* New arguments, all or nothing: on failure, with the option's path and
	 * the reason in err, it goes on with the old ones. [loop] [serial].
	 * NULL: the host makes a new instance instead. */
	int32_t (*update)(void *self, const struct andiron_value *args, struct andiron_error *err);

	/* Producers send what they still hold, writers deliver it, within
	 * deadline_ns from now; then call host->drained, now or later. What is
	 * left at the deadline is the component's to count. [worker] [serial].
	 * NULL: nothing to drain. */
	int32_t (*drain)(void *self, int64_t deadline_ns);

	/* Ends all activity: watches, timers and work of the instance are gone when it returns.
	 * Idempotent. [worker] [serial]. */
	void (*stop)(void *self);

	/* Frees the instance. [loop] [serial]; the host has waited until its work has returned. */
	void (*destroy)(void *self);

	/* New targets for the option `port`. NULL if no option is TARGETS.
	 * `update` is borrowed (retain to keep). Must not fail: what it cannot use
	 * it says in its health. [loop] [serial], O(rows of the update). */
	void (*targets)(void *self, const char *port, const struct andiron_targets *update);

	/* A batch. Borrowed (retain to keep). What it does not pass on or deliver it counts in the
	 * ledger. NULL if it exports no RECEIVER. [worker] [serial]. */
	void (*batch)(void *self, const struct andiron_batch *batch);

	/* Adds the component's metrics to the sink. May be NULL. [loop] [serial]. */
	void (*metrics)(void *self, const struct andiron_metric_sink *sink);

	/* The table for one of `offers`; its functions get `self`. Called for no other id.
	 * [serial], O(1). */
	const void *(*extension)(void *self, const char *id);

	/* The main function of the component's subprocess (andiron/subprocess.h): serves
	 * requests on `socket` (SOCK_SEQPACKET, the component's own messages) until it closes.
	 * There is no instance and no host. 0 or a negative errno. NULL, or absent in shorter
	 * tables: there is none. */
	int32_t (*subprocess)(int32_t socket);

	/* Prefixes of ids of optional extensions ("andiron.runtime."); ends with NULL, may be NULL.
	 * The host makes the services that offer such. Absent in shorter tables. */
	const char *const *wants;

	/* Resends all targets of an export through send_targets, now or soon, as replaced rows in
	 * any number of updates. The host asks when a consumer begins late or requests them
	 * (host.h, request_targets). In return it keeps no copy of the export. NULL, or absent in
	 * shorter tables: the host keeps one. [loop] [serial]. */
	void (*resend)(void *self, const char *export_name);

	/* The same as `subprocess`, of the process that speaks to servers for an instance
	 * (andiron/subprocess.h, start_sender). NULL, or absent in shorter tables: there is none.
	 */
	int32_t (*sender)(int32_t socket);
};

#ifdef __cplusplus
}
#endif

#endif
