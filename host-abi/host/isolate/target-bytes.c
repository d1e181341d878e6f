/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in target-bytes.h. An update is as in memory, and so are its arrays behind it; then come
 * the texts, the name with its NUL, and zeros to a multiple of 8. The addresses in it are those of
 * who wrote it, and are set anew. */
#include "host/isolate/target-bytes.h"

#include "abi/target-list.h"
#include "host/isolate/message.h"

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

/* As andiron_str is, too: what is laid over fields of another type. */
struct __attribute__((may_alias)) array {
	const void *base;
	uint64_t n;
};

static struct array *array_of(const struct andiron_targets *u, size_t i)
{
	return (struct array *)((uintptr_t)u + arrays[i].at);
}

int target_bytes_put(struct buf *b, const char *name, const struct andiron_targets *u)
{
	int r = buf_append(b, u, sizeof(*u));

	for (size_t i = 0; i < N_ARRAYS && r == 0; i++)
		r = buf_append(b, array_of(u, i)->base, array_of(u, i)->n * arrays[i].size);
	for (uint64_t i = 0; i < u->n_strings && r == 0; i++)
		r = buf_append(b, u->strings[i].ptr, u->strings[i].len);
	if (r == 0)
		r = buf_append(b, name, strlen(name));
	if (r == 0)
		r = buf_append(b, "\0\0\0\0\0\0\0", 8);
	b->n &= ~(size_t)7; /* at least one zero is left */
	return r;
}

/* A row in a table, without its labels, and its place in there. */
#define ROW_BYTES 128

uint64_t target_bytes_rows(const struct andiron_targets *u)
{
	uint64_t sum = u->n_rows * ROW_BYTES;

	for (uint64_t i = 0; i < u->n_rows; i++) {
		const struct andiron_target *t = &u->rows[i];

		for (uint64_t l = t->label_start; l < (uint64_t)t->label_start + t->n_labels; l++) {
			if (l >= u->n_labels || u->labels[l].name >= u->n_strings ||
			    u->labels[l].value >= u->n_strings)
				return ISOLATE_MAX_ROWS + 1;
			sum += sizeof(struct target_label) + u->strings[u->labels[l].name].len +
			       u->strings[u->labels[l].value].len;
			if (sum > ISOLATE_MAX_ROWS)
				return sum;
		}
	}
	return sum;
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
