/* SPDX-License-Identifier: Apache-2.0 */
/* See names.h. Two halves: names are added to the young one. When it is full the old one is
 * dropped, and the young one becomes old. What is asked for of the old half is copied to the young
 * one. */
#include "python/names.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS_MIN 1024u

/* An entry, with its texts and its table behind it. */
struct entry {
	uint64_t hash; /* of all that follows */
	uint32_t first_line, lines_kind;
	uint32_t n_function, n_file, n_lines, all_lines;
};

struct slot {
	uint64_t id;   /* 0: none */
	uint32_t at;   /* the entry's place in the half's bytes */
	uint32_t same; /* contents: the slot is by hash, not by id */
};

struct half {
	char *bytes;
	size_t used, room;
	struct slot *slots; /* a power of two; ids, and hashes of contents */
	size_t n_slots, n_used;
};

struct names {
	struct half young, old;
	void (*forget)(void *context, uint64_t id);
	void *context;
};

static void half_free(struct half *h)
{
	free(h->bytes);
	free(h->slots);
	*h = (struct half){0};
}

struct names *names_new(void (*forget)(void *context, uint64_t id), void *context)
{
	struct names *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->forget = forget;
	n->context = context;
	return n;
}

void names_free(struct names *n)
{
	if (!n)
		return;
	half_free(&n->young);
	half_free(&n->old);
	free(n);
}

/* Its slot, or the free one that it would have; the half has slots. */
static struct slot *place_of(const struct half *h, uint64_t id, uint32_t same)
{
	size_t mask = h->n_slots - 1;

	for (size_t i = (id * 0x9e3779b97f4a7c15u) >> 32 & mask;; i = (i + 1) & mask)
		if (h->slots[i].id == 0 || (h->slots[i].id == id && h->slots[i].same == same))
			return &h->slots[i];
}

/* Its slot, or NULL. */
static const struct slot *slot_of(const struct half *h, uint64_t id, uint32_t same)
{
	const struct slot *s = h->n_slots ? place_of(h, id, same) : NULL;

	return s && s->id != 0 ? s : NULL;
}

static bool grow_slots(struct half *h)
{
	struct half larger = {.n_slots = h->n_slots ? h->n_slots * 2 : SLOTS_MIN};

	if ((h->n_used + 2) * 2 <= h->n_slots)
		return true;
	larger.slots = calloc(larger.n_slots, sizeof(*larger.slots));
	if (!larger.slots)
		return false;
	for (size_t i = 0; i < h->n_slots; i++)
		if (h->slots[i].id != 0)
			*place_of(&larger, h->slots[i].id, h->slots[i].same) = h->slots[i];
	free(h->slots);
	h->slots = larger.slots;
	h->n_slots = larger.n_slots;
	return true;
}

static bool set_slot(struct half *h, uint64_t id, uint32_t same, uint32_t at)
{
	struct slot *s;

	if (!grow_slots(h))
		return false;
	s = place_of(h, id, same);
	if (s->id == 0)
		h->n_used++;
	*s = (struct slot){id, at, same};
	return true;
}

static const struct entry *entry_at(const struct half *h, const struct slot *s)
{
	return (const struct entry *)(const void *)(h->bytes + s->at);
}

static size_t entry_bytes(const struct entry *e)
{
	size_t n = sizeof(*e) + e->n_function + e->n_file + e->n_lines;

	return (n + 7) & ~(size_t)7;
}

static uint64_t hash_bytes(const char *bytes, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)bytes[i]) * 0x100000001b3u;
	return h | 1;
}

/* Room for an entry at the half's end. */
static char *make_room(struct half *h, size_t n)
{
	if (h->used + n > h->room) {
		size_t room = h->room * 2 > h->used + n ? h->room * 2 : h->used + n + (1u << 16);
		char *bytes = realloc(h->bytes, room);

		if (!bytes)
			return NULL;
		h->bytes = bytes;
		h->room = room;
	}
	return h->bytes + h->used;
}

/* Drops the old half, of which the program is to tell again. */
static void turn(struct names *n)
{
	for (size_t i = 0; i < n->old.n_slots; i++) {
		const struct slot *s = &n->old.slots[i];

		if (s->id && !s->same && !slot_of(&n->young, s->id, 0))
			n->forget(n->context, s->id);
	}
	half_free(&n->old);
	n->old = n->young;
	n->young = (struct half){0};
}

/* The entry that was just made at the half's end becomes that of `id`, unless an equal one is
 * there. */
static bool keep(struct half *h, uint64_t id, struct entry *e)
{
	size_t n = entry_bytes(e), texts = n - sizeof(*e);
	const struct slot *equal;
	uint32_t at;

	e->hash = hash_bytes((const char *)(e + 1), texts) ^ e->first_line * 0x9e3779b9ull;
	if (e->hash == 0)
		e->hash = 1;
	equal = slot_of(h, e->hash, 1);
	if (equal && memcmp(entry_at(h, equal), e, n) == 0)
		return set_slot(h, id, 0, equal->at);
	at = (uint32_t)h->used;
	if (!set_slot(h, e->hash, 1, at) || !set_slot(h, id, 0, at))
		return false;
	h->used += n;
	return true;
}

/* A character of `width` bytes to UTF-8. */
static size_t put_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 63));
		to[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | (c >> 18 & 7));
	to[1] = (char)(0x80 | (c >> 12 & 63));
	to[2] = (char)(0x80 | (c >> 6 & 63));
	to[3] = (char)(0x80 | (c & 63));
	return 4;
}

/* At most twice as many bytes as `n`. */
static uint32_t to_utf8(char *to, const unsigned char *from, uint32_t n, uint32_t width)
{
	size_t used = 0;

	if (width == 0) {
		memcpy(to, from, n);
		return n;
	}
	for (uint32_t i = 0; i + width <= n; i += width) {
		uint32_t c = 0;

		memcpy(&c, from + i, width);
		used += put_utf8(to + used, c);
	}
	return (uint32_t)used;
}

static bool is_sound(const struct python_record *r, size_t size)
{
	return size >= sizeof(*r) && r->id >= PYTHON_ID_MIN && r->n_name > 0 &&
	       r->n_name <= PYTHON_TEXT_MAX && r->n_file <= PYTHON_TEXT_MAX &&
	       r->n_lines <= PYTHON_LINES_MAX && r->name_width <= 4 && r->file_width <= 4 &&
	       r->name_width != 3 && r->file_width != 3 &&
	       r->lines_kind <= PYTHON_LINES_LOCATIONS &&
	       size - sizeof(*r) >= (size_t)r->n_name + r->n_file + r->n_lines;
}

bool names_add(struct names *n, const void *record, size_t size, const unsigned char *table)
{
	struct python_record r;
	const unsigned char *from = (const unsigned char *)record + sizeof(r);
	size_t most = sizeof(struct entry) + 4 * PYTHON_TEXT_MAX + 8;
	struct entry *e;
	char *texts;

	if (size < sizeof(r))
		return false;
	memcpy(&r, record, sizeof(r));
	if (!is_sound(&r, size) || (table && r.all_lines > NAMES_TABLE_MAX))
		return false;
	if (table)
		r.n_lines = r.all_lines;
	else
		table = from + r.n_name + r.n_file;
	most += r.n_lines;
	if (n->young.used + most > NAMES_BYTES)
		turn(n);
	e = (struct entry *)(void *)make_room(&n->young, most);
	if (!e)
		return false;
	memset(e, 0, most);
	e->first_line = r.first_line;
	e->lines_kind = r.lines_kind;
	e->n_lines = r.n_lines;
	e->all_lines = r.all_lines;
	texts = (char *)(e + 1);
	e->n_function = to_utf8(texts, from, r.n_name, r.name_width);
	texts += e->n_function;
	e->n_file = to_utf8(texts, from + r.n_name, r.n_file, r.file_width);
	memcpy(texts + e->n_file, table, r.n_lines);
	return keep(&n->young, r.id, e);
}

/* What was asked for stays. */
static void promote(struct names *n, uint64_t id, const struct entry *old)
{
	size_t bytes = entry_bytes(old);
	struct entry *e;

	if (n->young.used + bytes > NAMES_BYTES)
		return;
	e = (struct entry *)(void *)make_room(&n->young, bytes);
	if (!e)
		return;
	memcpy(e, old, bytes);
	keep(&n->young, id, e);
}

bool names_find(struct names *n, uint64_t id, struct name *ret)
{
	const struct half *h = &n->young;
	const struct slot *s = slot_of(h, id, 0);
	const struct entry *e;

	if (!s) {
		h = &n->old;
		s = slot_of(h, id, 0);
		if (!s)
			return false;
		promote(n, id, entry_at(h, s));
	}
	e = entry_at(h, s);
	ret->function = (const char *)(e + 1);
	ret->n_function = e->n_function;
	ret->file = ret->function + e->n_function;
	ret->n_file = e->n_file;
	ret->lines = (struct line_table){(const unsigned char *)ret->file + e->n_file, e->n_lines,
					 e->lines_kind, e->first_line};
	ret->all_lines = e->all_lines;
	return true;
}

size_t names_bytes(const struct names *n)
{
	return n->young.room + n->old.room +
	       (n->young.n_slots + n->old.n_slots) * sizeof(struct slot);
}
