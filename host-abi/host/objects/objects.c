/* SPDX-License-Identifier: Apache-2.0 */
/* The interned objects and their descriptors.
 *
 * An id is (reuse count of the slot, slot), so an id that outlived its object finds nothing instead
 * of a stranger. Entries never move, so what a holder of a reference reads (paths, ids) needs no
 * lock; everything else is under one mutex that is never held over a call that may wait for a disk:
 * files are opened outside of it.
 *
 * Invariants: an entry is in the index exactly while its reference count is above 0, and in the
 * list of open ones exactly while it has a descriptor. */
#include "host/objects/objects.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/str.h"
#include "base/vec.h"
#include "host/objects/debug-files.h"
#include "host/objects/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

#define MAX_OBJECTS (1u << 20)

struct object {
	struct andiron_object_key key;
	uint64_t file_size;
	char *path, *reopen;
	char *gnu_build_id, *go_build_id, *file_id;
	struct object *newer, *older; /* among the open ones, by use */
	uint64_t references;
	uint32_t slot;
	uint32_t reuse;
	int fd;
};

struct objects {
	pthread_mutex_t lock;
	VEC(struct object *) slots; /* [0] is NULL, [1] the kernel */
	VEC(uint32_t) unused;
	struct index index;
	struct object *newest, *oldest;
	size_t n_open;
	int kernel_symbols; /* -1: opened each time */
};

static struct objects *lock(void *self)
{
	struct objects *o = self;

	pthread_mutex_lock(&o->lock);
	return o;
}

static void unlockp(struct objects **o)
{
	if (*o)
		pthread_mutex_unlock(&(*o)->lock);
}

static char *copy(const struct andiron_str *s)
{
	return str_dup(s ? (struct str){s->ptr, s->len} : STR_NULL);
}

static struct andiron_str text_of(const char *text)
{
	return (struct andiron_str){text ? text : "", text ? strlen(text) : 0};
}

/* --- Descriptors, least recently used --- */

static void unlink_open(struct objects *o, struct object *e)
{
	*(e->newer ? &e->newer->older : &o->newest) = e->older;
	*(e->older ? &e->older->newer : &o->oldest) = e->newer;
	e->newer = e->older = NULL;
}

static void link_newest(struct objects *o, struct object *e)
{
	check(!e->newer && !e->older);
	e->older = o->newest;
	*(o->newest ? &o->newest->newer : &o->oldest) = e;
	o->newest = e;
}

static void close_object(struct objects *o, struct object *e)
{
	if (e->fd < 0)
		return;
	check(o->n_open > 0);
	unlink_open(o, e);
	close(take_fd(e->fd));
	o->n_open--;
}

/* A duplicate above the standard ones; makes room where there is none. */
static int duplicate(struct objects *o, int fd)
{
	for (;;) {
		int new_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);

		if (new_fd >= 0)
			return new_fd;
		if (errno != EMFILE || !o->oldest)
			return -errno;
		close_object(o, o->oldest);
	}
}

/* Keeps a duplicate of `fd`. Without one the object can still be reopened. */
static void keep(struct objects *o, struct object *e, int fd)
{
	int kept;

	if (e->fd >= 0)
		return;
	while (o->n_open >= OBJECTS_MAX_OPEN)
		close_object(o, o->oldest);
	kept = duplicate(o, fd);
	if (kept < 0)
		return;
	e->fd = kept;
	link_newest(o, e);
	o->n_open++;
	check(o->n_open <= OBJECTS_MAX_OPEN);
}

/* --- Slots and ids --- */

static uint64_t id_of(const struct object *e)
{
	return (uint64_t)e->reuse << 32 | e->slot;
}

static struct object *object_of(const struct objects *o, uint64_t id)
{
	uint32_t slot = (uint32_t)id;
	struct object *e = slot < o->slots.n ? o->slots.p[slot] : NULL;

	return e && e->references > 0 && id_of(e) == id ? e : NULL;
}

struct sought {
	const struct objects *objects;
	const struct andiron_object_key *key;
};

static bool is_sought(const void *context, uint32_t slot)
{
	const struct sought *s = context;

	return identity_same(&s->objects->slots.p[slot]->key, s->key);
}

static struct object *find_key(const struct objects *o, const struct andiron_object_key *key)
{
	struct sought sought = {o, key};
	uint32_t slot = index_find(&o->index, identity_hash(key), is_sought, &sought);

	return slot == INDEX_NONE ? NULL : o->slots.p[slot];
}

static void clear(struct object *e)
{
	free(e->path);
	free(e->reopen);
	free(e->gnu_build_id);
	free(e->go_build_id);
	free(e->file_id);
	*e = (struct object){.slot = e->slot, .reuse = e->reuse, .fd = -1};
}

/* An entry that nobody uses, without references. */
static struct object *unused_entry(struct objects *o)
{
	struct object *e;

	if (o->unused.n > 0)
		return o->slots.p[o->unused.p[o->unused.n - 1]];
	if (o->slots.n >= MAX_OBJECTS || !vec_reserve(&o->slots, 1) ||
	    !vec_reserve(&o->unused, o->slots.n + 1 - o->unused.n))
		return NULL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->fd = -1;
	e->slot = (uint32_t)o->slots.n;
	o->slots.p[o->slots.n++] = e;
	o->unused.p[o->unused.n++] = e->slot;
	return e;
}

static void forget(struct objects *o, struct object *e)
{
	check(index_remove(&o->index, identity_hash(&e->key), e->slot));
	close_object(o, e);
	clear(e);
	e->reuse++;
	check(o->unused.n < o->slots.n);
	o->unused.p[o->unused.n++] = e->slot;
}

static struct object *add_object(struct objects *o, const struct andiron_object_key *key,
				 const struct andiron_str *path, const struct andiron_str *reopen)
{
	struct object *e = unused_entry(o);

	if (!e)
		return NULL;
	e->key = *key;
	e->path = copy(path);
	e->reopen = copy(reopen);
	if (!e->path || !e->reopen || index_add(&o->index, identity_hash(key), e->slot) < 0) {
		clear(e);
		return NULL;
	}
	o->unused.n--;
	return e;
}

/* --- The table --- */

static int32_t objects_intern(void *self, int32_t fd, const struct andiron_str *path,
			      const struct andiron_str *reopen, uint64_t *ret_object)
{
	_cleanup_(unlockp) struct objects *o = NULL;
	struct andiron_object_key key;
	struct object *e;
	uint64_t size;
	int r = identity_of(fd, &key, &size);

	if (r < 0)
		return r;
	o = lock(self);
	e = find_key(o, &key);
	if (!e) {
		e = add_object(o, &key, path, reopen);
		if (!e)
			return -ENOMEM;
		e->file_size = size;
	}
	keep(o, e, fd);
	e->references++;
	*ret_object = id_of(e);
	return 0;
}

static int32_t objects_find(void *self, const struct andiron_object_key *key, uint64_t *ret_object)
{
	_cleanup_(unlockp) struct objects *o = lock(self);
	struct object *e = find_key(o, key);

	if (!e)
		return -ENOENT;
	e->references++;
	*ret_object = id_of(e);
	return 0;
}

/* The first to say something wins, since what was handed out must stay. */
static int say(char **have, const struct andiron_str *text)
{
	if (*have || !text || text->len == 0)
		return 0;
	*have = copy(text);
	return *have ? 0 : -ENOMEM;
}

static int32_t objects_identify(void *self, uint64_t object, const struct andiron_str *gnu_build_id,
				const struct andiron_str *go_build_id,
				const struct andiron_str *file_id)
{
	_cleanup_(unlockp) struct objects *o = lock(self);
	struct object *e = object_of(o, object);
	int r;

	if (!e)
		return -ENOENT;
	r = say(&e->gnu_build_id, gnu_build_id);
	if (r == 0)
		r = say(&e->go_build_id, go_build_id);
	if (r == 0)
		r = say(&e->file_id, file_id);
	return r;
}

static int32_t objects_info(void *self, uint64_t object, struct andiron_object_info *ret_info)
{
	_cleanup_(unlockp) struct objects *o = lock(self);
	const struct object *e = object_of(o, object);
	struct andiron_object_info info;
	uint32_t size = ret_info->size;

	if (!e)
		return -ENOENT;
	info = (struct andiron_object_info){
		.size = size,
		.key = e->key,
		.file_size = e->file_size,
		.path = text_of(e->path),
		.gnu_build_id = text_of(e->gnu_build_id),
		.go_build_id = text_of(e->go_build_id),
		.file_id = text_of(e->file_id),
	};
	memcpy(ret_info, &info, size < sizeof(info) ? size : sizeof(info));
	return 0;
}

static int open_path(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? -errno : fd;
}

/* By its path, if that still leads to the same file. The caller's reference keeps the entry, the
 * rest of what is read here never changes. */
static int open_again(struct objects *o, struct object *e, int32_t *ret_fd)
{
	_cleanup_(closep) int fd = -1;
	struct andiron_object_key key;
	int r;

	if (*e->reopen == '\0')
		return -ENOENT;
	fd = open_path(e->reopen);
	if (fd < 0)
		return fd == -ENOTDIR || fd == -ELOOP ? -ENOENT : fd;
	r = identity_of(fd, &key, NULL);
	if (r < 0)
		return r;
	if (!identity_same(&key, &e->key))
		return -ESTALE;
	pthread_mutex_lock(&o->lock);
	keep(o, e, fd);
	pthread_mutex_unlock(&o->lock);
	*ret_fd = take_fd(fd);
	return 0;
}

static int open_file(struct objects *o, struct object *e, int32_t *ret_fd)
{
	int fd = -EBADF;

	if (e->slot == ANDIRON_OBJECT_KERNEL)
		return -ENOENT;
	pthread_mutex_lock(&o->lock);
	if (e->fd >= 0) {
		unlink_open(o, e);
		link_newest(o, e);
		fd = fcntl(e->fd, F_DUPFD_CLOEXEC, 3);
		fd = fd < 0 ? -errno : fd;
	}
	pthread_mutex_unlock(&o->lock);
	if (fd == -EBADF)
		return open_again(o, e, ret_fd);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

/* What an open descriptor shows was decided when it was opened; one that is opened later, without
 * CAP_SYSLOG, would show no addresses. */
static int open_kallsyms(const struct objects *o, const struct object *e, int32_t *ret_fd)
{
	int fd;

	if (e->slot != ANDIRON_OBJECT_KERNEL)
		return -ENOENT;
	if (o->kernel_symbols < 0)
		fd = open_path("/proc/kallsyms");
	else if ((fd = fcntl(o->kernel_symbols, F_DUPFD_CLOEXEC, 3)) < 0)
		fd = -errno;
	if (fd < 0)
		return fd;
	lseek(fd, 0, SEEK_SET);
	*ret_fd = fd;
	return 0;
}

static int32_t objects_open(void *self, uint64_t object, uint32_t what, int32_t *ret_fd)
{
	struct objects *o = lock(self);
	struct object *e = object_of(o, object);
	const char *build_id = e && e->gnu_build_id ? e->gnu_build_id : "";

	pthread_mutex_unlock(&o->lock);
	if (!e)
		return -ENOENT;
	switch (what) {
	case ANDIRON_OPEN_FILE:
		return open_file(o, e, ret_fd);
	case ANDIRON_OPEN_DEBUG:
		return e->reopen ? debug_file_by_id(e->reopen, str_of(build_id), ret_fd) : -ENOENT;
	case ANDIRON_OPEN_KALLSYMS:
		return open_kallsyms(o, e, ret_fd);
	case ANDIRON_OPEN_PACKAGE:
		return e->reopen ? debug_file_package(e->reopen, ret_fd) : -ENOENT;
	default:
		return -ENOENT;
	}
}

static int32_t objects_open_named(void *self, uint64_t object, uint32_t what,
				  const struct andiron_str *name, int32_t *ret_fd)
{
	const struct str text = {name->ptr, name->len};
	struct objects *o = lock(self);
	struct object *e = object_of(o, object);

	pthread_mutex_unlock(&o->lock);
	if (!e || e->slot == ANDIRON_OBJECT_KERNEL || !e->reopen)
		return -ENOENT;
	switch (what) {
	case ANDIRON_OPEN_DEBUG_LINK:
		return debug_file_by_link(e->reopen, text, ret_fd);
	case ANDIRON_OPEN_BUILD_ID:
		return debug_file_by_id(e->reopen, text, ret_fd);
	case ANDIRON_OPEN_SPLIT:
		return debug_file_split(e->reopen, text, ret_fd);
	default:
		return -ENOENT;
	}
}

static void objects_retain(void *self, uint64_t object)
{
	_cleanup_(unlockp) struct objects *o = lock(self);
	struct object *e = object_of(o, object);

	if (e)
		e->references++;
}

/* The kernel's own reference is never given back. */
static void objects_release(void *self, uint64_t object)
{
	_cleanup_(unlockp) struct objects *o = lock(self);
	struct object *e = object_of(o, object);

	if (!e || (e->slot == ANDIRON_OBJECT_KERNEL && e->references == 1))
		return;
	if (--e->references == 0)
		forget(o, e);
}

const struct andiron_objects objects_service = {
	.size = sizeof(objects_service),
	.intern = objects_intern,
	.find = objects_find,
	.identify = objects_identify,
	.info = objects_info,
	.open = objects_open,
	.retain = objects_retain,
	.release = objects_release,
	.open_named = objects_open_named,
};

struct objects_count objects_count(struct objects *objects)
{
	_cleanup_(unlockp) struct objects *o = lock(objects);

	return (struct objects_count){o->n_open, o->slots.n - 1 - o->unused.n};
}

void objects_free(struct objects *o)
{
	if (!o)
		return;
	vec_each (&o->slots, e) {
		if (!*e)
			continue;
		close_object(o, *e);
		clear(*e);
		free(*e);
	}
	check(o->n_open == 0);
	closep(&o->kernel_symbols);
	vec_free(&o->slots);
	vec_free(&o->unused);
	index_free(&o->index);
	pthread_mutex_destroy(&o->lock);
	free(o);
}
DEFINE_CLEANUP(struct objects *, objects_free);

int objects_new(struct objects **ret, struct error *err)
{
	static const struct andiron_str kernel = {"[kernel]", 8};
	static const struct andiron_object_key key = {0};
	_cleanup_(objects_freep) struct objects *o = calloc(1, sizeof(*o));
	struct object *e;

	if (o)
		o->kernel_symbols = -1;
	if (!o || pthread_mutex_init(&o->lock, NULL) != 0)
		return error_set(err, -ENOMEM, "out of memory");
	if (!vec_push(&o->slots, (struct object *)NULL))
		return error_set(err, -ENOMEM, "out of memory");
	e = add_object(o, &key, &kernel, NULL);
	if (!e)
		return error_set(err, -ENOMEM, "out of memory");
	e->references = 1;
	check(id_of(e) == ANDIRON_OBJECT_KERNEL);
	*ret = take_ptr(o);
	return 0;
}

void objects_set_kernel_symbols(struct objects *o, int fd)
{
	check(o->kernel_symbols < 0);
	o->kernel_symbols = fd;
}
