/* SPDX-License-Identifier: Apache-2.0 */
/* andiron.objects/1 (object.h) for the small host: what pyroscope.ebpf asks of a host besides its
 * table. A part's `extension` returns `andiron_min_objects_table()` and a zeroed
 * `struct andiron_min_objects`.
 *
 * It keeps a descriptor of each object until the last release, so nothing has to be opened again
 * and a file that was removed stays readable; with ANDIRON_MIN_OBJECTS of them -ENOMEM is the
 * answer, and the frames of further files have no file. Ids are not used twice. It looks for no
 * debug files (-ENOENT), and asks no file system for generations. */
#ifndef ANDIRON_HOST_MIN_OBJECTS_H
#define ANDIRON_HOST_MIN_OBJECTS_H

#include <andiron/host-min-table.h>
#include <andiron/object.h>
#include <fcntl.h>
#include <sys/stat.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ANDIRON_MIN_OBJECTS 400u

/* Its ids are copied to the heap, by `identify`; `path` with the object. */
struct andiron_min_object {
	uint64_t id; /* 0: a free place */
	uint64_t n_refs;
	int32_t fd;
	uint32_t is_identified;
	uint64_t file_size;
	struct andiron_object_key key;
	struct andiron_str path, gnu_build_id, go_build_id, file_id;
};

struct andiron_min_objects {
	pthread_mutex_t lock; /* all zeroes is an unlocked mutex (Linux) */
	uint64_t last_id;
	struct andiron_min_object all[ANDIRON_MIN_OBJECTS];
};

/* Out of memory it is empty, which is: not known. */
ANDIRON_MIN_FN struct andiron_str andiron_min_str_copy(const struct andiron_str *text)
{
	struct andiron_str copy = {NULL, 0};
	char *memory = text->len ? (char *)malloc((size_t)text->len) : NULL;

	if (memory) {
		memcpy(memory, text->ptr, (size_t)text->len);
		copy.ptr = memory;
		copy.len = text->len;
	}
	return copy;
}

ANDIRON_MIN_FN void andiron_min_str_free(struct andiron_str *text)
{
	free((void *)(uintptr_t)text->ptr);
	text->ptr = NULL;
	text->len = 0;
}

/* All that follow: with the lock. NULL: there is none. */
ANDIRON_MIN_FN struct andiron_min_object *andiron_min_object_of(struct andiron_min_objects *o,
								uint64_t id)
{
	for (uint32_t i = 0; i < ANDIRON_MIN_OBJECTS; i++)
		if (o->all[i].id == id)
			return &o->all[i];
	return NULL;
}

ANDIRON_MIN_FN struct andiron_min_object *
andiron_min_object_by(struct andiron_min_objects *o, const struct andiron_object_key *key)
{
	for (uint32_t i = 0; i < ANDIRON_MIN_OBJECTS; i++) {
		struct andiron_min_object *at = &o->all[i];

		if (at->id && at->key.device == key->device && at->key.inode == key->inode &&
		    at->key.change_ns == key->change_ns)
			return at;
	}
	return NULL;
}

ANDIRON_MIN_FN int32_t andiron_min_object_new(struct andiron_min_objects *o, int32_t fd,
					      const struct andiron_object_key *key,
					      const struct andiron_str *path,
					      struct andiron_min_object **ret)
{
	struct andiron_min_object *at = andiron_min_object_of(o, 0);
	int32_t kept;

	if (!at)
		return -ENOMEM;
	kept = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (kept < 0)
		return -errno;
	if (o->last_id < ANDIRON_OBJECT_KERNEL)
		o->last_id = ANDIRON_OBJECT_KERNEL;
	memset(at, 0, sizeof(*at));
	at->id = ++o->last_id;
	at->fd = kept;
	at->key = *key;
	at->path = andiron_min_str_copy(path);
	*ret = at;
	return 0;
}

ANDIRON_MIN_FN int32_t andiron_min_objects_intern(void *self, int32_t fd,
						  const struct andiron_str *path,
						  const struct andiron_str *reopen,
						  uint64_t *ret_object)
{
	struct andiron_min_objects *o = (struct andiron_min_objects *)self;
	struct andiron_object_key key;
	struct andiron_min_object *at;
	struct stat st;
	int32_t r = 0;

	(void)reopen;
	if (fstat(fd, &st) < 0)
		return -errno;
	memset(&key, 0, sizeof(key));
	key.device = (uint64_t)st.st_dev;
	key.inode = (uint64_t)st.st_ino;
	key.change_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
	pthread_mutex_lock(&o->lock);
	at = andiron_min_object_by(o, &key);
	if (!at)
		r = andiron_min_object_new(o, fd, &key, path, &at);
	if (at) {
		at->file_size = (uint64_t)st.st_size;
		at->n_refs++;
		*ret_object = at->id;
	}
	pthread_mutex_unlock(&o->lock);
	return r;
}

ANDIRON_MIN_FN int32_t andiron_min_objects_find(void *self, const struct andiron_object_key *key,
						uint64_t *ret_object)
{
	struct andiron_min_objects *o = (struct andiron_min_objects *)self;
	struct andiron_min_object *at;

	pthread_mutex_lock(&o->lock);
	at = andiron_min_object_by(o, key);
	if (at) {
		at->n_refs++;
		*ret_object = at->id;
	}
	pthread_mutex_unlock(&o->lock);
	return at ? 0 : -ENOENT;
}

ANDIRON_MIN_FN int32_t andiron_min_objects_identify(void *self, uint64_t object,
						    const struct andiron_str *gnu_build_id,
						    const struct andiron_str *go_build_id,
						    const struct andiron_str *file_id)
{
	struct andiron_min_objects *o = (struct andiron_min_objects *)self;
	struct andiron_min_object *at;

	pthread_mutex_lock(&o->lock);
	at = object ? andiron_min_object_of(o, object) : NULL;
	if (at && !at->is_identified) {
		at->is_identified = 1;
		at->gnu_build_id = andiron_min_str_copy(gnu_build_id);
		at->go_build_id = andiron_min_str_copy(go_build_id);
		at->file_id = andiron_min_str_copy(file_id);
	}
	pthread_mutex_unlock(&o->lock);
	return at ? 0 : -ENOENT;
}

ANDIRON_MIN_FN int32_t andiron_min_objects_info(void *self, uint64_t object,
						struct andiron_object_info *ret_info)
{
	struct andiron_min_objects *o = (struct andiron_min_objects *)self;
	struct andiron_object_info info;
	const struct andiron_min_object *at;

	memset(&info, 0, sizeof(info));
	info.size = ret_info->size < sizeof(info) ? ret_info->size : (uint32_t)sizeof(info);
	pthread_mutex_lock(&o->lock);
	at = object ? andiron_min_object_of(o, object) : NULL;
	if (at) {
		info.key = at->key;
		info.file_size = at->file_size;
		info.path = at->path;
		info.gnu_build_id = at->gnu_build_id;
		info.go_build_id = at->go_build_id;
		info.file_id = at->file_id;
	}
	pthread_mutex_unlock(&o->lock);
	if (!at && object != ANDIRON_OBJECT_KERNEL)
		return -ENOENT;
	memcpy(ret_info, &info, info.size);
	return 0;
}

ANDIRON_MIN_FN int32_t andiron_min_objects_open(void *self, uint64_t object, uint32_t what,
						int32_t *ret_fd)
{
	struct andiron_min_objects *o = (struct andiron_min_objects *)self;
	const struct andiron_min_object *at;
	char path[64];
	int32_t r = -ENOENT, fd;

	pthread_mutex_lock(&o->lock);
	at = object && what == ANDIRON_OPEN_FILE ? andiron_min_object_of(o, object) : NULL;
	if (at) {
		/* Opened again, not duplicated, so that it has its own file position. */
		snprintf(path, sizeof(path), "/proc/self/fd/%d", at->fd);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		r = fd < 0 ? -errno : 0;
		if (fd >= 0)
			*ret_fd = fd;
	}
	pthread_mutex_unlock(&o->lock);
	return r;
}

ANDIRON_MIN_FN void andiron_min_objects_retain(void *self, uint64_t object)
{
	struct andiron_min_objects *o = (struct andiron_min_objects *)self;
	struct andiron_min_object *at;

	pthread_mutex_lock(&o->lock);
	at = object ? andiron_min_object_of(o, object) : NULL;
	if (at)
		at->n_refs++;
	pthread_mutex_unlock(&o->lock);
}

ANDIRON_MIN_FN void andiron_min_objects_release(void *self, uint64_t object)
{
	struct andiron_min_objects *o = (struct andiron_min_objects *)self;
	struct andiron_min_object *at;

	pthread_mutex_lock(&o->lock);
	at = object ? andiron_min_object_of(o, object) : NULL;
	if (at && --at->n_refs == 0) {
		close(at->fd);
		andiron_min_str_free(&at->path);
		andiron_min_str_free(&at->gnu_build_id);
		andiron_min_str_free(&at->go_build_id);
		andiron_min_str_free(&at->file_id);
		at->id = 0;
	}
	pthread_mutex_unlock(&o->lock);
}

/* `open_named` is absent. */
ANDIRON_MIN_FN const struct andiron_objects *andiron_min_objects_table(void)
{
	static const struct andiron_objects table = {
		(uint32_t)offsetof(struct andiron_objects, open_named),
		0,
		andiron_min_objects_intern,
		andiron_min_objects_find,
		andiron_min_objects_identify,
		andiron_min_objects_info,
		andiron_min_objects_open,
		andiron_min_objects_retain,
		andiron_min_objects_release,
		NULL,
	};

	return &table;
}

#ifdef __cplusplus
}
#endif

#endif
