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

/* Takes ownership of `options`, also on failure. 0 or a negative errno. */
int driver_new(const struct abi_context *c, struct ebpf_options *options,
	       const struct andiron_extension *objects, struct driver **ret);
/* No job may be left: destroy of component.h. */
void driver_free(struct driver *d);

/* Returns when samples are taken. On failure with cause and remedy. */
int driver_start(struct driver *d, struct error *err);
void driver_update(struct driver *d, struct ebpf_options *options);
void driver_targets(struct driver *d, const struct andiron_targets *update);
/* Sends the last samples, then reports to the host that it is drained. */
void driver_finish(struct driver *d);
/* Waits for a running job. */
void driver_stop(struct driver *d);

/* Moves an error across the border; returns its code, `code` if none was set. */
int32_t driver_error(const struct driver *d, struct andiron_error *ret_err, int code,
		     const struct error *err);

/* Its access to the host. */
const struct abi_context *driver_context(const struct driver *d);

/* target_report_each; -EBUSY while a job has the engine. */
int driver_report_targets(struct driver *d, target_report_fn fn, void *context);

/* As of the last job. */
const struct engine_stats *driver_stats(const struct driver *d);
