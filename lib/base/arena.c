/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas: a list of blocks, each twice the last up to 64 KiB. */
#include "base/arena.h"

#include "base/check.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_BLOCK ((size_t)1024)
#define LAST_BLOCK  ((size_t)65536)
#define ALIGN       ((size_t)16)

struct arena_block {
	struct arena_block *next;
	size_t size, used;
	_Alignas(16) char data[];
};

void arena_free(struct arena *a)
{
	while (a->head) {
		struct arena_block *next = a->head->next;

		free(a->head);
		a->head = next;
	}
	a->bytes = 0;
}

void arena_join(struct arena *to, struct arena *from)
{
	struct arena_block **end = &to->head;

	while (*end)
		end = &(*end)->next;
	*end = from->head;
	to->bytes += from->bytes;
	*from = ARENA_NULL;
}

static struct arena_block *add_block(struct arena *a, size_t n)
{
	size_t size = a->head ? a->head->size * 2 : FIRST_BLOCK;
	struct arena_block *b;

	if (size > LAST_BLOCK)
		size = LAST_BLOCK;
	if (size < n)
		size = n;
	if (size > SIZE_MAX - sizeof(*b))
		return NULL;
	b = calloc(1, sizeof(*b) + size);
	if (!b)
		return NULL;
	b->size = size;
	b->next = a->head;
	a->head = b;
	a->bytes += sizeof(*b) + size;
	return b;
}

void *arena_alloc(struct arena *a, size_t n)
{
	struct arena_block *b = a->head;
	void *p;

	if (n > SIZE_MAX / 2)
		return NULL;
	n = (n + ALIGN - 1) & ~(ALIGN - 1);
	if (!b || b->size - b->used < n)
		b = add_block(a, n);
	if (!b)
		return NULL;
	check(b->size - b->used >= n);
	p = b->data + b->used;
	b->used += n;
	return p;
}

void *arena_calloc(struct arena *a, size_t count, size_t size)
{
	size_t n;

	return __builtin_mul_overflow(count, size, &n) ? NULL : arena_alloc(a, n);
}

struct str arena_str(struct arena *a, struct str s)
{
	char *p = arena_alloc(a, s.n + 1);

	if (!p)
		return STR_NULL;
	if (s.n)
		memcpy(p, s.p, s.n);
	return (struct str){p, s.n};
}

char *arena_printf(struct arena *a, const char *format, ...)
{
	va_list args;
	char *p = NULL;
	int n;

	va_start(args, format);
	n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (n >= 0)
		p = arena_alloc(a, (size_t)n + 1);
	if (!p)
		return NULL;
	va_start(args, format);
	vsnprintf(p, (size_t)n + 1, format, args);
	va_end(args);
	return p;
}
