/* SPDX-License-Identifier: Apache-2.0 */
/* What is remembered of each object: the frames of the addresses asked for, also that one has none.
 * Bounded in bytes; the object used least recently goes first, whole, and one that nobody asked for
 * in ten minutes goes anyhow, since a remembered object keeps a deleted file's descriptor open.
 * Each entry holds one reference to its object. */
#pragma once

#include "base/index.h"
#include "base/intern.h"
#include "base/vec.h"

#include <andiron/host.h>
#include <andiron/object.h>

#define CACHE_OBJECTS_MAX 4096u
/* The kernel's file in every process: no object of the host's. */
#define CACHE_VDSO UINT64_MAX

#define CACHE_IDLE_NS (INT64_C(600) * 1000000000)

/* Strings by their id in the object's `names`. */
struct cached_frame {
	uint32_t name, system_name, file;
	uint32_t line, column, start_line;
};

struct cached_name {
	uint64_t address;
	uint64_t function; /* where a function without a name begins; 0: not known */
	uint32_t demangle;
	uint32_t first; /* frame, innermost first */
	uint16_t n;     /* 0: there is no name */
	uint8_t source; /* enum tables_source */
	uint8_t unread; /* it could not be looked up */
};

#define OBJECT_FRESH       0
#define OBJECT_READY       1
#define OBJECT_BROKEN      2 /* does not parse; not tried again */
#define OBJECT_UNAVAILABLE 3 /* could not be opened; tried again at retry_ns */

#define OBJECT_RETRY_NS (INT64_C(60) * 1000000000)

struct cached_object {
	uint64_t id;
	int64_t used_ns, retry_ns;
	int state;
	unsigned int crashes; /* of the parser over it */
	int over;             /* a part of it is set aside (answer.h): -ETIME, -E2BIG; 0 */
	uint32_t fetched;     /* a bit for each file that came from elsewhere, and is in use */
	char link[256];       /* other files that belong to it, as the file says; "": none */
	char alt[168];
	VEC(struct cached_name) results;
	VEC(struct cached_frame) frames;
	struct index by_address;
	struct intern names;
	size_t bytes; /* as last counted */
};

struct cache {
	const struct andiron_objects *objects;
	void *objects_self;
	size_t limit;
	size_t bytes;
	VEC(struct cached_object *) list;
	struct index by_id;
};

void cache_init(struct cache *c, const struct andiron_extension *objects, size_t limit);
void cache_fini(struct cache *c);

/* Forgets all. */
void cache_clear(struct cache *c);

/* The object's entry, made if need be; NULL when memory is short. Valid until another one is
 * counted, or all are trimmed. O(1). */
struct cached_object *cache_object(struct cache *c, uint64_t id, int64_t now_ns);

/* Counts what an entry has grown to, and evicts others while that is too much. */
void cache_count(struct cache *c, struct cached_object *o);

/* Evicts what is idle or over the limit. */
void cache_trim(struct cache *c, int64_t now_ns);

/* A remembered answer, or NULL. */
const struct cached_name *cache_find(const struct cached_object *o, uint64_t address,
				     uint32_t demangle);

/* Remembers; the frames are added by cache_add_frame next. NULL when memory is short. */
struct cached_name *cache_add(struct cached_object *o, const struct cached_name *name);

/* A frame of the name added last. False when memory is short. */
bool cache_add_frame(struct cached_object *o, const struct cached_frame *frame);
