/* SPDX-License-Identifier: Apache-2.0 */
/* Doing something as another user, in this thread alone.
 *
 * A JVM serves its own user only: its socket is for that user, and it looks at the credentials of
 * who connects. What is done in its folders is done as that user too, so that nothing is opened or
 * overwritten that this user could not: what a JVM puts in our way then harms only itself.
 *
 * glibc's calls change all threads of a process; these are the kernel's. Between enter and leave
 * the caller makes no thread, starts no program, and does not return to others. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

#define IDENTITY_GROUPS 64

struct identity {
	bool switched;
	uid_t uid; /* what was before */
	gid_t gid;
	int n_groups;
	gid_t groups[IDENTITY_GROUPS];
};

/* Takes on effective user and group, without further groups; nothing where they are ours already.
 * 0, or a negative errno and what is lacking: nothing has changed then. */
int identity_enter(struct identity *ret, uid_t uid, gid_t gid, struct error *err);
/* Back to what was. Ends the process if the kernel refuses, which it has no reason to. */
void identity_leave(const struct identity *i);
