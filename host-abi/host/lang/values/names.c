/* SPDX-License-Identifier: Apache-2.0 */
/* Names, and the little that all stages share. */
#include "host/lang/lang.h"

#include "base/check.h"
#include "base/hash.h"

#include <errno.h>

struct sought {
	const struct names *names;
	struct str id;
};

static bool same(const void *context, uint32_t position)
{
	const struct sought *sought = context;

	return str_is(sought->id, sought->names->list.p[position].id);
}

void names_free(struct names *names)
{
	vec_free(&names->list);
	index_free(&names->index);
}

int names_add(struct names *names, const char *id, const struct andiron_component *component)
{
	struct str key = str_of(id);

	check(names_find(names, key) == INDEX_NONE);
	if (!vec_reserve(&names->list, 1) ||
	    index_add(&names->index, hash_str(key), (uint32_t)names->list.n) < 0)
		return -ENOMEM;
	names->list.p[names->list.n++] = (struct name){id, component};
	return 0;
}

uint32_t names_find(const struct names *names, struct str id)
{
	struct sought sought = {names, id};

	return index_find(&names->index, hash_str(id), same, &sought);
}

void *lang_calloc(struct lang *l, size_t count, size_t size)
{
	size_t n = SIZE_MAX;
	void *p = NULL;

	/* What little text can blow up (a list joined to itself in layers) ends here and not at the
	 * end of the machine's memory. */
	if (!__builtin_mul_overflow(count, size, &n) && n < LANG_MAX_BYTES - l->arena->bytes)
		p = arena_alloc(l->arena, n);
	if (!p)
		l->no_memory = true;
	return p;
}

struct str lang_str(struct lang *l, struct str s)
{
	char *copy = lang_array(l, char, s.n + 1);

	if (copy && s.n)
		memcpy(copy, s.p, s.n);
	return copy ? (struct str){copy, s.n} : STR_NULL;
}
