/* SPDX-License-Identifier: Apache-2.0 */
/* See identity.h. The generation is asked for only where the file system keeps one in the inode;
 * elsewhere (FUSE, NFS) the same request may travel to a server that never answers. */
#include "host/objects/identity.h"

#include "base/clock.h"
#include "base/hash.h"

#include <errno.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

static bool keeps_generation(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	return fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == BTRFS_SUPER_MAGIC ||
	       fs.f_type == XFS_SUPER_MAGIC || fs.f_type == F2FS_SUPER_MAGIC;
}

/* The ioctl is declared for a long and writes an int. */
static uint64_t generation_of(int fd)
{
	unsigned int generation[2] = {0, 0};

	if (!keeps_generation(fd) || ioctl(fd, FS_IOC_GETVERSION, generation) < 0)
		return 0;
	return generation[0];
}

int identity_of(int fd, struct andiron_object_key *ret, uint64_t *ret_size)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*ret = (struct andiron_object_key){
		.device = st.st_dev,
		.inode = st.st_ino,
		.generation = S_ISREG(st.st_mode) ? generation_of(fd) : 0,
		.change_ns = (int64_t)st.st_ctim.tv_sec * NS_PER_SEC + st.st_ctim.tv_nsec,
	};
	if (ret_size)
		*ret_size = st.st_size > 0 ? (uint64_t)st.st_size : 0;
	return 0;
}

bool identity_same(const struct andiron_object_key *a, const struct andiron_object_key *b)
{
	return a->device == b->device && a->inode == b->inode && a->change_ns == b->change_ns &&
	       (a->generation == b->generation || !a->generation || !b->generation);
}

uint64_t identity_hash(const struct andiron_object_key *key)
{
	return hash_mix(hash_mix(key->device, key->inode), (uint64_t)key->change_ns);
}
