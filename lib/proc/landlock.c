/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in landlock.h. The interface is written down here, since the kernel's header in older
 * distributions lacks its newer parts; source: include/uapi/linux/landlock.h of Linux 6.12. Each
 * version of it handles more; an unknown right is refused, so rights are cut to the version. */
#include "proc/landlock.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NR_CREATE_RULESET 444
#define NR_ADD_RULE       445
#define NR_RESTRICT_SELF  446

#define ASK_VERSION  1u
#define PATH_BENEATH 1

#define FS_WRITE_FILE  (UINT64_C(1) << 1)
#define FS_READ_FILE   (UINT64_C(1) << 2)
#define FS_READ_DIR    (UINT64_C(1) << 3)
#define FS_REMOVE_DIR  (UINT64_C(1) << 4)
#define FS_REMOVE_FILE (UINT64_C(1) << 5)
#define FS_MAKE_DIR    (UINT64_C(1) << 7)
#define FS_MAKE_REG    (UINT64_C(1) << 8)
#define FS_REFER       (UINT64_C(1) << 13)
#define FS_TRUNCATE    (UINT64_C(1) << 14)
#define FS_OF_1        ((UINT64_C(1) << 13) - 1)

#define NET_BIND_TCP (UINT64_C(1) << 0)

#define SCOPE_ABSTRACT_SOCKETS (UINT64_C(1) << 0)
#define SCOPE_SIGNALS          (UINT64_C(1) << 1)

#define READING (FS_READ_FILE | FS_READ_DIR)
#define WRITING                                                                                    \
	(READING | FS_WRITE_FILE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG |    \
	 FS_REFER | FS_TRUNCATE)
#define OF_A_FILE (FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE)

struct ruleset {
	uint64_t fs, net, scoped;
};

struct path_beneath {
	uint64_t access;
	int32_t fd;
} __attribute__((packed));

static int allow(int ruleset, const char *path, uint64_t access)
{
	_cleanup_(closep) int fd = open(path, O_PATH | O_CLOEXEC);
	struct path_beneath rule = {.access = access, .fd = fd};
	struct stat st;

	if (fd < 0 && (errno == ENOENT || errno == EACCES || errno == ENOTDIR))
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		rule.access &= OF_A_FILE;
	return syscall(NR_ADD_RULE, ruleset, PATH_BENEATH, &rule, 0) < 0 ? -errno : 0;
}

static int allow_all(int ruleset, const char *const *paths, uint64_t access)
{
	int r = 0;

	for (; *paths && r == 0; paths++)
		r = allow(ruleset, *paths, access);
	return r;
}

/* What a version handles, all of which is then refused but for the rules. */
static struct ruleset rules_of(long version)
{
	return (struct ruleset){
		.fs = FS_OF_1 | (version >= 2 ? FS_REFER : 0) | (version >= 3 ? FS_TRUNCATE : 0),
		.net = version >= 4 ? NET_BIND_TCP : 0,
		.scoped = version >= 6 ? SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS : 0,
	};
}

int landlock_confine(const char *const *readable, const char *const *writable)
{
	long version = syscall(NR_CREATE_RULESET, NULL, 0, ASK_VERSION);
	struct ruleset rules = rules_of(version);
	_cleanup_(closep) int fd = -1;
	size_t n = version >= 6   ? sizeof(rules)
		   : version >= 4 ? offsetof(struct ruleset, scoped)
				  : offsetof(struct ruleset, net);
	int r;

	/* A container's filter may not know the call: EPERM. */
	if (version < 0)
		return -EOPNOTSUPP;
	fd = (int)syscall(NR_CREATE_RULESET, &rules, n, 0);
	if (fd < 0)
		return -errno;
	r = allow_all(fd, readable, READING & rules.fs);
	if (r == 0)
		r = allow_all(fd, writable, WRITING & rules.fs);
	if (r == 0 && syscall(NR_RESTRICT_SELF, fd, 0) < 0)
		r = -errno;
	return r;
}
