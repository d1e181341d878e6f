/* SPDX-License-Identifier: Apache-2.0 */
/* Label sets, and the making of updates. Contracts in target-row.h. */
#include "abi/target-row.h"

#include "base/ascii.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/search.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

static int by_name(const void *a, const void *b)
{
	const struct target_label *x = *(const struct target_label *const *)a;
	const struct target_label *y = *(const struct target_label *const *)b;

	/* Equal names: the one given later sorts first, and is kept. */
	return str_cmp(x->name, y->name) ?: compare(y, x);
}

/* The labels to keep, sorted, in `kept`; returns how many. */
static size_t choose(const struct target_label *labels, size_t n, const struct target_label **kept)
{
	size_t n_kept = 0;

	for (size_t i = 0; i < n; i++)
		kept[i] = &labels[i];
	qsort(kept, n, sizeof(*kept), by_name);
	for (size_t i = 0; i < n; i++) {
		if (i && str_eq(kept[i]->name, kept[i - 1]->name)) {
			kept[i] = kept[i - 1]; /* stays the winner for the next comparison */
			continue;
		}
		if (kept[i]->value.n)
			n_kept++;
	}
	return n_kept;
}

static char *put(char *at, struct str s, struct str *ret)
{
	if (s.n)
		memcpy(at, s.p, s.n);
	*ret = (struct str){at, s.n};
	return at + s.n;
}

struct target_label *target_labels_copy(const struct target_label *labels, size_t n,
					uint32_t *ret_n)
{
	const struct target_label **kept = malloc((n + 1) * sizeof(*kept));
	struct target_label *copy = NULL;
	size_t n_kept, bytes = 0;
	uint32_t out = 0;
	char *text;

	if (!kept)
		return NULL;
	n_kept = choose(labels, n, kept);
	for (size_t i = 0; i < n; i++)
		bytes += labels[i].name.n + labels[i].value.n;
	copy = malloc(n_kept * sizeof(*copy) + bytes + 1);
	text = copy ? (char *)(copy + n_kept) : NULL;
	for (size_t i = 0; copy && i < n; i++) {
		if ((i && kept[i] == kept[i - 1]) || kept[i]->value.n == 0)
			continue;
		text = put(text, kept[i]->name, &copy[out].name);
		text = put(text, kept[i]->value, &copy[out++].value);
	}
	free(kept);
	if (copy)
		*ret_n = out;
	return copy;
}

bool target_labels_equal(const struct target_label *a, uint32_t n_a, const struct target_label *b,
			 uint32_t n_b)
{
	if (n_a != n_b)
		return false;
	for (uint32_t i = 0; i < n_a; i++)
		if (!str_eq(a[i].name, b[i].name) || !str_eq(a[i].value, b[i].value))
			return false;
	return true;
}

uint64_t target_labels_hash(const struct target_label *labels, uint32_t n)
{
	uint64_t hash = n;

	for (uint32_t i = 0; i < n; i++)
		hash = hash_mix(hash_mix(hash, hash_str(labels[i].name)),
				hash_str(labels[i].value));
	return hash;
}

static uint32_t intern_label(struct update_builder *u, struct str s)
{
	uint32_t id = intern_add(&u->strings, s);

	if (id == INDEX_NONE)
		u->failed = true;
	return id;
}

void update_add(struct update_builder *u, const struct target_row *row)
{
	struct andiron_target t = {
		.row = row->row,
		.order = row->order,
		.fingerprint = row->fingerprint,
		.label_start = (uint32_t)u->labels.n,
		.n_labels = row->n_labels,
	};

	if (u->labels.n + row->n_labels > UINT32_MAX || !vec_reserve(&u->labels, row->n_labels) ||
	    !vec_push(&u->rows, t)) {
		u->failed = true;
		return;
	}
	for (uint32_t i = 0; i < row->n_labels; i++)
		u->labels.p[u->labels.n++] =
			(struct andiron_label){intern_label(u, row->labels[i].name),
					       intern_label(u, row->labels[i].value)};
}

void update_remove(struct update_builder *u, uint64_t row)
{
	if (!vec_push(&u->removed, row))
		u->failed = true;
}

struct owned {
	struct andiron_targets update;
	atomic_uint references;
	struct update_builder parts;
	struct andiron_str strings[];
};

void update_discard(struct update_builder *u)
{
	intern_free(&u->strings);
	vec_free(&u->labels);
	vec_free(&u->rows);
	vec_free(&u->removed);
}

static void owned_retain(void *owner)
{
	struct owned *o = owner;

	atomic_fetch_add_explicit(&o->references, 1, memory_order_relaxed);
}

static void owned_release(void *owner)
{
	struct owned *o = owner;

	unsigned int before = atomic_fetch_sub_explicit(&o->references, 1, memory_order_acq_rel);

	check(before > 0);
	if (before > 1)
		return;
	update_discard(&o->parts);
	free(o);
}

int update_finish(struct update_builder *u, uint64_t producer, uint64_t generation, uint32_t flags,
		  const struct andiron_targets **ret)
{
	size_t n = u->strings.strings.n;
	struct owned *o = u->failed ? NULL : malloc(sizeof(*o) + n * sizeof(*o->strings));

	if (!o) {
		update_discard(u);
		return -ENOMEM;
	}
	o->parts = *u;
	atomic_init(&o->references, 1);
	for (size_t i = 0; i < n; i++)
		o->strings[i] =
			(struct andiron_str){u->strings.strings.p[i].p, u->strings.strings.p[i].n};
	o->update = (struct andiron_targets){
		.size = sizeof(o->update),
		.flags = flags,
		.producer = producer,
		.generation = generation,
		.strings = o->strings,
		.n_strings = n,
		.labels = u->labels.p,
		.n_labels = u->labels.n,
		.rows = u->rows.p,
		.n_rows = u->rows.n,
		.n_added = u->n_added,
		.removed = u->removed.p,
		.n_removed = u->removed.n,
		.owner = o,
		.retain = owned_retain,
		.release = owned_release,
	};
	*ret = &o->update;
	return 0;
}

static bool plain(unsigned char b)
{
	return ascii_is_alnum(b) || b == '_';
}

struct str target_text_name(struct arena *arena, const char *prefix, struct str name)
{
	size_t n = strlen(prefix);
	char *out = arena_alloc(arena, n + name.n + 1);

	if (!out)
		return STR_NULL;
	memcpy(out, prefix, n);
	for (size_t i = 0; i < name.n; i++) {
		unsigned char b = (unsigned char)name.p[i];

		if (plain(b))
			out[n++] = (char)b;
		else if ((b & 0xc0) != 0x80)
			out[n++] = '_';
	}
	return (struct str){out, n};
}

struct str target_text_address(struct arena *arena, struct str host, uint64_t port)
{
	bool brackets = str_find(host, ':') < host.n;

	return str_of(arena_printf(arena, brackets ? "[%.*s]:%llu" : "%.*s:%llu", STR_FMT(host),
				   (unsigned long long)port));
}
