/* SPDX-License-Identifier: Apache-2.0 */
/* A hash of all entries, a list by last use, and an array of code by address. */
#include "v8/names.h"

#include <stdlib.h>
#include <string.h>

struct names *names_new(void)
{
	struct names *n = calloc(1, sizeof(*n));

	if (n)
		n->bytes = sizeof(*n);
	return n;
}

void names_function_free(struct names_function *f)
{
	if (!f)
		return;
	free(f->name);
	free(f->positions);
	free(f);
}

void names_script_free(struct names_script *s)
{
	if (!s)
		return;
	free(s->name);
	lines_fini(&s->lines);
	free(s);
}

void names_code_free(struct names_code *c)
{
	if (!c)
		return;
	code_fini(&c->code);
	free(c);
}

static void entry_free(struct names_entry *e)
{
	if (e->kind == NAMES_FUNCTION)
		names_function_free((struct names_function *)e);
	else if (e->kind == NAMES_SCRIPT)
		names_script_free((struct names_script *)e);
	else
		names_code_free((struct names_code *)e);
}

void names_free(struct names *n)
{
	struct names_entry *e, *older;

	if (!n)
		return;
	for (e = n->all.newest; e; e = older) {
		older = e->in[0].older;
		entry_free(e);
	}
	free(n->codes);
	free(n);
}

static struct names_entry **entry_slot(struct names *n, uint64_t id, uint32_t kind)
{
	struct names_entry **at = &n->buckets[v8_mix(kind, id) % NAMES_BUCKETS];

	while (*at && ((*at)->id != id || (*at)->kind != kind))
		at = &(*at)->next;
	return at;
}

static struct names_list *owner_of(struct names *n, uint64_t process_id)
{
	return &n->owners[process_id % NAMES_OWNERS];
}

static void list_remove(struct names_list *l, struct names_entry *e, int k)
{
	*(e->in[k].newer ? &e->in[k].newer->in[k].older : &l->newest) = e->in[k].older;
	*(e->in[k].older ? &e->in[k].older->in[k].newer : &l->oldest) = e->in[k].newer;
}

static void list_add(struct names_list *l, struct names_entry *e, int k)
{
	e->in[k].newer = NULL;
	e->in[k].older = l->newest;
	*(l->newest ? &l->newest->in[k].newer : &l->oldest) = e;
	l->newest = e;
}

static void entry_unlink(struct names *n, struct names_entry *e)
{
	list_remove(&n->all, e, 0);
	list_remove(owner_of(n, e->process_id), e, 1);
}

static void entry_link(struct names *n, struct names_entry *e)
{
	list_add(&n->all, e, 0);
	list_add(owner_of(n, e->process_id), e, 1);
}

static struct names_entry *entry_find(struct names *n, uint64_t id, uint32_t kind)
{
	struct names_entry *e = *entry_slot(n, id, kind);

	if (e && e != n->all.newest) {
		entry_unlink(n, e);
		entry_link(n, e);
	}
	return e;
}

struct names_function *names_function(struct names *n, uint64_t id)
{
	return (struct names_function *)entry_find(n, id, NAMES_FUNCTION);
}

struct names_script *names_script(struct names *n, uint64_t id)
{
	return (struct names_script *)entry_find(n, id, NAMES_SCRIPT);
}

/* The first code that ends behind an address. */
static uint32_t codes_at(const struct names *n, uint64_t process_id, uint64_t pc)
{
	uint32_t low = 0, high = n->n_codes;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct names_code *c = n->codes[middle];

		if (c->process_id < process_id || (c->process_id == process_id && c->code.end < pc))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_code_at(const struct names *n, uint32_t i, uint64_t process_id, uint64_t start,
		       uint64_t end)
{
	return i < n->n_codes && n->codes[i]->process_id == process_id &&
	       n->codes[i]->code.start < end && n->codes[i]->code.end >= start;
}

struct names_code *names_code(struct names *n, uint64_t process_id, uint64_t pc)
{
	uint32_t i = codes_at(n, process_id, pc);

	if (!is_code_at(n, i, process_id, pc, pc + 1))
		return NULL;
	entry_find(n, n->codes[i]->entry.id, NAMES_CODE);
	return n->codes[i];
}

static void codes_remove(struct names *n, const struct names_code *c)
{
	uint32_t i = codes_at(n, c->process_id, c->code.end);

	for (; i < n->n_codes && n->codes[i] != c; i++)
		;
	if (i == n->n_codes)
		return;
	n->n_codes--;
	memmove(n->codes + i, n->codes + i + 1, (n->n_codes - i) * sizeof(struct names_code *));
}

static void entry_remove(struct names *n, struct names_entry *e)
{
	*entry_slot(n, e->id, e->kind) = e->next;
	entry_unlink(n, e);
	n->bytes -= e->bytes;
	owner_of(n, e->process_id)->bytes -= e->bytes;
	if (e->kind == NAMES_CODE)
		codes_remove(n, (struct names_code *)e);
	entry_free(e);
}

/* Makes room for an entry of a process. */
static void entry_evict(struct names *n, uint64_t process_id)
{
	struct names_list *most = owner_of(n, process_id);

	if (most->bytes <= NAMES_SHARE)
		for (uint32_t i = 0; i < NAMES_OWNERS; i++)
			if (n->owners[i].bytes > most->bytes)
				most = &n->owners[i];
	entry_remove(n, most->bytes > NAMES_SHARE ? most->oldest : n->all.oldest);
	n->n_evicted++;
}

/* Puts an entry of so many bytes, or frees it. */
static bool entry_put(struct names *n, struct names_entry *e, size_t bytes)
{
	struct names_entry **at = entry_slot(n, e->id, e->kind);

	if (*at)
		entry_remove(n, *at);
	if (bytes > NAMES_SHARE) {
		entry_free(e);
		return false;
	}
	while (n->bytes + bytes > NAMES_BYTES && n->all.oldest)
		entry_evict(n, e->process_id);
	e->bytes = (uint32_t)bytes;
	n->bytes += bytes;
	owner_of(n, e->process_id)->bytes += bytes;
	at = entry_slot(n, e->id, e->kind);
	e->next = *at;
	*at = e;
	entry_link(n, e);
	return true;
}

/* What malloc keeps beside each piece of memory. */
#define PIECE 16u

void names_put_function(struct names *n, struct names_function *f)
{
	f->entry.kind = NAMES_FUNCTION;
	entry_put(n, &f->entry, sizeof(*f) + strlen(f->name) + f->n_positions + 3ull * PIECE);
}

void names_put_script(struct names *n, struct names_script *s)
{
	s->entry.kind = NAMES_SCRIPT;
	entry_put(n, &s->entry,
		  sizeof(*s) + strlen(s->name) + lines_bytes(&s->lines) + 4ull * PIECE);
}

static bool codes_reserve(struct names *n, uint64_t process_id)
{
	uint32_t max = n->max_codes ? 2 * n->max_codes : 256;
	struct names_code **grown;

	while (n->n_codes == NAMES_CODES)
		entry_evict(n, process_id);
	if (n->n_codes < n->max_codes)
		return true;
	grown = realloc(n->codes, max * sizeof(*grown));
	if (!grown)
		return false;
	n->bytes += (max - n->max_codes) * sizeof(*grown);
	n->codes = grown;
	n->max_codes = max;
	return true;
}

/* Whether it is the same code, to which objects belong that the collector has moved. */
static bool is_same_code(const struct code *a, const struct code *b)
{
	return a->start == b->start && a->end == b->end && a->kind == b->kind &&
	       a->n_inlined == b->n_inlined && a->n_steps == b->n_steps &&
	       a->n_positions == b->n_positions && a->n_positions > 0 &&
	       memcmp(a->positions, b->positions, a->n_positions) == 0;
}

bool names_code_has(const struct names_code *c, uint64_t compilation)
{
	bool has = compilation == c->code.compilation;

	for (uint32_t i = 0; i < NAMES_MOVES && !has; i++)
		has = compilation == c->moved[i];
	return has;
}

/* Takes over what is known of the code that was at its addresses before. */
static void code_follow(struct names_code *c, const struct names_code *was)
{
	bool is_read_again = was->code.compilation == c->code.compilation;

	c->replaced |= was->replaced;
	memset(c->moved, 0, sizeof(c->moved));
	if (is_read_again) {
		memcpy(c->moved, was->moved, sizeof(c->moved));
	} else if (is_same_code(&was->code, &c->code)) {
		memcpy(c->moved + 1, was->moved, sizeof(c->moved) - sizeof(c->moved[0]));
		c->moved[0] = (uint16_t)was->code.compilation;
	} else {
		c->replaced = true;
	}
}

void names_put_code(struct names *n, struct names_code *c)
{
	size_t bytes = sizeof(*c) + 4ull * PIECE + code_bytes(&c->code);
	uint64_t start = c->code.start, end = c->code.end;
	uint32_t i = codes_at(n, c->process_id, start);

	c->entry.kind = NAMES_CODE;
	c->entry.process_id = c->process_id;
	while (is_code_at(n, i, c->process_id, start, end)) {
		code_follow(c, n->codes[i]);
		entry_remove(n, &n->codes[i]->entry);
	}
	if (!codes_reserve(n, c->process_id)) {
		names_code_free(c);
		return;
	}
	if (!entry_put(n, &c->entry, bytes))
		return;
	i = codes_at(n, c->process_id, start);
	memmove(n->codes + i + 1, n->codes + i, (n->n_codes - i) * sizeof(struct names_code *));
	n->codes[i] = c;
	n->n_codes++;
}

uint64_t names_script_id(uint64_t seed, uint64_t address, uint64_t number)
{
	return v8_mix(v8_mix(seed, address), number) | 1;
}
