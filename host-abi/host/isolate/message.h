/* SPDX-License-Identifier: Apache-2.0 */
/* What the host and the process of an isolated component say to each other, over a socket of
 * packets (SOCK_SEQPACKET): a message is one packet, with at most one descriptor. Numbers are as
 * the machine has them: both ends are of the same release. Whoever reads takes nothing for granted:
 * what does not fit is -EBADMSG.
 *
 * What is large travels as a sealed memfd (batch-memory.h), so a message never needs a second
 * packet, and the host never waits for room in the socket. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* From the host. */
#define ISOLATE_START 1u /* number: the log's level; text: the component's id; memfd: arguments */
#define ISOLATE_BATCH 2u /* number: rises by one with each; memfd, of a batch; or target-bytes.h */
#define ISOLATE_DRAIN 3u /* number: ns until it must be over; then it ends */

/* From the process. */
#define ISOLATE_READY   17u /* number: 0, or the errno for which it could not start, with a text */
#define ISOLATE_DONE    18u /* number: of the batch that `batch` has returned from */
#define ISOLATE_COUNTS  19u /* isolate_counts */
#define ISOLATE_HEALTH  20u /* number: ANDIRON_HEALTH_*; text */
#define ISOLATE_LOG     21u /* number: ANDIRON_LOG_*; text */
#define ISOLATE_METRICS 22u /* metric-bytes.h */
#define ISOLATE_SEND    23u /* memfd: a batch for those behind it; number: its samples.
			     * Of targets a batch without columns, of one segment: target-bytes.h */
#define ISOLATE_FULL    24u /* number: as andiron/host.h, full */
#define ISOLATE_ENDED   25u /* it is drained, stopped and destroyed */

#define ISOLATE_MAX_TEXT (48u << 10)
/* Of an update, or of those that wait to be given. */
#define ISOLATE_MAX_TARGETS ((uint64_t)64 << 20)
/* Of all updates of a list from one snapshot to the next, that one among them, and with what their
 * rows take (target_bytes_rows). */
#define ISOLATE_MAX_ROWS ((uint64_t)256 << 20)

struct isolate_message {
	uint32_t type;
	uint32_t reserved;
	uint64_t number;
	struct str text; /* in the reader's buffer, until the next is taken */
	bool fd_lost;    /* its descriptor found no room in this process */
};

/* Where messages are received. */
struct isolate_packet {
	uint32_t type;
	uint32_t reserved;
	uint64_t number;
	char text[ISOLATE_MAX_TEXT];
};

/* Sends it, with `fd` unless that is -1; `waits`: for room in the socket. 0; -E2BIG: the text is
 * too long; or what the socket says: -EAGAIN, -EPIPE, … [any] */
int isolate_put(int socket, const struct isolate_message *m, int fd, bool waits);
/* The next message: 1, and *ret_fd is its descriptor, the caller's to close, or -1; 0: there is
 * none; -EPIPE: the other end has closed; -EBADMSG; or another negative errno. */
int isolate_take(int socket, struct isolate_packet *packet, struct isolate_message *ret,
		 int *ret_fd);

/* What came of its samples, since the process began: levels, and sums that only rise. */
#define ISOLATE_REASONS      64
#define ISOLATE_REASON_BYTES 40

struct isolate_reason {
	uint64_t samples;
	char word[ISOLATE_REASON_BYTES]; /* NUL-terminated */
};

struct isolate_counts {
	uint64_t delivered, carried, spooled, uncertain;
	uint64_t n_reasons;
	struct isolate_reason dropped[ISOLATE_REASONS];
};

/* As a text, without the reasons that are not there. */
struct str isolate_counts_text(const struct isolate_counts *counts);
/* false: it is none. */
bool isolate_counts_get(struct str text, struct isolate_counts *ret);
