/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of pyroscope.receive_http and otlp.receive: requests are read on workers, offered to
 * whoever is behind `forward_to`, and answered.
 *
 *     200            every consumer has returned from the profiles: a writer with a spool has them
 *                    on disk, one without in its queue
 *     400, 413       what was sent is not, or is too large; a sentence says what
 *     404, 405, 415  there is no such path, method, or type or encoding of the content
 *     429            somebody behind has no room, or too much is under way here: nothing was taken
 *     500            a defect of the agent: nothing was taken
 *     503            the component is stopping, sends to nobody, or memory is short: nothing was
 *                    taken. Or one of the consumers has stopped, and never got what was taken; the
 *                    others have it
 *     504            no answer in time: it may have been taken
 *
 * An error is a sentence: in JSON, as Connect has it, for a push; in a Status of protobuf for
 * OTLP, whose senders try again after 429, 502, 503 and 504 alone, or in gRPC's own; else, and
 * where the server answers by itself (413, 429, 503, 504: lib/http-server), as plain text. Used
 * under the component's strand. */
#pragma once

#include "http-server/listener.h"

#include <andiron/host.h>

struct receiver;

/* What has been answered, and what is under way. */
struct receiver_counts {
	uint64_t bytes; /* of bodies that were handed on */
	uint64_t accepted, refused, rejected, failed; /* answers: 200; 4xx; 429; 5xx */
	uint64_t broken_off;                          /* requests without an answer */
	uint64_t connections, connection_limit, held_bytes;
	uint64_t waiting_connections, refused_connections; /* beyond the limit (server.h) */
};

/* 0 or -ENOMEM. The options are of each protocol (options.h). `otlp`: it takes that alone. */
int receiver_new(const struct abi_context *context, const struct server_options *options, bool otlp,
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
bool receiver_takes_otlp(const struct receiver *r);
struct receiver_counts receiver_counts(const struct receiver *r);
