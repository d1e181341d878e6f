/* SPDX-License-Identifier: Apache-2.0 */
/* Label sets under rules. Contract in labels.h. */
#include "labels.h"

#include "base/check.h"

#include <errno.h>

void labels_free(struct labels *l)
{
	vec_free(&l->entries);
	arena_free(&l->text);
}

int labels_begin(struct labels *l, const struct target_label *labels, size_t n)
{
	if (n > LABELS_MAX)
		return -E2BIG;
	arena_free(&l->text);
	l->text = ARENA_NULL;
	l->bytes = 0;
	l->entries.n = 0;
	if (n && !vec_reserve(&l->entries, n))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		l->entries.p[l->entries.n++] = (struct label_entry){labels[i], false};
	return 0;
}

static size_t find(const struct labels *l, struct str name)
{
	size_t i = 0;

	while (i < l->entries.n && !str_eq(l->entries.p[i].label.name, name))
		i++;
	return i;
}

struct str labels_get(const struct labels *l, struct str name)
{
	size_t i = find(l, name);

	return i < l->entries.n ? l->entries.p[i].label.value : STR_NULL;
}

static void remove_at(struct labels *l, size_t i)
{
	check(i < l->entries.n);
	l->entries.n--;
	memmove(l->entries.p + i, l->entries.p + i + 1, (l->entries.n - i) * sizeof(*l->entries.p));
}

void labels_remove(struct labels *l, struct str name)
{
	size_t i = find(l, name);

	if (i < l->entries.n)
		remove_at(l, i);
}

static int copy(struct labels *l, struct str s, struct str *ret)
{
	if (s.n > LABELS_BYTES_MAX - l->bytes)
		return -E2BIG;
	*ret = arena_str(&l->text, s);
	if (!ret->p)
		return -ENOMEM;
	l->bytes += s.n;
	return 0;
}

int labels_set(struct labels *l, struct str name, struct str value)
{
	size_t i = find(l, name);
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
	if (!r && !vec_reserve(&l->entries, 1))
		r = -ENOMEM;
	if (r)
		return r;
	if (i < l->entries.n)
		remove_at(l, i);
	l->entries.p[l->entries.n++] = (struct label_entry){label, true};
	return 0;
}

bool label_name_valid(struct str name)
{
	return name.n > 0 && str_utf8(name);
}
