/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in channel.h. A packet is a head and at most CHANNEL_PIECE bytes. The head of a packet
 * that is not the last of its message says so; those of one message have the same type and id. */
#include "http/sender/channel.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

struct head {
	uint32_t type;
	uint32_t more; /* 1: another packet of the message follows */
	uint64_t id;
};

#define KEPT_BYTES   (256u << 10)
#define PACKET_BYTES (sizeof(struct head) + CHANNEL_PIECE)

int channel_init(struct channel *c, int fd, size_t limit)
{
	*c = (struct channel){.fd = fd, .limit = limit};
	c->packet = malloc(PACKET_BYTES);
	return c->packet ? 0 : -ENOMEM;
}

void channel_fini(struct channel *c)
{
	buf_free(&c->out);
	buf_free(&c->in);
	free(c->packet);
	*c = (struct channel){.fd = -1};
}

bool channel_waits(const struct channel *c)
{
	return c->out_used < c->out.n;
}

/* A large message is rare: its memory is given back. */
static void empty(struct buf *b)
{
	if (b->capacity > KEPT_BYTES)
		buf_free(b);
	buf_clear(b);
}

/* 1: the packet has gone; 0: the socket is full. */
static int send_packet(struct channel *c, const struct head *head, struct str piece)
{
	struct iovec parts[] = {{(void *)(uintptr_t)head, sizeof(*head)},
				{(void *)(uintptr_t)piece.p, piece.n}};
	struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
	ssize_t n;

	do
		n = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == ENOBUFS))
		return 0;
	/* The first is said once, and by whichever call comes first; see receive. */
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	c->n_gone++;
	return (size_t)n == sizeof(*head) + piece.n ? 1 : -EIO;
}

int channel_flush(struct channel *c)
{
	while (channel_waits(c)) {
		const char *at = c->out.p + c->out_used;
		struct head head;
		size_t n;
		int r;

		memcpy(&n, at, sizeof(n));
		memcpy(&head, at + sizeof(n), sizeof(head));
		r = send_packet(c, &head, (struct str){at + sizeof(n) + sizeof(head), n});
		if (r <= 0)
			return r;
		c->out_used += sizeof(n) + sizeof(head) + n;
	}
	c->out_used = 0;
	empty(&c->out);
	return 0;
}

/* What has gone from the front, once that is most of it. */
static void drop_used(struct channel *c)
{
	if (c->out_used <= c->out.n / 2)
		return;
	c->out.n -= c->out_used;
	memmove(c->out.p, c->out.p + c->out_used, c->out.n);
	c->out_used = 0;
}

static size_t packets_of(size_t n)
{
	return n ? (n + CHANNEL_PIECE - 1) / CHANNEL_PIECE : 1;
}

int channel_put(struct channel *c, uint32_t type, uint64_t id, struct str payload)
{
	struct str rest = payload;
	size_t packets = packets_of(payload.n);
	bool direct = !channel_waits(c);

	drop_used(c);
	/* What cannot be kept whole is not begun. */
	if (!buf_reserve(&c->out, payload.n + packets * (sizeof(size_t) + sizeof(struct head)))) {
		c->out.failed = false;
		return -ENOMEM;
	}
	for (size_t i = 0; i < packets; i++) {
		struct str piece = str_first(rest, CHANNEL_PIECE);
		struct head head = {.type = type, .more = i + 1 < packets, .id = id};
		int r = direct ? send_packet(c, &head, piece) : 0;

		if (r < 0)
			return r;
		c->n_put++;
		rest = str_skip(rest, piece.n);
		if (r)
			continue;
		direct = false;
		buf_append(&c->out, &piece.n, sizeof(piece.n));
		buf_append(&c->out, &head, sizeof(head));
		buf_str_append(&c->out, piece);
	}
	check(!c->out.failed);
	return channel_flush(c);
}

/* A packet's payload behind those of its message. */
static int add_packet(struct channel *c, size_t n)
{
	struct head head;

	if (n < sizeof(head))
		return -EBADMSG;
	memcpy(&head, c->packet, sizeof(head));
	n -= sizeof(head);
	if (head.more > 1 || (c->more && (head.type != c->type || head.id != c->id)))
		return -EBADMSG;
	if (n > c->limit || c->in.n > c->limit - n)
		return -EBADMSG;
	c->type = head.type;
	c->id = head.id;
	c->more = head.more;
	return buf_append(&c->in, c->packet + sizeof(head), n);
}

/* An end that closes without having read all makes the socket say so once, before it gives what
 * that end has still said. */
static ssize_t receive(const struct channel *c, struct msghdr *m)
{
	ssize_t n;

	for (bool reset = false;; reset = true) {
		do
			n = recvmsg(c->fd, m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		while (n < 0 && errno == EINTR);
		if (n >= 0 || errno != ECONNRESET || reset)
			return n;
	}
}

int channel_take(struct channel *c, struct channel_message *ret)
{
	if (!c->more)
		empty(&c->in);
	do {
		struct iovec part = {c->packet, PACKET_BYTES};
		struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
		ssize_t n = receive(c, &m);
		int r;

		if (n < 0)
			return errno == EAGAIN ? 0 : errno == ECONNRESET ? -EPIPE : -errno;
		if (n == 0)
			return -EPIPE;
		r = m.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -EBADMSG : add_packet(c, (size_t)n);
		if (r < 0)
			return r;
	} while (c->more);
	*ret = (struct channel_message){c->type, c->id, buf_str(&c->in)};
	return 1;
}
