/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of pyroscope.receive_http: requests are read on workers, offered to whoever is behind
 * `forward_to`, and answered.
 *
 *     200       every consumer has returned from the profiles: a writer with a spool has them on
 *               disk, one without in its queue
 *     400, 413  what was sent is not, or is too large; a sentence says what
 *     429       somebody behind has no room, or too much is under way here: nothing was taken
 *     503       the component is stopping, sends to nobody, or memory is short: nothing was taken
 *
 * Push answers as Connect does, in JSON. Used under the component's strand. */
#pragma once

#include "http-server/listener.h"

#include <andiron/host.h>

struct receiver;

/* What has been answered, and what is under way. */
struct receiver_counts {
	uint64_t batches, bytes; /* taken */
	uint64_t accepted, refused, rejected, failed; /* answers: 200; 4xx; 429; 5xx */
	uint64_t connections, connection_limit, held_bytes;
};

/* 0 or -ENOMEM. */
int receiver_new(const struct abi_context *context, const struct server_options *options,
		 struct receiver **ret);
/* All work has returned. */
void receiver_free(void *self);

/* 0, or a negative errno and a text. */
int receiver_start(struct receiver *r, struct error *err);
int receiver_update(struct receiver *r, const struct server_options *options, struct error *err);
/* Takes nothing new, and says host->drained once what it has taken in is through. */
int32_t receiver_drain(void *self, int64_t deadline_ns);
void receiver_stop(void *self);

const struct andiron_host *receiver_host(const struct receiver *r);
struct receiver_counts receiver_counts(const struct receiver *r);
