/* SPDX-License-Identifier: Apache-2.0 */
/* Label sets under rules. Contract in labels.h. */
#include "relabel/labels.h"

#include "base/check.h"

#include <errno.h>

#define BLOCK_BYTES 4096 /* more than most rules add */

void labels_free(struct labels *l)
{
	vec_free(&l->entries);
	vec_free(&l->keys);
	vec_free(&l->before);
	arena_free(&l->text);
	buf_free(&l->block);
	buf_free(&l->joined);
	buf_free(&l->target);
	buf_free(&l->result);
}

int labels_begin(struct labels *l, const struct target_label *labels, size_t n)
{
	if (n > LABELS_MAX)
		return -E2BIG;
	if (l->text.bytes) {
		arena_free(&l->text);
		l->text = ARENA_NULL;
	}
	buf_clear(&l->block);
	if (!l->block.p && !buf_reserve(&l->block, BLOCK_BYTES))
		return -ENOMEM;
	l->bytes = 0;
	l->entries.n = l->keys.n = 0;
	if (n && (!vec_reserve(&l->entries, n) || !vec_reserve(&l->keys, n)))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		l->entries.p[l->entries.n++] = (struct label_entry){labels[i], false};
		l->keys.p[l->keys.n++] = label_key(labels[i].name);
	}
	return 0;
}

uint64_t label_key(struct str name)
{
	uint64_t tail = 0;

	if (name.n >= sizeof(tail))
		memcpy(&tail, name.p + name.n - sizeof(tail), sizeof(tail));
	else
		for (size_t i = 0; i < name.n; i++)
			tail = tail << 8 | (unsigned char)name.p[i];
	return tail + name.n * UINT64_C(0x9e3779b97f4a7c15);
}

static size_t find(const struct labels *l, struct str name, uint64_t key)
{
	size_t i = 0;

	while (i < l->keys.n && (l->keys.p[i] != key || !str_eq(l->entries.p[i].label.name, name)))
		i++;
	return i;
}

struct str labels_get_by_key(const struct labels *l, struct str name, uint64_t key)
{
	size_t i = find(l, name, key);

	return i < l->entries.n ? l->entries.p[i].label.value : STR_NULL;
}

struct str labels_get(const struct labels *l, struct str name)
{
	return labels_get_by_key(l, name, label_key(name));
}

int labels_keep(struct labels *l)
{
	l->before.n = 0;
	if (!vec_reserve(&l->before, l->entries.n))
		return -ENOMEM;
	memcpy(l->before.p, l->entries.p, l->entries.n * sizeof(*l->before.p));
	l->before.n = l->entries.n;
	return 0;
}

static void remove_at(struct labels *l, size_t i)
{
	check(i < l->entries.n);
	l->entries.n--;
	l->keys.n--;
	memmove(l->entries.p + i, l->entries.p + i + 1, (l->entries.n - i) * sizeof(*l->entries.p));
	memmove(l->keys.p + i, l->keys.p + i + 1, (l->keys.n - i) * sizeof(*l->keys.p));
}

void labels_remove(struct labels *l, struct str name)
{
	size_t i = find(l, name, label_key(name));

	if (i < l->entries.n)
		remove_at(l, i);
}

static int copy(struct labels *l, struct str s, struct str *ret)
{
	if (s.n > LABELS_BYTES_MAX - l->bytes)
		return -E2BIG;
	if (s.n && s.n <= l->block.capacity - l->block.n) {
		ret->p = memcpy(l->block.p + l->block.n, s.p, s.n);
		ret->n = s.n;
		l->block.n += s.n;
	} else {
		*ret = arena_str(&l->text, s);
	}
	if (!ret->p)
		return -ENOMEM;
	l->bytes += s.n;
	return 0;
}

int labels_set(struct labels *l, struct str name, struct str value)
{
	uint64_t key = label_key(name);
	size_t i = find(l, name, key);
	struct target_label label;
	int r;

	if (!value.n) {
		labels_remove(l, name);
		return 0;
	}
	r = copy(l, value, &label.value);
	if (r)
		return r;
	if (i < l->entries.n && l->entries.p[i].set) {
		l->entries.p[i].label.value = label.value;
		return 0;
	}
	r = copy(l, name, &label.name);
	if (!r && i == l->entries.n && i >= LABELS_MAX)
		r = -E2BIG;
	if (!r && (!vec_reserve(&l->entries, 1) || !vec_reserve(&l->keys, 1)))
		r = -ENOMEM;
	if (r)
		return r;
	if (i < l->entries.n)
		remove_at(l, i);
	l->entries.p[l->entries.n++] = (struct label_entry){label, true};
	l->keys.p[l->keys.n++] = key;
	return 0;
}

bool label_name_valid(struct str name)
{
	return name.n > 0 && str_utf8(name);
}
