/* SPDX-License-Identifier: Apache-2.0 */
/* A list of processes, since there are few, and a hash of numbers, since there are many. */
#include "processes.h"

#include <errno.h>
#include <stdlib.h>

static void process_free(struct process *p)
{
	names_fini(&p->names);
	free(p);
}

void processes_fini(struct processes *p)
{
	while (p->first) {
		struct process *next = p->first->next;

		process_free(p->first);
		p->first = next;
	}
	free(p->numbers);
	*p = (struct processes){0};
}

struct process *processes_find(const struct processes *p, const struct andiron_runtime_process *id)
{
	struct process *i = p->first;

	while (i && (i->id.pid != id->pid || i->id.start_ns != id->start_ns ||
		     i->id.exec_generation != id->exec_generation))
		i = i->next;
	return i;
}

struct process *processes_by_generation(const struct processes *p, uint32_t generation)
{
	struct process *i = p->first;

	while (i && i->generation != generation)
		i = i->next;
	return i;
}

struct process *processes_add(struct processes *p, const struct andiron_runtime_process *id,
			      uint32_t generation, const struct v8_binary *binary)
{
	struct process *added = calloc(1, sizeof(*added));
	struct v8_memory memory;

	if (!added)
		return NULL;
	memory_init(&memory, id->pid);
	names_init(&added->names, &memory, binary);
	added->id = *id;
	added->generation = generation;
	added->binary = binary;
	added->next = p->first;
	p->first = added;
	p->n++;
	return added;
}

static uint64_t number_hash(uint64_t number)
{
	number *= 0x9e3779b97f4a7c15ull;
	return number ^ number >> 32;
}

static struct numbered *number_slot(struct numbered *table, uint32_t max, uint64_t number)
{
	uint64_t at = number_hash(number);

	while (table[at & (max - 1)].number != 0 && table[at & (max - 1)].number != number)
		at++;
	return &table[at & (max - 1)];
}

/* Without those of one process. */
static bool numbers_rebuild(struct processes *p, uint32_t max, const struct process *without)
{
	struct numbered *table = calloc(max, sizeof(*table));
	uint32_t n = 0;

	if (!table)
		return false;
	for (uint32_t i = 0; i < p->max_numbers; i++)
		if (p->numbers[i].number != 0 && p->numbers[i].process != without) {
			*number_slot(table, max, p->numbers[i].number) = p->numbers[i];
			n++;
		}
	free(p->numbers);
	p->numbers = table;
	p->n_numbers = n;
	p->max_numbers = max;
	return true;
}

static void numbers_clear(struct processes *p, const struct process *of)
{
	/* Without memory for a new table the old one keeps entries that say "no function". */
	if (p->max_numbers == 0 || numbers_rebuild(p, p->max_numbers, of))
		return;
	for (uint32_t i = 0; i < p->max_numbers; i++)
		if (p->numbers[i].process == of)
			p->numbers[i].process = NULL, p->numbers[i].function = NULL;
}

/* The last of those that are gone: the one that went, or began, first. */
static void processes_drop_oldest(struct processes *p)
{
	struct process **at = &p->first, **oldest = NULL, *dropped;

	for (; *at; at = &(*at)->next)
		if ((*at)->gone)
			oldest = at;
	if (!oldest)
		return;
	dropped = *oldest;
	*oldest = dropped->next;
	p->n--;
	p->n_gone--;
	numbers_clear(p, dropped);
	process_free(dropped);
}

void processes_gone(struct processes *p, struct process *gone)
{
	uint64_t bytes = 0;

	if (gone->gone)
		return;
	gone->gone = true;
	p->n_gone++;
	for (struct process *i = p->first; i; i = i->next)
		bytes += i->gone ? i->names.bytes : 0;
	while (p->n_gone > GONE_KEPT || (bytes > GONE_BYTES && p->n_gone > 1)) {
		processes_drop_oldest(p);
		bytes = 0;
		for (struct process *i = p->first; i; i = i->next)
			bytes += i->gone ? i->names.bytes : 0;
	}
}

struct numbered *processes_number(const struct processes *p, uint64_t number)
{
	struct numbered *slot;

	if (p->max_numbers == 0 || number == 0)
		return NULL;
	slot = number_slot(p->numbers, p->max_numbers, number);
	return slot->number != 0 && slot->process ? slot : NULL;
}

int processes_add_number(struct processes *p, uint64_t number, struct process *process,
			 struct names_function *function)
{
	struct numbered *slot;

	if (2 * p->n_numbers >= p->max_numbers &&
	    !numbers_rebuild(p, p->max_numbers ? 2 * p->max_numbers : 1024, NULL))
		return -ENOMEM;
	slot = number_slot(p->numbers, p->max_numbers, number);
	p->n_numbers += slot->number == 0;
	*slot = (struct numbered){number, process, function};
	return 0;
}
