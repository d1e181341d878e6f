/* SPDX-License-Identifier: Apache-2.0 */
/* See pidfd-set.h: an epoll instance of its own, whose members report once. */
#include "cli/record/pidfd-set.h"

#include "base/check.h"
#include "base/cleanup.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

void ends_fini(struct ends *ends)
{
	vec_each (&ends->owned, fd)
		close(*fd);
	vec_free(&ends->owned);
	closep(&ends->fd);
	*ends = ENDS_NULL;
}

int ends_add(struct ends *ends, pid_t pid)
{
	struct epoll_event once = {.events = EPOLLIN | EPOLLONESHOT};
	_cleanup_(closep) int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		return -errno;
	if (ends->fd < 0)
		ends->fd = epoll_create1(EPOLL_CLOEXEC);
	if (ends->fd < 0 || epoll_ctl(ends->fd, EPOLL_CTL_ADD, fd, &once) < 0)
		return -errno;
	if (!vec_push(&ends->owned, fd))
		return -ENOMEM;
	fd = -1;
	ends->n_left++;
	return 0;
}

size_t ends_take(struct ends *ends)
{
	struct epoll_event events[16];
	int n;

	while ((n = epoll_wait(ends->fd, events, 16, 0)) > 0) {
		check(ends->n_left >= (size_t)n);
		ends->n_left -= (size_t)n;
	}
	return ends->n_left;
}
