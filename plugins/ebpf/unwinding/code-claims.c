/* SPDX-License-Identifier: Apache-2.0 */
/* See code-claims.h. */
#include "ebpf/unwinding/code-claims.h"

#include <errno.h>
#include <string.h>

static void claimed_fini(struct claimed_file *f)
{
	mapped_file_release(f->file);
	vec_free(&f->list);
}

void code_claims_fini(struct code_claims *t)
{
	vec_each (&t->files, f)
		claimed_fini(f);
	vec_free(&t->files);
	vec_free(&t->fresh.list);
}

/* Whether somebody beside the list, and the store that keeps its claims, has the file. */
static bool is_mapped(const struct claimed_file *f)
{
	return mapped_file_is_shared(f->file, f->list.n > 0 ? 2 : 1);
}

/* Makes room for one more file: the oldest one that nobody maps goes, with its claims. */
static bool make_room(struct code_claims *t, struct unwind *store)
{
	struct claimed_file *f = t->files.p, *end = f + t->files.n;

	if (t->files.n < CODE_CLAIMS_FILES)
		return true;
	while (f < end && (is_mapped(f) || unwind_claim(store, f->file, NULL, 0) != 0))
		f++;
	if (f == end)
		return false;
	claimed_fini(f);
	memmove(f, f + 1, (size_t)(end - f - 1) * sizeof(*f));
	t->files.n--;
	return true;
}

static struct claimed_file *claimed_of(struct code_claims *t, struct mapped_file *file,
				       struct unwind *store)
{
	struct claimed_file none = {.file = file};

	vec_each (&t->files, f)
		if (f->file == file)
			return f;
	if (!make_room(t, store) || !vec_push(&t->files, none))
		return NULL;
	mapped_file_retain(file);
	return &t->files.p[t->files.n - 1];
}

/* Puts a claim where it belongs; false: it is none, or another stands there. */
static bool insert(struct claims *to, struct code_claim claim)
{
	size_t at = to->list.n;
	struct code_claim *p;

	while (at > 0 && to->list.p[at - 1].from > claim.from)
		at--;
	p = to->list.p;
	if (claim.from >= claim.to || (at > 0 && p[at - 1].to > claim.from) ||
	    (at < to->list.n && p[at].from < claim.to) || to->list.n >= UNWIND_CLAIMS_MAX)
		return false;
	if (!vec_push(&to->list, claim))
		return false;
	p = to->list.p;
	memmove(p + at + 1, p + at, (to->list.n - 1 - at) * sizeof(*p));
	p[at] = claim;
	return true;
}

bool claims_insert(struct claims *to, const struct claim_answer *answer, uint64_t object)
{
	bool all = true;

	for (uint32_t i = 0; i < answer->n; i++)
		if (answer->p[i].object == object)
			all &= insert(to, (struct code_claim){answer->p[i].from, answer->p[i].to,
							      (uint16_t)answer->slot});
	return all;
}

static bool is_news(const struct code_claims *t, const struct claimed_file *f)
{
	const struct code_claim *a = f->list.p, *b = t->fresh.list.p;

	for (size_t i = 0; i < f->list.n && i < t->fresh.list.n; i++)
		if (a[i].from != b[i].from || a[i].to != b[i].to || a[i].slot != b[i].slot)
			return true;
	return f->list.n != t->fresh.list.n;
}

int code_claims_replace(struct code_claims *t, struct mapped_file *file,
			const struct claim_answer *answer, struct unwind *store)
{
	struct claimed_file *f = claimed_of(t, file, store);
	bool all;
	size_t n;

	t->fresh.list.n = 0;
	if (!f)
		return t->files.n < CODE_CLAIMS_FILES ? -ENOMEM : -ENOSPC;
	vec_each (&f->list, c)
		if (c->slot != answer->slot && !insert(&t->fresh, *c))
			return -ENOMEM;
	all = claims_insert(&t->fresh, answer, mapped_file_object(file));
	n = t->fresh.list.n;
	if (is_news(t, f)) {
		if (!vec_reserve(&f->list, n > f->list.n ? n - f->list.n : 0) ||
		    unwind_claim(store, file, t->fresh.list.p, n) != 0)
			return -ENOMEM; /* and will be new the next time */
		if (n > 0)
			memcpy(f->list.p, t->fresh.list.p, n * sizeof(*f->list.p));
		f->list.n = n;
	}
	return all ? 0 : -EEXIST;
}

bool code_claims_has(const struct code_claims *t, const struct mapset *set)
{
	vec_each (&t->files, f) {
		if (f->list.n == 0)
			continue;
		vec_each (&set->list, m)
			if (m->file == f->file)
				return true;
	}
	return false;
}
