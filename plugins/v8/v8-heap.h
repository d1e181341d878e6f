/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of V8's heap, read from a process's memory. Every object's type is looked at before it is
 * believed, every length is bounded: the memory may change while it is read, and be forged. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "v8/binary.h"
#include "v8/lines.h"

#define MEMORY_MAPS 4u
#define MEMORY_NEAR 4u
#define MEMORY_TELL 4u /* addresses that may be announced at once */

/* Memory of a process, as a reader that may fail at any time: the process ends, its objects move. A
 * budget bounds what one look at it may cost. */
struct v8_memory {
	/* All of [address, address + n), or false. */
	bool (*read)(void *context, uint64_t address, void *ret, size_t n);
	/* What is read from now on is as it is now. */
	void (*refresh)(void *context);
	void *context;
	uint64_t budget; /* a read takes one, and one for each MEMORY_UNIT bytes */
	/* These addresses are about to be read, in this order; 0 is none. NULL: it is not to be
	 * told. */
	void (*announce)(void *context, const uint64_t *at, uint32_t n);
	/* Pages that types were in last, of which few have all; then those of what describes
	 * compiled code. 0: none. */
	uint64_t pages[MEMORY_MAPS + MEMORY_NEAR];
};

#define MEMORY_UNIT 256u
#define MEMORY_PAGE 4096u

static inline bool memory_read(struct v8_memory *m, uint64_t address, void *ret, size_t n)
{
	uint64_t cost = 1 + n / MEMORY_UNIT;

	if (address >= 1ull << 56 || cost > m->budget)
		return false;
	m->budget -= cost;
	return m->read(m->context, address, ret, n);
}

static inline void memory_announce_all(struct v8_memory *m, const uint64_t *at, uint32_t n,
				       uint32_t n_near)
{
	uint64_t all[MEMORY_TELL + MEMORY_MAPS + MEMORY_NEAR];

	if (!m->announce || n > MEMORY_TELL)
		return;
	memcpy(all, at, n * sizeof(*at));
	memcpy(all + n, m->pages, (MEMORY_MAPS + n_near) * sizeof(*m->pages));
	m->announce(m->context, all, n + MEMORY_MAPS + n_near);
}

/* With each object its type is to be read, which is in a page of those. */
static inline void memory_announce(struct v8_memory *m, const uint64_t *at, uint32_t n)
{
	memory_announce_all(m, at, n, 0);
}

/* And with code what describes it, which the compiler has allocated near that of other code. */
static inline void memory_announce_code(struct v8_memory *m, const uint64_t *at, uint32_t n)
{
	memory_announce_all(m, at, n, MEMORY_NEAR);
}

static inline void memory_note_page(uint64_t *pages, uint32_t n, uint64_t at)
{
	uint64_t page = at - at % MEMORY_PAGE;

	for (uint32_t i = 0; i < n; i++)
		if (pages[i] == page)
			return;
	memmove(pages + 1, pages, (n - 1) * sizeof(*pages));
	pages[0] = page;
}

/* A type was at this address. */
static inline void memory_note_map(struct v8_memory *m, uint64_t at)
{
	memory_note_page(m->pages, MEMORY_MAPS, at);
}

/* A part of what describes compiled code was. */
static inline void memory_note_near(struct v8_memory *m, uint64_t at)
{
	memory_note_page(m->pages + MEMORY_MAPS, MEMORY_NEAR, at);
}

static inline bool memory_word(struct v8_memory *m, uint64_t address, uint64_t *ret)
{
	return memory_read(m, address, ret, sizeof(*ret));
}

#define HEAP_SOURCE (64u << 20) /* characters of a script */
#define HEAP_BYTES  (4u << 20)  /* of one array */

struct heap {
	struct v8_memory *memory;
	const struct v8_binary *binary;
};

/* A pointer to an object, strong or weak. */
static inline bool heap_is_pointer(uint64_t word)
{
	return (word & 1) != 0 && (word & ~3ull) != 0;
}

static inline bool heap_is_small(uint64_t word)
{
	return (word & 0xffffffff) == 0;
}

/* The member at an offset of an object. */
bool heap_word(const struct heap *h, uint64_t object, uint32_t offset, uint64_t *ret);
bool heap_type(const struct heap *h, uint64_t object, uint16_t *ret);
bool heap_is(const struct heap *h, uint64_t object, uint16_t type);
bool heap_is_string(const struct heap *h, uint64_t object);

/* A string as UTF-8 without a NUL, cut at a character so that it has at most `max` bytes, and
 * 1,024, with the "…" that it then ends in. *ret_n is its length, 0 for what is none or empty.
 * False: it could not be read, as where the collector is about to move it. */
bool heap_name(const struct heap *h, uint64_t object, char *ret, size_t max, size_t *ret_n);

/* An array of bytes, of at most HEAP_BYTES; NULL: it is none, empty, or there is no memory. The
 * caller frees it. */
uint8_t *heap_bytes(const struct heap *h, uint64_t object, uint32_t *ret_n);
/* Whether the object is there, and is no array of bytes or an empty one. What the collector moves
 * has no type. */
bool heap_has_no_bytes(const struct heap *h, uint64_t object);

/* Element of a FixedArray of any kind. */
bool heap_element(const struct heap *h, uint64_t array, uint32_t index, uint64_t *ret);

/* Where the lines of a string end. False: it is not known, or has too many of them. The caller
 * frees it. */
bool heap_lines(const struct heap *h, uint64_t string, struct lines *ret);

/* Name, beginning and end of a function from its SharedFunctionInfo's name member. False: they
 * could not be read, which does not mean that it has no name. */
struct heap_scope {
	char name[256];
	size_t n_name;
	bool torn;
	int32_t start, end; /* positions in the script; -1: not known */
};
bool heap_scope(const struct heap *h, uint64_t name_or_scope, struct heap_scope *ret);
