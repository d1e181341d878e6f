/* SPDX-License-Identifier: Apache-2.0 */
/* The parser in a sandboxed process. Contract in sandboxed-parser.h. */
#include "symbolize/parser/sandboxed-parser.h"

#include "symbolize/parser/answer.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define MAX_FDS                                                                                    \
	(1 + TABLES_FILES +                                                                        \
	 PARSER_SPLITS_MAX) /* the addresses, the object's files, split units   \
						*/

struct message {
	uint32_t flags, demangle;
	uint64_t object, max_bytes, file_bytes, steps, n;
	uint32_t files; /* a bit for each that is sent */
	int32_t result; /* of an answer */
};

/* Sends a message with descriptors, which stay the caller's. */
static int send_message(int socket, const struct message *m, const int *fds, size_t n_fds)
{
	union {
		char bytes[CMSG_SPACE(MAX_FDS * sizeof(int))];
		struct cmsghdr head;
	} control = {{0}};
	struct iovec io = {(void *)(uintptr_t)m, sizeof(*m)};
	struct msghdr h = {.msg_iov = &io, .msg_iovlen = 1};
	ssize_t n;

	check(n_fds <= MAX_FDS);
	if (n_fds) {
		h.msg_control = control.bytes;
		h.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(n_fds * sizeof(int)),
						.cmsg_level = SOL_SOCKET,
						.cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.head), fds, n_fds * sizeof(int));
	}
	do
		n = sendmsg(socket, &h, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n == sizeof(*m) ? 0 : -EBADMSG;
}

/* Receives a message with its descriptors, to close; -EPIPE at the end. */
static int receive_message(int socket, struct message *m, int fds[MAX_FDS], size_t *ret_n)
{
	union {
		char bytes[CMSG_SPACE(MAX_FDS * sizeof(int))];
		struct cmsghdr head;
	} control = {{0}};
	struct iovec io = {m, sizeof(*m)};
	struct msghdr h = {.msg_iov = &io,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c;
	ssize_t n;

	do
		n = recvmsg(socket, &h, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	*ret_n = 0;
	if (n <= 0)
		return n < 0 ? -errno : -EPIPE;
	c = CMSG_FIRSTHDR(&h);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		*ret_n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		check(*ret_n <= MAX_FDS); /* there is no room for more */
		memcpy(fds, CMSG_DATA(c), *ret_n * sizeof(int));
	}
	return n == sizeof(*m) && !(h.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ? 0 : -EBADMSG;
}

static void close_all(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		closep(&fds[i]);
}

static int memory_file(const void *p, size_t n)
{
	_cleanup_(closep) int fd = memfd_create("andiron-names", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : file_write_fd(fd, p, n);

	return r < 0 ? r : take_fd(fd);
}

/* --- The process --- */

static int read_addresses(int fd, uint64_t n, uint64_t **ret)
{
	_cleanup_(freep) uint64_t *addresses = NULL;
	int r;

	if (n > PARSER_ADDRESSES_MAX)
		return -E2BIG;
	addresses = malloc(n ? (size_t)n * sizeof(*addresses) : 1);
	if (!addresses)
		return -ENOMEM;
	r = file_pread(fd, addresses, (size_t)n * sizeof(*addresses), 0);
	if (r == 0)
		*ret = take_ptr(addresses);
	return r;
}

/* Runs a request whose files are fds[1] onwards, and uses them up. */
static int run(struct parser *p, const struct message *m, const int *fds, size_t n_fds,
	       struct buf *answer)
{
	struct parser_request q = {.object = m->object,
				   .flags = m->flags,
				   .demangle = m->demangle,
				   .max_bytes = m->max_bytes,
				   .file_bytes = m->file_bytes,
				   .steps = m->steps,
				   .n = (size_t)m->n};
	_cleanup_(freep) uint64_t *addresses = NULL;
	size_t next = 1;
	int r = n_fds ? read_addresses(fds[0], m->n, &addresses) : -EBADMSG;

	for (unsigned int i = 0; i < TABLES_FILES; i++)
		q.fds[i] = (m->files & 1u << i) && next < n_fds ? fds[next++] : -1;
	while (next < n_fds && q.n_splits < PARSER_SPLITS_MAX)
		q.splits[q.n_splits++] = fds[next++];
	if (r < 0) {
		parser_request_close(&q);
		return r;
	}
	q.addresses = addresses;
	return parser_run(p, &q, answer);
}

static int reply(int socket, int result, const struct buf *answer)
{
	int fd = memory_file(answer->p, result < 0 ? 0 : answer->n);
	const struct message m = {.result = fd < 0 ? fd : result};
	int r = send_message(socket, &m, &fd, fd >= 0);

	closep(&fd);
	return r;
}

int sandboxed_parser_serve(int socket)
{
	struct parser p = PARSER_NULL;
	int r;

	for (;;) {
		_cleanup_(buf_free) struct buf answer = {.limit = ANSWER_MAX_BYTES};
		struct message m;
		int fds[MAX_FDS];
		size_t n;

		r = receive_message(socket, &m, fds, &n);
		if (r < 0) {
			close_all(fds, n);
			break;
		}
		r = run(&p, &m, fds, n, &answer);
		close_all(fds, n ? 1 : 0);
		r = reply(socket, r, &answer);
		if (r < 0)
			break;
	}
	parser_fini(&p);
	return r == -EPIPE ? 0 : r;
}

/* --- Who asks --- */

void sandboxed_parser_stop(struct sandboxed_parser *a)
{
	siginfo_t info;

	if (a->socket < 0)
		return;
	close(take_fd(a->socket));
	syscall(SYS_pidfd_send_signal, a->pidfd, SIGKILL, NULL, 0);
	while (waitid((idtype_t)P_PIDFD, (id_t)a->pidfd, &info, WEXITED) < 0 && errno == EINTR)
		;
	close(take_fd(a->pidfd));
}

static int start(struct sandboxed_parser *a)
{
	int32_t socket, pidfd;
	int r;

	if (a->socket >= 0)
		return 0;
	r = a->service->start(a->self, a->instance, &socket, &pidfd);
	if (r < 0)
		return r;
	a->socket = socket;
	a->pidfd = pidfd;
	a->starts++;
	return 0;
}

static int send_request(const struct sandboxed_parser *a, const struct parser_request *q)
{
	struct message m = {.flags = q->flags,
			    .demangle = q->demangle,
			    .object = q->object,
			    .max_bytes = q->max_bytes,
			    .file_bytes = q->file_bytes,
			    .steps = q->steps,
			    .n = q->n};
	int fds[MAX_FDS] = {memory_file(q->addresses, q->n * sizeof(*q->addresses))}, r;
	size_t n = 1;

	if (fds[0] < 0)
		return fds[0];
	for (unsigned int i = 0; i < TABLES_FILES; i++)
		if (q->fds[i] >= 0) {
			m.files |= 1u << i;
			fds[n++] = q->fds[i];
		}
	for (size_t i = 0; i < q->n_splits; i++)
		fds[n++] = q->splits[i];
	r = send_message(a->socket, &m, fds, n);
	close(fds[0]);
	return r;
}

/* The answer's bytes, whatever their number is said to be. */
static int read_answer(int fd, struct buf *answer)
{
	struct stat st;
	char *room;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < 0 || (uint64_t)st.st_size > ANSWER_MAX_BYTES)
		return -E2BIG;
	room = buf_reserve(answer, (size_t)st.st_size);
	if (!room)
		return -ENOMEM;
	r = file_pread(fd, room, (size_t)st.st_size, 0);
	if (r == 0)
		answer->n += (size_t)st.st_size;
	return r;
}

static int wait_answer(const struct sandboxed_parser *a, struct buf *answer)
{
	struct pollfd ready = {.fd = a->socket, .events = POLLIN};
	struct message m;
	int fds[MAX_FDS], r;
	size_t n;

	do
		r = poll(&ready, 1, SANDBOXED_PARSER_WAIT_MS);
	while (r < 0 && errno == EINTR);
	if (r <= 0)
		return r < 0 ? -errno : -ETIMEDOUT;
	r = receive_message(a->socket, &m, fds, &n);
	if (r == 0 && m.result < 0)
		r = m.result == -ENOMEM ? -ENOMEM : -EBADMSG;
	else if (r == 0)
		r = n == 1 ? read_answer(fds[0], answer) : -EBADMSG;
	close_all(fds, n);
	return r;
}

int sandboxed_parser_ask(void *self, const struct parser_request *q, struct buf *answer)
{
	struct sandboxed_parser *a = self;
	int r = start(a);

	if (r < 0) {
		parser_request_close(q);
		return r == -ENOMEM ? r : -EAGAIN;
	}
	r = send_request(a, q);
	parser_request_close(q);
	if (r == 0)
		r = wait_answer(a, answer);
	if (r == 0 || r == -ENOMEM)
		return r;
	sandboxed_parser_stop(a);
	return -EPIPE;
}
