/* SPDX-License-Identifier: Apache-2.0 */
/* See binaries.h. */
#include "python/binaries.h"

#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int binaries_init(struct binaries *b, const struct andiron_extension *objects, int layouts,
		  int tasks)
{
	b->layouts = layouts;
	b->tasks = tasks;
	return object_table_init(&b->table, objects, BINARIES_MAX, PYTHON_LAYOUTS);
}

static void binary_free(struct object_entry *e)
{
	struct binary *binary = (struct binary *)(void *)e;

	free(binary->interpreter);
	free(binary->asyncio);
	free(binary->tasks);
	free(binary);
}

void binaries_fini(struct binaries *b)
{
	struct object_entry *e;

	while ((e = object_table_take(&b->table)) != NULL)
		binary_free(e);
	object_table_fini(&b->table);
}

/* Reads a new file. */
static struct binary *binary_read(struct binaries *b, uint64_t object)
{
	struct interpreter *interpreter = malloc(sizeof(*interpreter));
	struct binary *ret = calloc(1, sizeof(*ret));
	struct object_entry *e;
	int fd;

	if (!interpreter || !ret || object_table_open(&b->table, object, &fd) != 0) {
		free(interpreter);
		free(ret);
		return NULL;
	}
	if (interpreter_read(fd, interpreter))
		ret->interpreter = interpreter;
	else
		free(interpreter);
	ret->asyncio = tasks_read(fd);
	close(fd);
	object_table_add(&b->table, &ret->entry, object);
	while ((e = object_table_excess(&b->table)) != NULL)
		binary_free(e);
	return ret;
}

struct binary *binaries_find(struct binaries *b, uint64_t object)
{
	struct object_entry *e = object_table_find(&b->table, object);

	return e ? (struct binary *)(void *)e : binary_read(b, object);
}

bool binary_retain(struct binaries *b, struct binary *binary)
{
	if (object_table_retain(&b->table, &binary->entry) < 0)
		return false;
	if (bpf_map_update_elem(b->layouts, &binary->entry.slot, &binary->interpreter->layout,
				BPF_ANY) == 0 &&
	    (!binary->tasks ||
	     bpf_map_update_elem(b->tasks, &binary->entry.slot, binary->tasks, BPF_ANY) == 0))
		return true;
	object_table_release(&binary->entry);
	return false;
}

bool binary_has_asyncio(struct binaries *b, struct binary *interpreter,
			const struct binary *asyncio)
{
	struct python_tasks tasks;

	if (!tasks_joined(&interpreter->interpreter->tasks, asyncio->asyncio, &tasks))
		return false;
	if (interpreter->tasks)
		return memcmp(interpreter->tasks, &tasks, sizeof(tasks)) == 0;
	if (bpf_map_update_elem(b->tasks, &interpreter->entry.slot, &tasks, BPF_ANY) != 0)
		return false;
	interpreter->tasks = malloc(sizeof(tasks));
	if (interpreter->tasks)
		*interpreter->tasks = tasks;
	return interpreter->tasks != NULL;
}

void binary_release(struct binary *binary)
{
	object_table_release(&binary->entry);
}
