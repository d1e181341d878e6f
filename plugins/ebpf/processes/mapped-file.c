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

struct mapped_file {
	struct mapped_files *table;
	uint64_t object;
	uint64_t n_refs;
	uint32_t position;
	void *unwind;
	struct mapped_file_runtimes runtimes;
	struct elf_file elf; /* segments only; its descriptor is gone */
};

struct mapped_files {
	struct andiron_extension objects;
	VEC(struct mapped_file *) all;
	struct index by_object;
};

struct sought {
	const struct mapped_files *table;
	uint64_t object;
};

static bool same_object(const void *context, uint32_t position)
{
	const struct sought *sought = context;

	check(position < sought->table->all.n);
	return sought->table->all.p[position]->object == sought->object;
}

struct mapped_files *mapped_files_new(const struct andiron_extension *objects)
{
	struct mapped_files *t = calloc(1, sizeof(*t));

	if (t)
		t->objects = *objects;
	return t;
}

void mapped_files_free(struct mapped_files *t)
{
	if (!t)
		return;
	check(t->all.n == 0);
	vec_free(&t->all);
	index_free(&t->by_object);
	free(t);
}

static const struct andiron_objects *service(const struct mapped_files *t)
{
	return t->objects.table;
}

/* The ids of a file; its first reader gives them to the objects service. */
static void identify(const struct mapped_files *t, struct mapped_file *file, int fd)
{
	struct elf_ids ids = {.file_id = ""};
	struct andiron_str gnu, go, file_id;

	if (elf_file_open(&file->elf, fd, NULL) == 0) {
		if (elf_ids_read(&file->elf, &ids) != 0)
			ids = (struct elf_ids){.file_id = ""};
		file->elf.fd = -1;
	} else {
		file->elf = ELF_FILE_NULL;
	}
	gnu = abi_str_of(str_of(ids.gnu_build_id));
	go = abi_str_of(str_of(ids.go_build_id));
	file_id = abi_str_of(str_of(ids.file_id));
	service(t)->identify(t->objects.self, file->object, &gnu, &go, &file_id);
}

static struct mapped_file *mapped_file_new(struct mapped_files *t, int fd, uint64_t object)
{
	struct mapped_file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	check(t->all.n < INDEX_NONE);
	*file = (struct mapped_file){
		.table = t, .object = object, .n_refs = 1, .elf = ELF_FILE_NULL};
	file->position = (uint32_t)t->all.n;
	if (!vec_push(&t->all, file)) {
		free(file);
		return NULL;
	}
	if (index_add(&t->by_object, hash_u64(object), file->position) != 0) {
		t->all.n--;
		free(file);
		return NULL;
	}
	identify(t, file, fd);
	return file;
}

struct mapped_file *mapped_file_get(struct mapped_files *t, int fd, struct str path,
				    struct str reopen)
{
	struct andiron_str p = abi_str_of(path), r = abi_str_of(reopen);
	struct sought sought = {.table = t};
	struct mapped_file *file;
	uint32_t position;

	if (service(t)->intern(t->objects.self, fd, &p, &r, &sought.object) != 0)
		return NULL;
	position = index_find(&t->by_object, hash_u64(sought.object), same_object, &sought);
	if (position == INDEX_NONE) {
		file = mapped_file_new(t, fd, sought.object);
		if (!file)
			service(t)->release(t->objects.self, sought.object);
		return file;
	}
	/* The file has its own reference of the object. */
	service(t)->release(t->objects.self, sought.object);
	file = t->all.p[position];
	mapped_file_retain(file);
	return file;
}

struct mapped_file *mapped_files_find(struct mapped_files *t, const struct andiron_object_key *key)
{
	struct sought sought = {.table = t};
	struct mapped_file *file;
	uint32_t position;

	if (service(t)->find(t->objects.self, key, &sought.object) != 0)
		return NULL;
	position = index_find(&t->by_object, hash_u64(sought.object), same_object, &sought);
	service(t)->release(t->objects.self, sought.object);
	if (position == INDEX_NONE)
		return NULL;
	file = t->all.p[position];
	mapped_file_retain(file);
	return file;
}

void mapped_file_retain(struct mapped_file *file)
{
	check(file->n_refs > 0);
	file->n_refs++;
}

void mapped_file_release(struct mapped_file *file)
{
	struct mapped_files *t = file->table;
	struct mapped_file *last;

	check(file->n_refs > 0);
	if (--file->n_refs > 0)
		return;
	check(t->all.p[file->position] == file);
	check(index_remove(&t->by_object, hash_u64(file->object), file->position));
	last = t->all.p[--t->all.n];
	if (last != file) {
		index_move(&t->by_object, hash_u64(last->object), last->position, file->position);
		last->position = file->position;
		t->all.p[file->position] = last;
	}
	service(t)->release(t->objects.self, file->object);
	elf_file_close(&file->elf);
	free(file);
}

struct mapped_file_runtimes *mapped_file_runtimes(struct mapped_file *file)
{
	return &file->runtimes;
}

void mapped_files_forget_runtimes(struct mapped_files *t)
{
	vec_each (&t->all, file)
		(*file)->runtimes = (struct mapped_file_runtimes){0};
}

bool mapped_file_is_shared(const struct mapped_file *file, uint64_t n_refs)
{
	return file->n_refs > n_refs;
}

uint64_t mapped_file_object(const struct mapped_file *file)
{
	return file->object;
}

bool mapped_file_is(const struct mapped_file *file, uint64_t device, uint64_t inode)
{
	const struct mapped_files *t = file->table;
	struct andiron_object_info info = {.size = sizeof(info)};

	return service(t)->info(t->objects.self, file->object, &info) == 0 &&
	       info.key.device == device && info.key.inode == inode;
}

bool mapped_file_is_elf(const struct mapped_file *file)
{
	return file->elf.size > 0;
}

uint64_t mapped_file_address(const struct mapped_file *file, uint64_t offset)
{
	uint64_t address = offset;

	elf_file_vaddr(&file->elf, offset, &address);
	return address;
}

void mapped_file_set_unwind(struct mapped_file *file, void *made)
{
	check(!made || !file->unwind);
	file->unwind = made;
}

void *mapped_file_unwind(const struct mapped_file *file)
{
	return file->unwind;
}
