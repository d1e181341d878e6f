/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in target-bytes.h. An update is as in memory, and so are its arrays behind it; then come
 * the texts, the name with its NUL, and zeros to a multiple of 8. The addresses in it are those of
 * who wrote it, and are set anew. */
#include "host/isolate/target-bytes.h"

#include <stddef.h>
#include <string.h>

/* Each an address, with how many there are behind it. */
static const struct {
	uint16_t at, size;
} arrays[] = {
	{offsetof(struct andiron_targets, rows), sizeof(struct andiron_target)},
	{offsetof(struct andiron_targets, removed), sizeof(uint64_t)},
	{offsetof(struct andiron_targets, labels), sizeof(struct andiron_label)},
	{offsetof(struct andiron_targets, strings), sizeof(struct andiron_str)},
};
#define N_ARRAYS (sizeof(arrays) / sizeof(arrays[0]))

/* As andiron_str is, too. */
struct array {
	const void *base;
	uint64_t n;
};

static struct array *array_of(const struct andiron_targets *u, size_t i)
{
	return (struct array *)((uintptr_t)u + arrays[i].at);
}

void target_bytes_put(struct buf *b, const char *name, const struct andiron_targets *u)
{
	buf_append(b, u, sizeof(*u));
	for (size_t i = 0; i < N_ARRAYS; i++)
		buf_append(b, array_of(u, i)->base, array_of(u, i)->n * arrays[i].size);
	for (uint64_t i = 0; i < u->n_strings; i++)
		buf_append(b, u->strings[i].ptr, u->strings[i].len);
	buf_append(b, name, strlen(name));
	buf_append(b, "\0\0\0\0\0\0\0", 8);
	b->n &= ~(size_t)7; /* at least one zero is left */
}

/* Whether so much is there: then it is where its bytes are. */
static bool place(struct array *a, struct str *rest, size_t size)
{
	if (a->n > rest->n / size)
		return false;
	a->base = rest->p;
	*rest = str_skip(*rest, a->n * size);
	return true;
}

struct andiron_targets *target_bytes_get(struct str *rest)
{
	struct andiron_targets *u = (struct andiron_targets *)(uintptr_t)rest->p;

	if (rest->n < sizeof(*u))
		return NULL;
	*rest = str_skip(*rest, sizeof(*u));
	for (size_t i = 0; i < N_ARRAYS; i++)
		if (!place(array_of(u, i), rest, arrays[i].size))
			return NULL;
	for (uint64_t i = 0; i < u->n_strings; i++)
		if (!place((struct array *)(uintptr_t)&u->strings[i], rest, 1))
			return NULL;
	return str_find(*rest, 0) < rest->n ? u : NULL;
}
