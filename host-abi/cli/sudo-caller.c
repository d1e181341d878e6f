/* SPDX-License-Identifier: Apache-2.0 */
/* See sudo-caller.h. */
#include "cli/sudo-caller.h"

#include "base/cleanup.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool id_from(const char *variable, uint32_t *ret)
{
	uint64_t value;

	if (!str_u64(str_of(getenv(variable)), &value) || value >= UINT32_MAX)
		return false;
	*ret = (uint32_t)value;
	return true;
}

struct caller caller_get(void)
{
	struct caller c = {.by_sudo = false};
	char space[4096];
	struct passwd entry, *found = NULL;

	if (geteuid() != 0 || !id_from("SUDO_UID", &c.uid) || !id_from("SUDO_GID", &c.gid) ||
	    c.uid == 0)
		return (struct caller){.by_sudo = false};
	c.by_sudo = true;
	if (getpwuid_r(c.uid, &entry, space, sizeof(space), &found) == 0 && found) {
		snprintf(c.name, sizeof(c.name), "%s", found->pw_name);
		snprintf(c.home, sizeof(c.home), "%s", found->pw_dir);
	}
	return c;
}

int caller_become(const struct caller *c)
{
	if (!c->by_sudo)
		return 0;
	if ((*c->name ? initgroups(c->name, c->gid) : setgroups(1, &c->gid)) < 0 ||
	    setgid(c->gid) < 0 || setuid(c->uid) < 0)
		return -errno;
	if (*c->home && setenv("HOME", c->home, 1) < 0)
		return -errno;
	if (*c->name && (setenv("USER", c->name, 1) < 0 || setenv("LOGNAME", c->name, 1) < 0))
		return -errno;
	return 0;
}

/* A link, or a second name of somebody else's file, is not given away. */
void caller_own(const struct caller *c, const char *path)
{
	_cleanup_(closep) int fd = -1;
	struct stat st;

	if (!c->by_sudo)
		return;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1 ||
	    st.st_uid != 0)
		return;
	if (fchown(fd, c->uid, c->gid) < 0)
		fprintf(stderr, "andiron: %s stays root's: %m\n", path);
}
