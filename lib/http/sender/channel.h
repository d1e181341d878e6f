/* SPDX-License-Identifier: Apache-2.0 */
/* Messages over a socket of packets (SOCK_SEQPACKET). A message is one packet, or several that
 * follow each other without another between them. What is sent never blocks: it waits in memory
 * until the socket takes it. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* Of a message, in one packet. */
#define CHANNEL_PIECE (32u << 10)

struct channel_message {
	uint32_t type;
	uint64_t id;
	struct str payload; /* until the next is taken */
};

struct channel {
	int fd;         /* not blocking; the owner's */
	size_t limit;   /* of a message that is taken */
	struct buf out; /* packets that wait, each behind its length */
	size_t out_used;
	uint64_t n_put, n_gone; /* packets */
	struct buf in;          /* of the message whose last packet has yet to come */
	bool more;
	uint32_t type;
	uint64_t id;
	char *packet; /* where one is received */
};

/* 0 or -ENOMEM. */
int channel_init(struct channel *c, int fd, size_t limit);
void channel_fini(struct channel *c);

/* Puts a message behind what waits, and sends what can be sent: 0; -ENOMEM: nothing was put;
 * -EPIPE: the other end has closed (what it said can still be taken); or what the socket says. */
int channel_put(struct channel *c, uint32_t type, uint64_t id, struct str payload);
/* 0, or what the socket says. */
int channel_flush(struct channel *c);
/* Whether something waits for the socket. */
bool channel_waits(const struct channel *c);

/* The next message: 1; 0: none is whole yet; -EPIPE: the other end has closed, and all that it said
 * was taken; -EBADMSG: it is none, or larger than the limit; or another negative errno. */
int channel_take(struct channel *c, struct channel_message *ret);
