/* SPDX-License-Identifier: Apache-2.0 */
/* See binaries.h. Files without an interpreter, which are most, cost 40 bytes. */
#include "python/binaries.h"

#include <andiron/object.h>

#include <bpf/bpf.h>
#include <stdlib.h>
#include <unistd.h>

#define BUCKETS 4096u

struct binaries {
	struct andiron_extension objects;
	int layouts;
	struct binary *used[PYTHON_LAYOUTS];
	struct binary *buckets[BUCKETS];
};

struct binaries *binaries_new(const struct andiron_extension *objects, int layouts)
{
	struct binaries *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->objects = *objects;
	b->layouts = layouts;
	return b;
}

void binaries_free(struct binaries *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		while (b->buckets[i]) {
			struct binary *one = b->buckets[i];

			b->buckets[i] = one->next;
			free(one->interpreter);
			free(one);
		}
	free(b);
}

static struct interpreter *read_object(const struct binaries *b, uint64_t object, bool *ret_read)
{
	const struct andiron_objects *objects = b->objects.table;
	struct interpreter *i = calloc(1, sizeof(*i));
	bool has = false;
	int32_t fd;

	*ret_read = false;
	if (i && objects->open(b->objects.self, object, ANDIRON_OPEN_FILE, &fd) == 0) {
		has = interpreter_read(fd, i);
		close(fd);
		*ret_read = true;
	}
	if (has)
		return i;
	free(i);
	return NULL;
}

struct binary *binaries_find(struct binaries *b, uint64_t object)
{
	struct binary **bucket = &b->buckets[object % BUCKETS], *one = *bucket;
	struct interpreter *interpreter;
	bool read;

	for (; one; one = one->next)
		if (one->object == object)
			return one;
	interpreter = read_object(b, object, &read);
	one = read ? calloc(1, sizeof(*one)) : NULL;
	if (!one) {
		free(interpreter);
		return NULL;
	}
	one->object = object;
	one->interpreter = interpreter;
	one->layout = PYTHON_LAYOUTS;
	one->next = *bucket;
	*bucket = one;
	return one;
}

bool binary_retain(struct binaries *b, struct binary *binary)
{
	uint32_t at = binary->layout;

	for (uint32_t i = 0; at == PYTHON_LAYOUTS && i < PYTHON_LAYOUTS; i++)
		if (!b->used[i] || b->used[i]->n_processes == 0)
			at = i;
	if (at == PYTHON_LAYOUTS)
		return false;
	if (binary->layout == PYTHON_LAYOUTS) {
		if (bpf_map_update_elem(b->layouts, &at, &binary->interpreter->layout, BPF_ANY) !=
		    0)
			return false;
		if (b->used[at])
			b->used[at]->layout = PYTHON_LAYOUTS;
		b->used[at] = binary;
		binary->layout = at;
	}
	binary->n_processes++;
	return true;
}

void binary_release(struct binary *binary)
{
	binary->n_processes--;
}
