/* SPDX-License-Identifier: Apache-2.0 */
/* See mapped-file.h. */
#include "ebpf/processes/mapped-file.h"

#include "abi/value.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/vec.h"
#include "elf/file.h"
#include "elf/ids.h"

#include <stdlib.h>

struct image {
	struct images *table;
	uint64_t object;
	uint64_t n_refs;
	uint32_t position;
	void *unwind;
	struct elf_file file; /* segments only; its descriptor is gone */
};

struct images {
	struct andiron_extension objects;
	VEC(struct image *) all;
	struct index by_object;
};

struct sought {
	const struct images *table;
	uint64_t object;
};

static bool same_object(const void *context, uint32_t position)
{
	const struct sought *sought = context;

	check(position < sought->table->all.n);
	return sought->table->all.p[position]->object == sought->object;
}

struct images *images_new(const struct andiron_extension *objects)
{
	struct images *t = calloc(1, sizeof(*t));

	if (t)
		t->objects = *objects;
	return t;
}

void images_free(struct images *t)
{
	if (!t)
		return;
	check(t->all.n == 0);
	vec_free(&t->all);
	index_free(&t->by_object);
	free(t);
}

static const struct andiron_objects *service(const struct images *t)
{
	return t->objects.table;
}

/* What a file is known by elsewhere; the first to read it tells all. */
static void identify(const struct images *t, struct image *image, int fd)
{
	struct elf_ids ids = {.file_id = ""};
	struct andiron_str gnu, go, file_id;

	if (elf_file_open(&image->file, fd, NULL) == 0) {
		if (elf_ids_read(&image->file, &ids) != 0)
			ids = (struct elf_ids){.file_id = ""};
		image->file.fd = -1;
	} else {
		image->file = ELF_FILE_NULL;
	}
	gnu = abi_str_of(str_of(ids.gnu_build_id));
	go = abi_str_of(str_of(ids.go_build_id));
	file_id = abi_str_of(str_of(ids.file_id));
	service(t)->identify(t->objects.self, image->object, &gnu, &go, &file_id);
}

static struct image *image_new(struct images *t, int fd, uint64_t object)
{
	struct image *image = calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	*image = (struct image){.table = t, .object = object, .n_refs = 1, .file = ELF_FILE_NULL};
	image->position = (uint32_t)t->all.n;
	if (!vec_push(&t->all, image)) {
		free(image);
		return NULL;
	}
	if (index_add(&t->by_object, hash_u64(object), image->position) != 0) {
		t->all.n--;
		free(image);
		return NULL;
	}
	identify(t, image, fd);
	return image;
}

struct image *image_get(struct images *t, int fd, struct str path, struct str reopen)
{
	struct andiron_str p = abi_str_of(path), r = abi_str_of(reopen);
	struct sought sought = {.table = t};
	struct image *image;
	uint32_t position;

	if (service(t)->intern(t->objects.self, fd, &p, &r, &sought.object) != 0)
		return NULL;
	position = index_find(&t->by_object, hash_u64(sought.object), same_object, &sought);
	if (position == INDEX_NONE) {
		image = image_new(t, fd, sought.object);
		if (!image)
			service(t)->release(t->objects.self, sought.object);
		return image;
	}
	/* The image has its own reference of the object. */
	service(t)->release(t->objects.self, sought.object);
	image = t->all.p[position];
	image_retain(image);
	return image;
}

struct image *images_find(struct images *t, const struct andiron_object_key *key)
{
	struct sought sought = {.table = t};
	struct image *image;
	uint32_t position;

	if (service(t)->find(t->objects.self, key, &sought.object) != 0)
		return NULL;
	position = index_find(&t->by_object, hash_u64(sought.object), same_object, &sought);
	service(t)->release(t->objects.self, sought.object);
	if (position == INDEX_NONE)
		return NULL;
	image = t->all.p[position];
	image_retain(image);
	return image;
}

void image_retain(struct image *image)
{
	check(image->n_refs > 0);
	image->n_refs++;
}

void image_release(struct image *image)
{
	struct images *t = image->table;
	struct image *last;

	check(image->n_refs > 0);
	if (--image->n_refs > 0)
		return;
	check(t->all.p[image->position] == image);
	check(index_remove(&t->by_object, hash_u64(image->object), image->position));
	last = t->all.p[--t->all.n];
	if (last != image) {
		index_move(&t->by_object, hash_u64(last->object), last->position, image->position);
		last->position = image->position;
		t->all.p[image->position] = last;
	}
	service(t)->release(t->objects.self, image->object);
	elf_file_close(&image->file);
	free(image);
}

uint64_t image_object(const struct image *image)
{
	return image->object;
}

bool image_is_elf(const struct image *image)
{
	return image->file.size > 0;
}

uint64_t image_address(const struct image *image, uint64_t offset)
{
	uint64_t address = offset;

	elf_file_vaddr(&image->file, offset, &address);
	return address;
}

void image_set_unwind(struct image *image, void *made)
{
	image->unwind = made;
}

void *image_unwind(const struct image *image)
{
	return image->unwind;
}
