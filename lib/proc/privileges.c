/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in privileges.h. Made by bare system calls: libcap would be a library for three calls.
 *
 * Order matters: the bounding set is cut while CAP_SETPCAP is still there, and what is left is read
 * back, since a security module may refuse or change what was asked for without an error. */
#include "proc/privileges.h"

#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* By number. */
static const char *const names[] = {
	"CAP_CHOWN",
	"CAP_DAC_OVERRIDE",
	"CAP_DAC_READ_SEARCH",
	"CAP_FOWNER",
	"CAP_FSETID",
	"CAP_KILL",
	"CAP_SETGID",
	"CAP_SETUID",
	"CAP_SETPCAP",
	"CAP_LINUX_IMMUTABLE",
	"CAP_NET_BIND_SERVICE",
	"CAP_NET_BROADCAST",
	"CAP_NET_ADMIN",
	"CAP_NET_RAW",
	"CAP_IPC_LOCK",
	"CAP_IPC_OWNER",
	"CAP_SYS_MODULE",
	"CAP_SYS_RAWIO",
	"CAP_SYS_CHROOT",
	"CAP_SYS_PTRACE",
	"CAP_SYS_PACCT",
	"CAP_SYS_ADMIN",
	"CAP_SYS_BOOT",
	"CAP_SYS_NICE",
	"CAP_SYS_RESOURCE",
	"CAP_SYS_TIME",
	"CAP_SYS_TTY_CONFIG",
	"CAP_MKNOD",
	"CAP_LEASE",
	"CAP_AUDIT_WRITE",
	"CAP_AUDIT_CONTROL",
	"CAP_SETFCAP",
	"CAP_MAC_OVERRIDE",
	"CAP_MAC_ADMIN",
	"CAP_SYSLOG",
	"CAP_WAKE_ALARM",
	"CAP_BLOCK_SUSPEND",
	"CAP_AUDIT_READ",
	"CAP_PERFMON",
	"CAP_BPF",
	"CAP_CHECKPOINT_RESTORE",
};
#define N_NAMES ((int)(sizeof(names) / sizeof(names[0])))

_Static_assert(CAP_CHECKPOINT_RESTORE == 40 && CAP_SYSLOG == 34 && CAP_SETPCAP == 8,
	       "the names are by number");

int privilege_number(const char *name)
{
	for (int i = 0; i < N_NAMES; i++)
		if (strcmp(name, names[i]) == 0)
			return i;
	return -1;
}

const char *privilege_name(int capability)
{
	return capability >= 0 && capability < N_NAMES ? names[capability] : "an unknown one";
}

struct sets {
	uint64_t effective, permitted, inheritable;
};

static int get_sets(struct sets *ret)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3] = {{0}};

	if (syscall(SYS_capget, &head, d) < 0)
		return -errno;
	*ret = (struct sets){
		.effective = (uint64_t)d[1].effective << 32 | d[0].effective,
		.permitted = (uint64_t)d[1].permitted << 32 | d[0].permitted,
		.inheritable = (uint64_t)d[1].inheritable << 32 | d[0].inheritable,
	};
	return 0;
}

static int set_sets(const struct sets *s)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3] = {
		{(uint32_t)s->effective, (uint32_t)s->permitted, (uint32_t)s->inheritable},
		{(uint32_t)(s->effective >> 32), (uint32_t)(s->permitted >> 32),
		 (uint32_t)(s->inheritable >> 32)},
	};

	return syscall(SYS_capset, &head, d) < 0 ? -errno : 0;
}

uint64_t privileges_held(void)
{
	struct sets s;

	return get_sets(&s) < 0 ? 0 : s.permitted;
}

int privileges_use(uint64_t mask)
{
	struct sets s;
	int r = get_sets(&s);

	if (r < 0)
		return r;
	s.effective = s.permitted & mask;
	return set_sets(&s);
}

/* Capabilities that we know no name for end with the first that the kernel does not know. */
static int cut_bounding_set(uint64_t mask)
{
	for (int c = 0; c < 64; c++) {
		int in = prctl(PR_CAPBSET_READ, c, 0, 0, 0);

		if (in < 0)
			return 0;
		if (in && !(mask & PRIVILEGE(c)) && prctl(PR_CAPBSET_DROP, c, 0, 0, 0) < 0)
			return -errno;
	}
	return 0;
}

static int keep(uint64_t mask)
{
	struct sets now, wanted;
	int r = get_sets(&now);

	if (r < 0)
		return r;
	/* It may be out of use. */
	if (now.permitted & PRIVILEGE(CAP_SETPCAP))
		r = privileges_use(PRIVILEGE(CAP_SETPCAP)) ?: cut_bounding_set(mask);
	if (r < 0)
		return r;
	/* Kernels before 4.3 have none, and none there is to clear. */
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL)
		return -errno;
	wanted =
		(struct sets){.effective = now.permitted & mask, .permitted = now.permitted & mask};
	r = set_sets(&wanted);
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	if (r == 0)
		r = get_sets(&now);
	if (r < 0)
		return r;
	return memcmp(&now, &wanted, sizeof(now)) == 0 &&
			       prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1
		       ? 0
		       : -EPERM;
}

/* 1 or more; a negative errno. */
static int count_threads(void)
{
	DIR *folder = opendir("/proc/self/task");
	const struct dirent *e;
	int n = 0;

	if (!folder)
		return -errno;
	while ((e = readdir(folder)))
		n += e->d_name[0] != '.';
	closedir(folder);
	return n;
}

int privileges_keep(uint64_t mask)
{
	int n = count_threads();

	if (n < 0)
		return n;
	return n > 1 ? -EBUSY : keep(mask);
}

int privileges_drop(void)
{
	return keep(0);
}
