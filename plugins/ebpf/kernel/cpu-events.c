/* SPDX-License-Identifier: Apache-2.0 */
/* See cpu-events.h. */
#include "ebpf/kernel/cpu-events.h"

#include "base/cleanup.h"
#include "base/str.h"

#include <errno.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#define KERNEL_GROUP 1 /* the kernel's own messages; udev's are in another */

int cpu_events_open(void)
{
	const struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP};
	_cleanup_(closep) int fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
		return -errno;
	return take_fd(fd);
}

/* A message begins with "ACTION@PATH". */
static bool is_about_cpu(struct str message)
{
	struct str action = str_cut(&message, '@');

	return (str_is(action, "online") || str_is(action, "offline")) &&
	       str_starts(message, STR("/devices/system/cpu/"));
}

bool cpu_events_take(int fd)
{
	char text[4096];
	bool any = false;

	for (;;) {
		ssize_t n = recv(fd, text, sizeof(text), 0);

		if (n < 0 && errno != ENOBUFS)
			return any;
		any |= n < 0 || is_about_cpu((struct str){text, (size_t)n});
	}
}
