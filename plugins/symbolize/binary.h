/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The symbols of one object: its own .symtab, else the .symtab of its debug
 * file, else its .dynsym. Descriptors come from andiron.objects/1 and live for
 * one batch's run over the object.
 */
#ifndef SYMBOLIZE_BINARY_H
#define SYMBOLIZE_BINARY_H

#include "cache.h"

#include "base/error.h"

#define BINARY_RETRY_NS (INT64_C(60) * 1000000000)

struct binary {
	const struct cache *cache;
	struct cached_object *object;
	int fd; /* of the file that the symbols are of; -1: not opened yet */
};

/*
 * Begins a run over an object; its table is read unless it is there already,
 * or could not be read and is not to be tried again yet. Afterwards
 * object->state says how it went. -ENOEXEC and the like, with a sentence in
 * err, when reading it failed right now; -ENOMEM; else 0.
 */
int binary_begin(struct binary *b, const struct cache *cache, struct cached_object *object,
		 int64_t now_ns, struct error *err);

/* The linked name that covers an address. 0; -ENOENT: none does; else it could
 * not be read. Only where the state is BINARY_READY. */
int binary_find(struct binary *b, uint64_t address, struct buf *name);

void binary_end(struct binary *b);

#endif
