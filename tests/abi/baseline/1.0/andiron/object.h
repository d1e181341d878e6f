/* SPDX-License-Identifier: Apache-2.0 */
/* andiron.objects/1: the files that profiled processes map, host-wide.
 *
 * An object is a file by identity (device, inode, generation, change time: inodes are reused, and a
 * wrong name would be silent), interned and reference-counted. A sampler interns a file while it
 * can be opened. A parser gets a descriptor from here: it opens nothing itself, needs no privilege
 * and has no race with a process that has exited. At most 512 descriptors are open; the least
 * recently used closes, its ids stay and the file is opened again, and checked against its
 * identity, when it is needed. */
#ifndef ANDIRON_OBJECT_H
#define ANDIRON_OBJECT_H

#include <andiron/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ANDIRON_OBJECTS_ID "andiron.objects/1"

/* The kernel itself, always there. */
#define ANDIRON_OBJECT_KERNEL 1u

/* What `open` opens. */
#define ANDIRON_OPEN_FILE  1u /* the object itself */
#define ANDIRON_OPEN_DEBUG 2u /* its separate debug file, by build id or debug link */
/* /proc/kallsyms, for ANDIRON_OBJECT_KERNEL. It may be opened once, while the host may see
 * addresses; then all descriptors share one position: read by pread. */
#define ANDIRON_OPEN_KALLSYMS 3u
#define ANDIRON_OPEN_PACKAGE  4u /* its split units, packed: the file's name and ".dwp" */

/* What `open_named` opens. */
#define ANDIRON_OPEN_DEBUG_LINK 1u /* name: as .gnu_debuglink gives it, without a folder */
#define ANDIRON_OPEN_BUILD_ID   2u /* name: a build id in hex; the debug file of that id */
/* name: a split unit's file (.dwo) as the object's debug information gives it: an absolute path, or
 * one from the object's folder. Since 0.1. */
#define ANDIRON_OPEN_SPLIT 3u

/* Frozen. generation is 0 where the file system has none. */
struct andiron_object_key {
	uint64_t device;
	uint64_t inode;
	uint64_t generation;
	int64_t change_ns;
};

/* What is known of an object. Strings live while the caller holds it; empty where unknown. The ids
 * are as in andiron_mapping (batch.h). */
struct andiron_object_info {
	uint32_t size;
	uint32_t reserved;
	struct andiron_object_key key;
	uint64_t file_size;
	struct andiron_str path; /* as the process saw it */
	struct andiron_str gnu_build_id;
	struct andiron_str go_build_id;
	struct andiron_str file_id;
};

/* Every function is [any]. */
struct andiron_objects {
	uint32_t size;
	uint32_t reserved;

	/* Finds or makes the object of the open file `fd` (which stays the
	 * caller's; a duplicate is kept) and returns its id with one reference.
	 * `path` is what the process calls it, `reopen` a path in the host's view
	 * that still leads there later, or empty. -ENOMEM, or fstat's errno.
	 * O(1). */
	int32_t (*intern)(void *self, int32_t fd, const struct andiron_str *path,
			  const struct andiron_str *reopen, uint64_t *ret_object);

	/* Finds without opening. 0 and one reference, or -ENOENT. O(1). */
	int32_t (*find)(void *self, const struct andiron_object_key *key, uint64_t *ret_object);

	/* Records ids once they have been read; the first call wins. Copied. O(len). */
	int32_t (*identify)(void *self, uint64_t object, const struct andiron_str *gnu_build_id,
			    const struct andiron_str *go_build_id,
			    const struct andiron_str *file_id);

	/* What is known; the caller stores sizeof in ret_info->size. -ENOENT. O(1). */
	int32_t (*info)(void *self, uint64_t object, struct andiron_object_info *ret_info);

	/* A new read-only descriptor, close-on-exec, the caller's to close.
	 * -ENOENT if there is no such file, -ESTALE if it is another by now. */
	int32_t (*open)(void *self, uint64_t object, uint32_t what, int32_t *ret_fd);

	/* References; the last release forgets the object. O(1). */
	void (*retain)(void *self, uint64_t object);
	void (*release)(void *self, uint64_t object);

	/* A descriptor, like open's, of a file that belongs to the object by a name. The name is
	 * untrusted: it never leads out of the folders that debug files are kept in, nor
	 * out of the root of a container. The parser compares CRC or build id. -ENOENT.
	 * Since 0.1; absent in tables that are shorter. */
	int32_t (*open_named)(void *self, uint64_t object, uint32_t what,
			      const struct andiron_str *name, int32_t *ret_fd);
};

#ifdef __cplusplus
}
#endif

#endif
