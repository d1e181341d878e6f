/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in message.h. */
#include "host/isolate/message.h"

#include "base/cleanup.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD offsetof(struct isolate_packet, text)

/* More than a process can have counted. */
#define MOST ((uint64_t)1 << 56)

union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))]; /* which takes two, for alignment */
};

int isolate_put(int socket, const struct isolate_message *m, int fd, bool waits)
{
	struct {
		uint32_t type, reserved;
		uint64_t number;
	} head = {m->type, 0, m->number};
	struct iovec parts[] = {{&head, sizeof(head)}, {(void *)(uintptr_t)m->text.p, m->text.n}};
	struct msghdr h = {.msg_iov = parts, .msg_iovlen = 2};
	union control control = {0};
	ssize_t n;

	_Static_assert(sizeof(head) == HEAD, "as it is read");
	if (m->text.n > ISOLATE_MAX_TEXT)
		return -E2BIG;
	if (fd >= 0) {
		h.msg_control = &control;
		h.msg_controllen = sizeof(control);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	}
	do
		n = sendmsg(socket, &h, MSG_NOSIGNAL | (waits ? 0 : MSG_DONTWAIT));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	return 0;
}

/* The descriptors that came along: closed, unless it is one. How many they were. */
static size_t take_descriptors(struct msghdr *h, int *ret_fd)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(h);
	bool any = c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS;
	size_t n = any ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;

	*ret_fd = -1;
	for (size_t i = 0; i < n; i++) {
		memcpy(ret_fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
		if (n > 1)
			close(take_fd(*ret_fd));
	}
	return n;
}

int isolate_take(int socket, struct isolate_packet *packet, struct isolate_message *ret,
		 int *ret_fd)
{
	struct iovec part = {packet, sizeof(*packet)};
	union control control = {0};
	struct msghdr h = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	size_t n_fds;
	ssize_t n;
	int fd;

	do
		n = recvmsg(socket, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? 0 : errno == ECONNRESET ? -EPIPE : -errno;
	n_fds = take_descriptors(&h, &fd);
	if (n < (ssize_t)HEAD || n_fds > 1 || h.msg_flags & MSG_TRUNC) {
		if (fd >= 0)
			close(fd);
		return n == 0 ? -EPIPE : -EBADMSG;
	}
	*ret = (struct isolate_message){
		.type = packet->type,
		.number = packet->number,
		.text = {packet->text, (size_t)n - HEAD},
		.fd_lost = n_fds == 0 && h.msg_flags & MSG_CTRUNC,
	};
	*ret_fd = fd;
	return 1;
}

struct str isolate_counts_text(const struct isolate_counts *counts)
{
	return (struct str){(const char *)counts,
			    offsetof(struct isolate_counts, dropped) +
				    (size_t)counts->n_reasons * sizeof(counts->dropped[0])};
}

bool isolate_counts_get(struct str text, struct isolate_counts *ret)
{
	struct isolate_counts c = {0};
	bool good;

	if (text.n < offsetof(struct isolate_counts, dropped) || text.n > sizeof(c))
		return false;
	memcpy(&c, text.p, text.n);
	good = c.n_reasons <= ISOLATE_REASONS && isolate_counts_text(&c).n == text.n &&
	       c.delivered <= MOST && c.carried <= MOST && c.spooled <= MOST && c.uncertain <= MOST;
	for (size_t i = 0; good && i < c.n_reasons; i++)
		good = c.dropped[i].samples <= MOST && c.dropped[i].word[0] &&
		       memchr(c.dropped[i].word, 0, ISOLATE_REASON_BYTES);
	if (good)
		*ret = c;
	return good;
}
