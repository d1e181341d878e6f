/* SPDX-License-Identifier: Apache-2.0 */
/* Who called through sudo: commands run as them, and files belong to them. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

struct caller {
	bool by_sudo; /* root, on behalf of uid; else all else is unset */
	uid_t uid;
	gid_t gid;
	char name[64];
	char home[256]; /* "" if unknown */
};

/* From SUDO_UID and SUDO_GID, which count for root only. */
struct caller caller_get(void);

/* Becomes the caller for good: groups, ids, HOME, USER and LOGNAME. For a child before exec. 0 or a
 * negative errno. */
int caller_become(const struct caller *caller);

/* Gives them a file that root has made; leaves all else alone. */
void caller_own(const struct caller *caller, const char *path);
