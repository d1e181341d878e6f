/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in trust.h. An access list cannot hide: where there is one, the group's bits of the mode
 * are what it gives at most. */
#include "host/registry/trust.h"

#include "base/check.h"

#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool has_capabilities(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	return syscall(SYS_capget, &head, data) == 0 && (data[0].effective || data[1].effective);
}

enum trust trust_needed(void)
{
	if (getauxval(AT_SECURE))
		return TRUST_ROOT;
	return geteuid() == 0 || has_capabilities() ? TRUST_KNOWN : TRUST_ALL;
}

/* What ends it is not to change that folder, which may be /tmp, but to have the file elsewhere. */
static int refuse_for_root(const char *path, const char *why, struct error *err)
{
	return error_set(
		err, -ENOEXEC,
		"%s %s, and this process may do more than who started it: install it where "
		"all folders are root's, and only root may change them",
		path, why);
}

static int check_one(const char *path, const struct stat *st, enum trust needed, struct error *err)
{
	if (needed == TRUST_ROOT && st->st_uid != 0)
		return refuse_for_root(path, "does not belong to root", err);
	if (needed == TRUST_ROOT && (st->st_mode & (S_IWGRP | S_IWOTH)))
		return refuse_for_root(path, "may be changed by others than root", err);
	/* With the sticky bit others cannot replace what is not theirs. */
	if (S_ISDIR(st->st_mode) && (st->st_mode & S_IWOTH) && !(st->st_mode & S_ISVTX))
		return error_set(
			err, -ENOEXEC,
			"anybody may replace what is in %s (mode %04o): run `chmod o-w` on "
			"it",
			path, st->st_mode & 07777);
	return 0;
}

/* With the sticky bit anybody may still put a file of his own there. */
static int check_owner(char *path, const struct stat *file, struct error *err)
{
	char *slash = strrchr(path, '/');
	struct stat st;
	int r;

	check(slash);
	*slash = '\0';
	r = stat(*path ? path : "/", &st) < 0 ? -errno : 0;
	*slash = '/';
	if (r < 0 || !(st.st_mode & S_IWOTH) || file->st_uid == 0 || file->st_uid == geteuid())
		return r < 0 ? error_errno(err, r, "its folder cannot be looked at") : 0;
	return error_set(err, -ENOEXEC,
			 "%s is another user's, in a folder where anybody may put files: move it "
			 "to a folder of your own",
			 path);
}

/* The folders of `path`, which is cut up, from the last to the root. */
static int check_folders(char *path, enum trust needed, struct error *err)
{
	char *slash;
	int r = 0;

	while (r == 0 && (slash = strrchr(path, '/'))) {
		struct stat st;

		*slash = '\0';
		if (stat(*path ? path : "/", &st) < 0)
			return error_errno(err, -errno, "%s cannot be looked at", path);
		r = check_one(*path ? path : "/", &st, needed, err);
	}
	return r;
}

int trust_check(const char *path, const struct stat *st, enum trust needed, struct error *err)
{
	char real[PATH_MAX], written[PATH_MAX];
	int r;

	check(path && st);
	if (needed == TRUST_ALL)
		return 0;
	r = check_one(path, st, needed, err);
	if (r < 0)
		return r;
	/* A descriptor that was handed over: its file was looked at by who opened it. */
	if (strncmp(path, "/proc/self/fd/", 14) == 0)
		return 0;
	if (!realpath(path, real))
		return error_errno(err, -errno, "it cannot be found");
	if ((size_t)snprintf(written, sizeof(written), "%s", path) >= sizeof(written))
		return error_set(err, -ENAMETOOLONG, "its path is too long");
	r = check_owner(real, st, err);
	/* Who may write where a link stands says where it leads. */
	if (r == 0)
		r = check_folders(written, needed, err);
	return r == 0 ? check_folders(real, needed, err) : r;
}
