/* SPDX-License-Identifier: Apache-2.0 */
/* Targets in the making. Contract in label-rows.h. */
#include "k8s-discovery/roles/label-rows.h"

#include "abi/target-row.h"
#include "base/check.h"
#include "base/search.h"
#include "k8s-discovery/objects/proto.h"

#include <stdlib.h>

#define FEW 64

void label_rows_fini(struct label_rows *r)
{
	arena_free(&r->arena);
	vec_free(&r->collected);
	vec_free(&r->labels);
	vec_free(&r->rows);
}

void label_rows_begin(struct label_rows *r)
{
	arena_free(&r->arena);
	r->collected.n = r->n_shared = r->labels.n = r->rows.n = 0;
	r->failed = false;
}

/* Most text is ASCII, and seen to be eight bytes at a time. */
static bool is_text(struct str s)
{
	uint64_t high = 0, word;
	size_t i = 0;

	for (; i + sizeof(word) <= s.n; i += sizeof(word)) {
		memcpy(&word, s.p + i, sizeof(word));
		high |= word;
	}
	for (; i < s.n; i++)
		high |= (unsigned char)s.p[i];
	return !(high & 0x8080808080808080ull) || str_utf8(s);
}

static void add(struct label_rows *r, struct str name, struct str value)
{
	if (value.n == 0)
		return;
	if (!is_text(value))
		r->not_utf8++;
	else if (!vec_push(&r->collected, ((struct target_label){name, value})))
		r->failed = true;
}

void label_rows_add(struct label_rows *r, const char *name, struct str value)
{
	add(r, str_of(name), value);
}

void label_rows_add_number(struct label_rows *r, const char *name, uint64_t value)
{
	const char *text = arena_printf(&r->arena, "%llu", (unsigned long long)value);

	if (text)
		add(r, str_of(name), str_of(text));
	else
		r->failed = true;
}

void label_rows_add_sanitized(struct label_rows *r, const char *prefix, struct str name,
			      struct str value)
{
	struct str label = target_text_name(&r->arena, prefix, name);

	if (label.p)
		add(r, label, value);
	else
		r->failed = true;
}

/* Entries are added by ascending key, so that of colliding names the last wins. They are gathered
 * behind what was collected and then replaced. */
void label_rows_add_map(struct label_rows *r, struct str message, uint32_t field,
			const char *prefix, const char *present)
{
	VEC(struct target_label) entries = {0};
	struct proto_field f;

	proto_each (message, field, &f) {
		struct target_label e = {proto_bytes(f.bytes, 1), proto_bytes(f.bytes, 2)};

		if (!vec_push(&entries, e))
			r->failed = true;
	}
	if (entries.n > 1)
		qsort(entries.p, entries.n, sizeof(*entries.p), target_label_compare);
	vec_each (&entries, e) {
		label_rows_add_sanitized(r, prefix, e->name, e->value);
		label_rows_add_sanitized(r, present, e->name, STR("true"));
	}
	vec_free(&entries);
}

struct str label_rows_join(struct label_rows *r, struct str host, uint64_t port)
{
	struct str text = target_text_address(&r->arena, host, port);

	if (!text.p)
		r->failed = true;
	return text;
}

struct str label_rows_lower(struct label_rows *r, struct str text)
{
	char *out = arena_alloc(&r->arena, text.n + 1);

	if (!out) {
		r->failed = true;
		return STR_NULL;
	}
	for (size_t i = 0; i < text.n; i++)
		out[i] = text.p[i] >= 'A' && text.p[i] <= 'Z' ? (char)(text.p[i] | 0x20)
							      : text.p[i];
	return (struct str){out, text.n};
}

/* For many labels, which a stranger may have made many: by position where the names are equal. */
static int by_name(const void *a, const void *b, void *context)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct target_label *labels = context;

	return str_cmp(labels[x].name, labels[y].name) ?: compare(x, y);
}

static bool sort_many(struct target_label *labels, size_t n)
{
	uint32_t *order = malloc(n * sizeof(*order));
	struct target_label *copy = malloc(n * sizeof(*copy));
	bool done = order && copy;

	for (uint32_t i = 0; done && i < n; i++)
		order[i] = i;
	if (done) {
		memcpy(copy, labels, n * sizeof(*copy));
		qsort_r(order, n, sizeof(*order), by_name, copy);
		for (size_t i = 0; i < n; i++)
			labels[i] = copy[order[i]];
	}
	free(order);
	free(copy);
	return done;
}

/* By insertion: it keeps the order of equals, and there are some dozens. */
static void sort_few(struct target_label *labels, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct target_label moved = labels[i];
		size_t k = i;

		for (; k > 0 && str_cmp(labels[k - 1].name, moved.name) > 0; k--)
			labels[k] = labels[k - 1];
		labels[k] = moved;
	}
}

/* Sorts what was collected from `first` on; of equal names the one added last stays. */
static void sort_unique(struct label_rows *r, size_t first)
{
	struct target_label *labels = r->collected.p;
	size_t n = r->collected.n - first, kept = first;

	check(first <= r->collected.n);
	if (n == 0)
		return;
	if (n <= FEW)
		sort_few(labels + first, n);
	else if (!sort_many(labels + first, n))
		r->failed = true;
	for (size_t i = first; i < r->collected.n; i++) {
		if (i + 1 < r->collected.n && str_eq(labels[i].name, labels[i + 1].name))
			continue;
		labels[kept++] = labels[i];
	}
	r->collected.n = kept;
}

void label_rows_share(struct label_rows *r)
{
	sort_unique(r, 0);
	r->n_shared = r->collected.n;
}

void label_rows_finish(struct label_rows *r)
{
	struct row row = {.first = r->labels.n};
	size_t shared = 0, own = r->n_shared;

	check(r->n_shared <= r->collected.n);
	sort_unique(r, r->n_shared);
	if (r->rows.n >= ROWS_MAX || r->labels.n + r->collected.n > ROWS_MAX_LABELS) {
		r->cut++;
	} else if (!vec_reserve(&r->labels, r->collected.n) || !vec_reserve(&r->rows, 1)) {
		r->failed = true;
	} else {
		while (shared < r->n_shared || own < r->collected.n) {
			const struct target_label *l = r->collected.p;
			int order = own == r->collected.n   ? -1
				    : shared == r->n_shared ? 1
							    : str_cmp(l[shared].name, l[own].name);

			r->labels.p[r->labels.n++] = order < 0 ? l[shared] : l[own];
			shared += order <= 0;
			own += order >= 0;
		}
		row.n = (uint32_t)(r->labels.n - row.first);
		r->rows.p[r->rows.n++] = row;
	}
	r->collected.n = r->n_shared;
}
