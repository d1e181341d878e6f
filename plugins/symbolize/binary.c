/* SPDX-License-Identifier: Apache-2.0 */
/* The symbols of one object. Contract in binary.h. */
#include "binary.h"

#include "base/check.h"
#include "base/cleanup.h"

#include <errno.h>

static int open_object(const struct binary *b, uint32_t what, int *ret)
{
	int32_t fd;
	int r = b->cache->objects->open(b->cache->objects_self, b->object->id, what, &fd);

	if (r == 0)
		*ret = fd;
	return r;
}

static int load_symbols(int fd, size_t max_bytes, struct elf_symbols *ret, struct error *err)
{
	struct elf_file f = ELF_FILE_NULL;
	int r = elf_file_open(&f, fd, err);

	if (r < 0)
		return r;
	r = elf_symbols_load(ret, &f, max_bytes / 16, err);
	elf_file_close(&f);
	return r;
}

/* Takes the debug file's symbols if it has a .symtab; that there is none, or
 * none that can be read, is no failure. */
static int try_debug(struct binary *b)
{
	struct elf_symbols symbols = ELF_SYMBOLS_NULL;
	_cleanup_(closep) int fd = -1;
	int r = open_object(b, ANDIRON_OPEN_DEBUG, &fd);

	if (r == 0)
		r = load_symbols(fd, b->cache->limit, &symbols, NULL);
	if (r == -ENOMEM)
		return r;
	if (r < 0 || symbols.source != ELF_SYMBOLS_SYMTAB) {
		elf_symbols_free(&symbols);
		return 0;
	}
	elf_symbols_free(&b->object->symbols);
	b->object->symbols = symbols;
	b->object->opens = ANDIRON_OPEN_DEBUG;
	closep(&b->fd);
	b->fd = take_fd(fd);
	return 0;
}

static int load(struct binary *b, int64_t now_ns, struct error *err)
{
	struct cached_object *o = b->object;
	int r = open_object(b, ANDIRON_OPEN_FILE, &b->fd);

	if (r < 0) {
		o->state = BINARY_UNAVAILABLE;
		o->retry_ns = now_ns + BINARY_RETRY_NS;
		return 0;
	}
	r = load_symbols(b->fd, b->cache->limit, &o->symbols, err);
	o->opens = ANDIRON_OPEN_FILE;
	if (r == 0 && o->symbols.source != ELF_SYMBOLS_SYMTAB)
		r = try_debug(b);
	if (r == -ENOMEM)
		elf_symbols_free(&o->symbols);
	else
		o->state = r < 0 ? BINARY_BROKEN : BINARY_READY;
	return r;
}

int binary_begin(struct binary *b, const struct cache *cache, struct cached_object *object,
		 int64_t now_ns, struct error *err)
{
	*b = (struct binary){.cache = cache, .object = object, .fd = -1};
	if (object->state == BINARY_FRESH ||
	    (object->state == BINARY_UNAVAILABLE && now_ns >= object->retry_ns))
		return load(b, now_ns, err);
	return 0;
}

int binary_find(struct binary *b, uint64_t address, struct buf *name)
{
	check(b->object->state == BINARY_READY);
	if (b->object->symbols.n == 0)
		return -ENOENT;
	if (b->fd < 0) {
		int r = open_object(b, b->object->opens, &b->fd);

		if (r < 0)
			return r == -ENOENT ? -ESTALE : r;
	}
	return elf_symbols_find(&b->object->symbols, b->fd, address, name, NULL);
}

void binary_end(struct binary *b)
{
	closep(&b->fd);
	b->fd = -1;
}
