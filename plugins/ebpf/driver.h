/* SPDX-License-Identifier: Apache-2.0 */
/* Driver of the engine: runs it by the host's loop and workers. One job at a time owns the engine,
 * on a worker. Targets, options, ticks and ring records that arrive during a job make the next job.
 * So the loop never waits for /proc or an RCU grace period. An idle machine runs nothing between
 * two ticks.
 *
 * All functions: [serial] of the instance. */
#pragma once

#include "ebpf/engine.h"

#include "abi/log.h"

struct driver;

/* What the host must offer, and what driver_extension offers. */
extern const char *const driver_needs[], *const driver_offers[];

/* Takes ownership of `options`, also on failure; finds the runtimes that they name. *ret: a struct
 * driver. 0 or a negative errno. */
int32_t driver_new(const struct abi_context *c, struct ebpf_options *options, void **ret,
		   struct andiron_error *err);
/* As driver_new does. */
void driver_update(struct driver *d, struct ebpf_options *options);

/* As component.h has them; `self` is a struct driver. driver_start returns when samples are taken;
 * it fails with cause and remedy. driver_drain sends the last samples, then reports to the host
 * that it is drained. driver_stop waits for a running job, and counts samples that no job has read
 * as dropped by `deadline`. */
int32_t driver_start(void *self, struct andiron_error *err);
void driver_targets(void *self, const char *port, const struct andiron_targets *update);
int32_t driver_drain(void *self, int64_t deadline_ns);
void driver_stop(void *self);
void driver_free(void *self);
/* As of the last job. */
const struct engine_stats *driver_stats(const struct driver *d);
void driver_metrics(void *self, const struct andiron_metric_sink *sink);
const void *driver_extension(void *self, const char *id);
