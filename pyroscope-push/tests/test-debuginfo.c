/* SPDX-License-Identifier: Apache-2.0 */
/* The server of test-debuginfo.h. Sources: RFC 9113 (frames), RFC 7541 (headers: one that is
 * indexed, others as literals); parca, proto/parca/debuginfo/v1alpha1. What is called is told by
 * the message, since paths are compressed. */
#include "pyroscope-push/tests/test-debuginfo.h"

#include "http/tests/test-loop.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define FRAME_HEAD 9
#define FRAME_MAX  16384
#define PREFACE    24
#define STREAMS    8
#define HEAD       256 /* of a message, by which it is told */

enum { DATA = 0, HEADERS = 1, RESET = 3, SETTINGS = 4, PING = 6, WINDOW_UPDATE = 8 };
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4 };

struct stream {
	uint32_t id; /* 0: free */
	size_t n;
	unsigned char head[HEAD];
};

struct connection {
	int fd;
	struct test_debuginfo *server;
	struct stream streams[STREAMS];
	unsigned char payload[FRAME_MAX];
};

static bool receive(int fd, void *out, size_t n)
{
	return recv(fd, out, n, MSG_WAITALL) == (ssize_t)n;
}

static bool send_frame(int fd, unsigned char type, unsigned char flags, uint32_t stream,
		       const void *payload, size_t n)
{
	char frame[FRAME_HEAD + 64] = {
		(char)(n >> 16),      (char)(n >> 8),      (char)n,
		(char)type,           (char)flags,         (char)(stream >> 24),
		(char)(stream >> 16), (char)(stream >> 8), (char)stream};

	memcpy(frame + FRAME_HEAD, payload, n);
	return test_send(fd, frame, FRAME_HEAD + n);
}

/* The call that a message belongs to: UploadInfo has its ids within a field, Initiate a size, and
 * Finish the id that was given, where Should has a hash. */
static enum test_call call_of(const struct stream *s)
{
	const unsigned char *message = s->head + 5, *second;

	if (message[2] == 0x0a)
		return CALL_UPLOAD;
	second = message + 2 + message[1];
	if (second[0] == 0x10)
		return CALL_INITIATE;
	return second[1] == 2 && memcmp(second + 2, "u1", 2) == 0 ? CALL_FINISH : CALL_SHOULD;
}

/* InitiateUploadResponse: an id, and how the file is to come. */
static size_t put_instructions(const struct test_debuginfo *server, char *out)
{
	size_t n = strlen(server->signed_url);
	const char head[] = {0,
			     0,
			     0,
			     0,
			     (char)(n ? n + 10 : 8),
			     0x0a,
			     (char)(n ? n + 8 : 6),
			     0x12,
			     2,
			     'u',
			     '1',
			     0x18,
			     n ? 2 : 1,
			     0x22,
			     (char)n};

	memcpy(out, head, sizeof(head));
	memcpy(out + sizeof(head), server->signed_url, n);
	return n ? sizeof(head) + n : sizeof(head) - 2;
}

static bool answer(struct connection *c, const struct stream *s)
{
	static const char head[] = "\x88\x00\x0c"
				   "content-type\x10"
				   "application/grpc";
	static const char trailers[] = "\x00\x0bgrpc-status\x01"
				       "0";
	enum test_call call = call_of(s);
	char message[64] = "\0\0\0\0\2\x08\x01";
	size_t n = 7;

	if (call == CALL_INITIATE)
		n = put_instructions(c->server, message);
	else if (call != CALL_SHOULD)
		memset(message, 0, n = 5);

	c->server->calls[call]++;
	if (c->server->mute >> call & 1)
		return true;
	return send_frame(c->fd, HEADERS, END_HEADERS, s->id, head, sizeof(head) - 1) &&
	       send_frame(c->fd, DATA, 0, s->id, message, n) &&
	       send_frame(c->fd, HEADERS, END_HEADERS | END_STREAM, s->id, trailers,
			  sizeof(trailers) - 1);
}

static struct stream *find(struct connection *c, uint32_t id)
{
	for (size_t i = 0; i < STREAMS; i++)
		if (c->streams[i].id == id)
			return &c->streams[i];
	return NULL;
}

/* Of what came as much may come again. */
static bool give_window(int fd, uint32_t stream, size_t n)
{
	const unsigned char more[] = {0, (unsigned char)(n >> 16), (unsigned char)(n >> 8),
				      (unsigned char)n};

	return n == 0 || (send_frame(fd, WINDOW_UPDATE, 0, 0, more, 4) &&
			  send_frame(fd, WINDOW_UPDATE, 0, stream, more, 4));
}

static bool take(struct connection *c, unsigned char flags, uint32_t id, size_t n)
{
	struct stream *s = find(c, id);
	size_t room = s ? HEAD - s->n : 0;
	bool going = give_window(c->fd, id, n);

	c->server->bytes += n;
	if (!s) /* it was reset */
		return going;
	memcpy(s->head + s->n, c->payload, n < room ? n : room);
	s->n += n < room ? n : room;
	if (flags & END_STREAM) {
		going = going && answer(c, s);
		*s = (struct stream){0};
	}
	return going;
}

static bool act(struct connection *c, const unsigned char *head, size_t n)
{
	uint32_t id = (uint32_t)(head[5] & 0x7f) << 24 | (uint32_t)head[6] << 16 |
		      (uint32_t)head[7] << 8 | head[8];
	struct stream *s;

	switch (head[3]) {
	case SETTINGS:
		return head[4] & ACK || send_frame(c->fd, SETTINGS, ACK, 0, "", 0);
	case PING:
		return head[4] & ACK || send_frame(c->fd, PING, ACK, 0, c->payload, 8);
	case HEADERS:
		s = find(c, 0);
		if (s)
			*s = (struct stream){.id = id};
		return s != NULL;
	case RESET:
		s = find(c, id);
		if (s)
			*s = (struct stream){0};
		return true;
	case DATA:
		return take(c, head[4], id, n);
	default:
		return true;
	}
}

void test_debuginfo_serve(int fd, void *context)
{
	static struct connection c; /* they come one after the other */
	unsigned char head[FRAME_HEAD];
	size_t n;

	c = (struct connection){.fd = fd, .server = context};
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)); /* frames are small */
	if (!receive(fd, c.payload, PREFACE) || !send_frame(fd, SETTINGS, 0, 0, "", 0))
		return;
	while (receive(fd, head, sizeof(head))) {
		n = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
		if (n > FRAME_MAX || !receive(fd, c.payload, n) || !act(&c, head, n))
			return;
	}
}

static char *end_of_head(char *head)
{
	char *end = strstr(head, "\r\n\r\n");

	return end ? end + 4 : NULL;
}

void test_storage_serve(int fd, void *context)
{
	static char part[1 << 16];
	struct test_storage *s = context;
	size_t n = 0, want;
	const char *length;
	char *end = NULL;

	while (!end && n < sizeof(s->head) - 1 &&
	       recv(fd, s->head + n, 1, 0) == 1) { /* to the head's last byte */
		s->head[++n] = '\0';
		end = end_of_head(s->head);
	}
	length = strstr(s->head, "Content-Length: ");
	if (!end || !length)
		return;
	want = strtoul(length + 16, NULL, 10);
	for (s->bytes = 0; s->bytes < want;) {
		ssize_t r = recv(fd, part, sizeof(part), 0);

		if (r <= 0)
			return;
		s->bytes += (uint64_t)r;
	}
	s->files++;
	test_say(fd, *s->answers);
	if (s->answers[1])
		s->answers++;
}
