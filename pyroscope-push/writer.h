/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of pyroscope.write: batches become records, records go to every endpoint, and what
 * came of each sample is counted once. Used under the component's strand. */
#pragma once

#include "abi/log.h"
#include "pyroscope-push/endpoint/endpoint.h"
#include "pyroscope-push/options.h"
#include "pyroscope-push/series.h"
#include "pyroscope-push/uploads/uploads.h"

struct writer;

/* Takes over the config's reference on success. 0 or -ENOMEM. */
int writer_new(const struct abi_context *context, struct push_config *config, struct writer **ret);
void writer_free(void *self);

/* 0, or negative errno and a text. */
int writer_start(struct writer *w, struct error *err);

/* Continues with another config; takes over its reference on success. An endpoint's records stay
 * with the endpoint of the same URL; if the URL was changed, with the one at its position. 0,
 * -ENOMEM, or -EINVAL and a text (another spool needs a restart); nothing has changed then. */
int writer_update(struct writer *w, struct push_config *config, struct error *err);

/* These and writer_free have the shapes of component.h; `self` is a struct writer. */
void writer_batch(void *self, const struct andiron_batch *batch);

/* Delivers what is held, and says host->drained when all is, or when deadline_ns is over and the
 * rest is in the spool, or dropped. */
int32_t writer_drain(void *self, int64_t deadline_ns);

/* Leaves what is held to the spool, or drops it; idempotent. */
void writer_stop(void *self);

/* What was repaired so that servers take it. */
const struct series_repairs *writer_repairs(const struct writer *w);

struct client_loop;
/* NULL: not started, or stopped. */
const struct client_loop *writer_loop(const struct writer *w);
const struct protocol *writer_protocol(const struct writer *w);
const struct andiron_host *writer_host(const struct writer *w);

/* Bytes that the spool takes on the disk, and (unless NULL) how many it may; 0 without a
 * spool. */
uint64_t writer_spool_bytes(const struct writer *w, uint64_t *ret_max);

/* Debug information that went to servers; NULL unless started, or where none asks for it. */
const struct uploads_counts *writer_uploads(const struct writer *w);

/* For metrics; none unless started. */
size_t writer_n_endpoints(const struct writer *w);
const struct endpoint *writer_endpoint(const struct writer *w, size_t i);
