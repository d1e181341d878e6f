/* SPDX-License-Identifier: Apache-2.0 */
/* Slots stand in an array, in which a hand goes round. A slot that was used since the hand passed
 * stays once more; another one leaves. Ids and contents each have chains, by keyed hashes: with
 * open addressing, leaving would need tombstones.
 *
 * The slots of a process have a list, from the oldest to the newest. Processes share OWNERS lists,
 * by a keyed hash, too.
 *
 * A content is counted by the ids that have it and by the reader that uses it (a pin). */
#include "runtime-kit/name-cache.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define SLOTS_MIN      256u
#define MALLOC_BYTES   16u /* that malloc adds to a block */
#define NONE           UINT32_MAX
#define OWNERS         256u
#define SLOT_ALL_BYTES (sizeof(struct slot) + sizeof(uint32_t) + sizeof(struct content *))

struct content {
	struct content *next; /* of its bucket */
	uint64_t hash;        /* of all that follows */
	uint32_t n_users;
	uint32_t n_function, n_file, n_table, first_line, kind;
	uint64_t extra;
	char bytes[]; /* function, file, table */
};

struct slot {
	uint64_t id; /* 0: free */
	struct content *content;
	uint32_t next;         /* of its bucket, or of the free ones */
	uint32_t older, newer; /* of its owner */
	uint16_t owner;
	bool used; /* since the hand passed, or since it was the oldest */
};

struct owner {
	size_t bytes; /* of the contents of its slots */
	uint32_t oldest, newest;
};

struct name_cache {
	pthread_mutex_t lock;
	size_t max, bytes;
	uint64_t key[2];
	struct slot *slots;
	uint32_t *buckets;         /* of ids: n_slots of them, which is a power of two */
	struct content **contents; /* buckets of contents: as many */
	uint32_t n_slots, n_used, free, hand;
	struct owner owners[OWNERS]; /* the first is of names that are nobody's */
	uint32_t last;               /* slot of the name that came last */
	uint64_t n_evicted;
	struct content *pins[NAME_CACHE_PINS];
	uint32_t n_pins;
};

static uint64_t mix(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_bytes(const struct name_cache *c, const void *bytes, size_t n)
{
	uint64_t h = c->key[0] ^ n, word;

	for (size_t i = 0; i < n; i += sizeof(word)) {
		word = 0;
		memcpy(&word, (const char *)bytes + i, n - i < sizeof(word) ? n - i : sizeof(word));
		h = mix(h ^ word, c->key[1]);
	}
	return h;
}

static uint32_t *bucket_of(const struct name_cache *c, uint64_t id)
{
	return &c->buckets[mix(id ^ c->key[0], c->key[1]) & (c->n_slots - 1)];
}

static struct content **contents_of(const struct name_cache *c, uint64_t hash)
{
	return &c->contents[hash & (c->n_slots - 1)];
}

static size_t content_size(const struct content *e)
{
	return sizeof(*e) + e->n_function + e->n_file + e->n_table;
}

/* Makes room for n slots, which is more than there are. */
static bool grow(struct name_cache *c, uint32_t n)
{
	struct name_cache old = *c;
	struct slot *slots = calloc(n, sizeof(*slots));
	uint32_t *buckets = malloc(n * sizeof(*buckets));
	struct content **contents = calloc(n, sizeof(struct content *));

	if (!slots || !buckets || !contents) {
		free(slots);
		free(buckets);
		free(contents);
		return false;
	}
	c->slots = slots;
	c->buckets = buckets;
	c->contents = contents;
	c->n_slots = n;
	c->free = NONE;
	c->bytes += (size_t)(n - old.n_slots) * SLOT_ALL_BYTES;
	for (uint32_t i = 0; i < n; i++)
		buckets[i] = NONE;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t *head = &c->free;

		if (i < old.n_slots) {
			slots[i] = old.slots[i];
			head = bucket_of(c, slots[i].id);
		}
		slots[i].next = *head;
		*head = i;
	}
	for (uint32_t i = 0; i < old.n_slots; i++)
		while (old.contents[i]) {
			struct content *e = old.contents[i], **head = contents_of(c, e->hash);

			old.contents[i] = e->next;
			e->next = *head;
			*head = e;
		}
	free(old.slots);
	free(old.buckets);
	free(old.contents);
	return true;
}

struct name_cache *name_cache_new(size_t max)
{
	struct name_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->max = max;
	c->bytes = sizeof(*c);
	c->free = NONE;
	for (uint32_t i = 0; i < OWNERS; i++)
		c->owners[i] = (struct owner){0, NONE, NONE};
	if (getrandom(c->key, sizeof(c->key), 0) != sizeof(c->key) || !grow(c, SLOTS_MIN)) {
		free(c);
		return NULL;
	}
	c->key[1] |= 1;
	pthread_mutex_init(&c->lock, NULL);
	return c;
}

static void content_release(struct name_cache *c, struct content *e)
{
	struct content **at = contents_of(c, e->hash);

	if (--e->n_users > 0)
		return;
	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	c->bytes -= content_size(e) + MALLOC_BYTES;
	free(e);
}

static void drop_pins(struct name_cache *c)
{
	while (c->n_pins > 0)
		content_release(c, c->pins[--c->n_pins]);
}

void name_cache_free(struct name_cache *c)
{
	if (!c)
		return;
	drop_pins(c);
	for (uint32_t i = 0; i < c->n_slots; i++)
		if (c->slots[i].id != 0)
			content_release(c, c->slots[i].content);
	free(c->slots);
	free(c->buckets);
	free(c->contents);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static struct slot *find_slot(const struct name_cache *c, uint64_t id)
{
	uint32_t at = *bucket_of(c, id);

	while (at != NONE && c->slots[at].id != id)
		at = c->slots[at].next;
	return at != NONE ? &c->slots[at] : NULL;
}

static uint16_t owner_of(const struct name_cache *c, uint64_t process)
{
	return process ? (uint16_t)(1 + mix(process ^ c->key[0], c->key[1]) % (OWNERS - 1)) : 0;
}

/* Puts a slot at the end of its owner's list. */
static void own(struct name_cache *c, uint32_t at)
{
	struct slot *s = &c->slots[at];
	struct owner *o = &c->owners[s->owner];

	o->bytes += content_size(s->content);
	s->older = o->newest;
	s->newer = NONE;
	*(o->newest != NONE ? &c->slots[o->newest].newer : &o->oldest) = at;
	o->newest = at;
}

static void disown(struct name_cache *c, uint32_t at)
{
	struct slot *s = &c->slots[at];
	struct owner *o = &c->owners[s->owner];

	o->bytes -= content_size(s->content);
	*(s->older != NONE ? &c->slots[s->older].newer : &o->oldest) = s->newer;
	*(s->newer != NONE ? &c->slots[s->newer].older : &o->newest) = s->older;
}

/* The id of the slot, which is free then. */
static uint64_t free_slot(struct name_cache *c, uint32_t at)
{
	struct slot *s = &c->slots[at];
	uint32_t *link = bucket_of(c, s->id);
	uint64_t id = s->id;

	while (*link != at)
		link = &c->slots[*link].next;
	*link = s->next;
	disown(c, at);
	content_release(c, s->content);
	*s = (struct slot){.next = c->free};
	c->free = at;
	c->n_used--;
	return id;
}

/* The copy of a name, with one more user; NULL: no memory. */
static struct content *content_retain(struct name_cache *c, const struct name *name)
{
	size_t n = sizeof(struct content) + name->n_function + name->n_file + name->n_table;
	size_t head = offsetof(struct content, n_function);
	struct content *e = malloc(n), **at, *equal;

	if (!e)
		return NULL;
	memset(e, 0, sizeof(*e));
	e->n_users = 1;
	e->n_function = name->n_function;
	e->n_file = name->n_file;
	e->n_table = name->n_table;
	e->first_line = name->first_line;
	e->kind = name->kind;
	e->extra = name->extra;
	memcpy(e->bytes, name->function, name->n_function);
	if (name->n_file)
		memcpy(e->bytes + e->n_function, name->file, name->n_file);
	if (name->n_table)
		memcpy(e->bytes + e->n_function + e->n_file, name->table, name->n_table);
	e->hash = hash_bytes(c, (char *)e + head, n - head);
	at = contents_of(c, e->hash);
	for (equal = *at; equal; equal = equal->next)
		if (equal->hash == e->hash && content_size(equal) == n &&
		    memcmp((char *)equal + head, (char *)e + head, n - head) == 0)
			break;
	if (equal) {
		free(e);
		equal->n_users++;
		return equal;
	}
	e->next = *at;
	*at = e;
	c->bytes += n + MALLOC_BYTES;
	return e;
}

/* Slots may take half of the bytes. */
static bool has_slot(struct name_cache *c)
{
	return c->free != NONE ||
	       ((size_t)c->n_slots * 2 * SLOT_ALL_BYTES <= c->max / 2 && grow(c, c->n_slots * 2));
}

static int put(struct name_cache *c, uint64_t id, const struct name *name)
{
	struct content *content;
	struct slot *s;
	uint32_t at;

	if (c->bytes > c->max || !has_slot(c))
		return -ENOSPC;
	content = content_retain(c, name);
	if (!content)
		return -ENOMEM;
	s = find_slot(c, id);
	at = s ? (uint32_t)(s - c->slots) : c->free;
	if (s) {
		disown(c, at);
		content_release(c, s->content);
	} else {
		s = &c->slots[at];
		c->free = s->next;
		*s = (struct slot){.id = id, .next = *bucket_of(c, id)};
		*bucket_of(c, id) = at;
		c->n_used++;
	}
	s->used = s->content != NULL;
	s->content = content;
	s->owner = owner_of(c, name->owner);
	own(c, at);
	c->last = at;
	return 0;
}

int name_cache_put(struct name_cache *c, uint64_t id, const struct name *name)
{
	int r;

	if (id == 0 || name->n_function == 0 || name->n_function > NAME_TEXT_MAX ||
	    name->n_file > NAME_TEXT_MAX || name->n_table > NAME_TABLE_MAX)
		return -EINVAL;
	pthread_mutex_lock(&c->lock);
	r = put(c, id, name);
	pthread_mutex_unlock(&c->lock);
	return r;
}

static bool has_more_than_its_share(const struct name_cache *c, const struct owner *o)
{
	return o != c->owners && o->bytes > c->max / NAME_CACHE_SHARE && o->oldest != o->newest;
}

/* Who is to lose a name: a process with more than its share, at first for its own ones; NULL:
 * whoever. */
static struct owner *choose_owner(struct name_cache *c)
{
	struct owner *most = &c->owners[c->slots[c->last].owner];

	if (has_more_than_its_share(c, most))
		return most;
	most = &c->owners[1];
	for (struct owner *o = most + 1; o < c->owners + OWNERS; o++)
		if (o->bytes > most->bytes)
			most = o;
	return has_more_than_its_share(c, most) ? most : NULL;
}

/* The slot that is to leave next, which is not the one that came last. */
static uint32_t choose(struct name_cache *c)
{
	struct owner *o = choose_owner(c);

	for (;;) {
		uint32_t at = o ? o->oldest : c->hand;
		struct slot *s = &c->slots[at];

		if (!o)
			c->hand = (c->hand + 1) & (c->n_slots - 1);
		if (s->id != 0 && !s->used && (at != c->last || c->n_used == 1))
			return at;
		s->used = false;
		if (o) {
			disown(c, at);
			own(c, at);
		}
	}
}

uint64_t name_cache_excess(struct name_cache *c)
{
	uint64_t id = 0;

	pthread_mutex_lock(&c->lock);
	if (c->n_used > 0 && (c->bytes > c->max || !has_slot(c))) {
		id = free_slot(c, choose(c));
		c->n_evicted++;
	}
	pthread_mutex_unlock(&c->lock);
	return id;
}

void name_cache_begin(struct name_cache *c)
{
	pthread_mutex_lock(&c->lock);
	drop_pins(c);
	pthread_mutex_unlock(&c->lock);
}

bool name_cache_find(struct name_cache *c, uint64_t id, struct name *ret)
{
	struct content *e = NULL;
	struct slot *s;

	pthread_mutex_lock(&c->lock);
	s = id && c->n_pins < NAME_CACHE_PINS ? find_slot(c, id) : NULL;
	if (s) {
		e = s->content;
		s->used = true;
		e->n_users++;
		c->pins[c->n_pins++] = e;
	}
	pthread_mutex_unlock(&c->lock);
	if (!e)
		return false;
	*ret = (struct name){
		.function = e->bytes,
		.n_function = e->n_function,
		.file = e->bytes + e->n_function,
		.n_file = e->n_file,
		.first_line = e->first_line,
		.kind = e->kind,
		.extra = e->extra,
		.table = (const unsigned char *)e->bytes + e->n_function + e->n_file,
		.n_table = e->n_table,
	};
	return true;
}

struct name_cache_counts name_cache_counts(struct name_cache *c)
{
	struct name_cache_counts ret;

	pthread_mutex_lock(&c->lock);
	ret = (struct name_cache_counts){c->bytes, c->n_used, c->n_evicted};
	pthread_mutex_unlock(&c->lock);
	return ret;
}
