/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in identity.h. The real and the saved ids stay, so the way back is open, and the JVM's
 * user may not send us signals. The kernel makes the process undumpable as soon as an effective id
 * changes, so that user may not look into it either; it stays so.
 *
 * From root to a user the effective capabilities go, and come back with the user id. From a user to
 * root and back all capabilities of the thread would be gone for good: that is refused. */
#include "java/attach/identity.h"

#include "base/check.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KEEP UINT32_MAX

static int set_user(uid_t uid)
{
	return syscall(SYS_setresuid, KEEP, uid, KEEP) < 0 ? -errno : 0;
}

static int set_group(gid_t gid)
{
	return syscall(SYS_setresgid, KEEP, gid, KEEP) < 0 ? -errno : 0;
}

static int set_groups(int n, const gid_t *groups)
{
	return syscall(SYS_setgroups, n, groups) < 0 ? -errno : 0;
}

int identity_enter(struct identity *ret, uid_t uid, gid_t gid, struct error *err)
{
	int r;

	*ret = (struct identity){.uid = geteuid(), .gid = getegid()};
	if (uid == ret->uid && gid == ret->gid)
		return 0;
	ret->n_groups = getgroups(IDENTITY_GROUPS, ret->groups);
	if (ret->n_groups < 0)
		return error_errno(err, -errno, "cannot list this process's groups");
	if (uid == 0 && ret->uid != 0)
		return error_set(err, -EPERM,
				 "the JVM runs as root and the agent as user %u; run the agent as "
				 "root to profile it",
				 ret->uid);
	r = set_groups(0, NULL);
	if (r == 0) {
		r = set_group(gid);
		if (r == 0 && uid != ret->uid) {
			r = set_user(uid);
			if (r < 0)
				check(set_group(ret->gid) == 0);
		}
		if (r < 0)
			check(set_groups(ret->n_groups, ret->groups) == 0);
	}
	if (r < 0)
		return error_set(err, r,
				 "the JVM runs as user %u, group %u, and the agent (user %u) may "
				 "not act as them; give it CAP_SETUID and CAP_SETGID, or run it as "
				 "that user",
				 uid, gid, ret->uid);
	ret->switched = true;
	return 0;
}

void identity_leave(const struct identity *i)
{
	if (!i->switched)
		return;
	check(geteuid() == i->uid || set_user(i->uid) == 0);
	check(set_group(i->gid) == 0);
	check(set_groups(i->n_groups, i->groups) == 0);
}
