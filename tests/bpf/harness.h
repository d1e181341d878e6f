/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the sampler's engine in a test without a host: targets in, batches kept, counts added up;
 * and the workload of known cost. */
#pragma once

#include "ebpf/engine.h"
#include "host/objects/objects.h"

#include "abi/batch-view.h"
#include "abi/target-list.h"
#include "base/vec.h"

#include <sys/types.h>

struct harness {
	struct engine *engine;
	struct objects *objects;
	struct target_list *targets;
	struct engine_counts counts; /* sum of all intervals */
	VEC(const struct andiron_batch *) batches;
	uint64_t n_rows, n_targets;
	uint32_t n_complaints; /* of the engine that the test waits for; others fail it */
};

/* The options that a test wants to differ in. */
struct harness_options {
	uint32_t rate_hz;
	int64_t interval_ns; /* 0: 15 s; sizes maps, nothing collects by itself */
	bool all;            /* targets_only = false */
	bool follow, pid_label, comm_label;
	uint32_t off_cpu; /* as in struct ebpf_options */
};

/* Skips the test where BPF cannot be had. Samples when it returns. */
void harness_init(struct harness *h, const struct harness_options *options);
void harness_fini(struct harness *h);

/* A target by pid, with the label service_name. */
void harness_target(struct harness *h, const char *label, const char *value, const char *service);
/* Removes all targets. */
void harness_untarget(struct harness *h);
void harness_target_pid(struct harness *h, pid_t pid, const char *service);

/* Serves the ring for so long, as the host's loop would. */
void harness_run(struct harness *h, int64_t ns);
/* Goes on, collecting now and then, until that service has more samples than this: on a busy
 * machine they take longer. Fails the test when they do not come. */
void harness_run_until(struct harness *h, const char *service, uint64_t samples);
/* Like the end of an interval; checks that its counts close. */
void harness_collect(struct harness *h);

/* Samples of the rows that `matches` accepts, over all batches. */
typedef bool (*harness_row_fn)(const struct batch_view *v, const struct andiron_group *group,
			       const struct andiron_row *row, void *context);
uint64_t harness_samples(const struct harness *h, harness_row_fn matches, void *context);

/* Those of the groups with that service_name. */
uint64_t harness_service(const struct harness *h, const char *service);

/* The workload: running when this returns, and where its three functions lie. */
struct workload {
	pid_t pid;
	int to, from;
	uint64_t start[3], limit[3];
};

void workload_start(struct workload *w, const char *mode);
void workload_stop(struct workload *w);

/* The CPU time that its process has had. */
int64_t workload_cpu_ns(const struct workload *w);

/* Which of the three functions a row's leaf lies in, -1: none. */
int workload_function(const struct workload *w, const struct batch_view *v,
		      const struct andiron_row *row);
