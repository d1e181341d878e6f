/* SPDX-License-Identifier: Apache-2.0 */
/* See slab-allocator.h. */
#include "ebpf/unwind-store/slab-allocator.h"

#include "base/check.h"

#include <errno.h>

#define UNIT  8u
#define UNITS (UNWIND_SLAB_BYTES / UNIT)

_Static_assert(UNITS == 1u << 17, "a reference is slab times 2^17 plus unit");

void slabs_init(struct slabs *s, const struct slabs_kernel *kernel, uint64_t budget_bytes)
{
	uint64_t max = budget_bytes / SLABS_COST;

	*s = (struct slabs){.kernel = *kernel};
	s->max = max < 1 ? 1 : max > UNWIND_SLABS_MAX ? UNWIND_SLABS_MAX : (uint32_t)max;
}

static void unmap(struct slabs *s, uint32_t number)
{
	struct slab *slab = &s->all[number];

	if (!slab->p)
		return;
	s->kernel.unmap(s->kernel.context, number, slab->p);
	slab->p = NULL;
	s->n_mapped--;
}

void slabs_rest(struct slabs *s)
{
	for (uint32_t i = 0; s->n_mapped > 0 && i < UNWIND_SLABS_MAX; i++)
		unmap(s, i);
}

static void destroy(struct slabs *s, uint32_t number)
{
	unmap(s, number);
	check(s->n > 0 && s->all[number].there);
	s->kernel.destroy(s->kernel.context, number);
	s->all[number] = (struct slab){0};
	s->n--;
}

void slabs_fini(struct slabs *s)
{
	for (uint32_t i = 0; i < UNWIND_SLABS_MAX; i++)
		if (s->all[i].there)
			destroy(s, i);
	ranges_free(&s->free);
	vec_free(&s->retired);
}

/* All of a slab that chunks may have: reference 0 leads nowhere. */
static struct range whole(uint32_t number)
{
	struct range x = {number * UNITS, UNITS};

	if (number == 0) {
		x.start++;
		x.n--;
	}
	return x;
}

static int create(struct slabs *s)
{
	uint32_t number = 0;

	if (s->n == s->max)
		return -ENOSPC;
	while (s->all[number].there)
		number++;
	check(number < s->max);
	/* A limit of the container's is a budget, too. */
	if (s->kernel.create(s->kernel.context, number) != 0)
		return -ENOSPC;
	s->all[number] = (struct slab){.there = true};
	s->n++;
	ranges_add(&s->free, whole(number), UNITS);
	return 0;
}

/* So that no later call needs memory: behind each chunk may be a free range, before the first of a
 * slab one more, and each chunk may be retired. */
static int reserve(struct slabs *s)
{
	size_t n = (size_t)s->n_chunks + 1;

	if (ranges_reserve(&s->free, n + UNWIND_SLABS_MAX) != 0)
		return -ENOMEM;
	return n <= s->retired.n || vec_reserve(&s->retired, n - s->retired.n) ? 0 : -ENOMEM;
}

int slabs_alloc(struct slabs *s, size_t n, uint32_t *ret_ref)
{
	uint32_t units = (uint32_t)((n + UNIT - 1) / UNIT);
	uint32_t start;
	int r = reserve(s);

	check(n > 0 && n <= SLABS_CHUNK_MAX);
	if (r != 0)
		return r;
	if (!ranges_take(&s->free, units, &start)) {
		r = create(s);
		if (r != 0)
			return r;
		check(ranges_take(&s->free, units, &start));
	}
	s->all[start / UNITS].used += units;
	s->n_chunks++;
	s->used_bytes += (uint64_t)units * UNIT;
	*ret_ref = start;
	return 0;
}

/* Makes room for one more: that which was touched longest ago goes. */
static void unmap_oldest(struct slabs *s)
{
	uint32_t oldest = UNWIND_SLABS_MAX;

	for (uint32_t i = 0; i < UNWIND_SLABS_MAX; i++)
		if (s->all[i].p &&
		    (oldest == UNWIND_SLABS_MAX || s->all[i].touched < s->all[oldest].touched))
			oldest = i;
	check(oldest < UNWIND_SLABS_MAX);
	unmap(s, oldest);
}

uint8_t *slabs_base(struct slabs *s, uint32_t number)
{
	struct slab *slab = &s->all[number];
	void *p;

	check(number < UNWIND_SLABS_MAX && slab->there);
	if (!slab->p) {
		if (s->n_mapped == SLABS_MAPPED)
			unmap_oldest(s);
		if (s->kernel.map(s->kernel.context, number, &p) != 0)
			return NULL;
		slab->p = p;
		s->n_mapped++;
	}
	slab->touched = ++s->clock;
	return slab->p;
}

void *slabs_at(struct slabs *s, uint32_t ref)
{
	uint8_t *base = slabs_base(s, unwind_ref_slab(ref));

	check(ref != 0);
	return base ? base + unwind_ref_offset(ref) : NULL;
}

static void free_units(struct slabs *s, struct range x)
{
	uint32_t number = x.start / UNITS;
	struct slab *slab = &s->all[number];

	check(slab->there && slab->used >= x.n && s->n_chunks > 0);
	ranges_add(&s->free, x, UNITS);
	slab->used -= x.n;
	s->n_chunks--;
	s->used_bytes -= (uint64_t)x.n * UNIT;
	if (slab->used == 0) {
		check(ranges_remove(&s->free, whole(number)));
		destroy(s, number);
	}
}

static struct range extent_of(uint32_t ref, size_t n)
{
	struct range x = {ref, (uint32_t)((n + UNIT - 1) / UNIT)};

	check(ref != 0 && n > 0);
	return x;
}

void slabs_free(struct slabs *s, uint32_t ref, size_t n)
{
	free_units(s, extent_of(ref, n));
}

void slabs_retire(struct slabs *s, uint32_t ref, size_t n)
{
	struct range x = extent_of(ref, n);

	check(s->retired.n < s->retired.capacity);
	s->retired.p[s->retired.n++] = x;
	s->retired_bytes += (uint64_t)x.n * UNIT;
}

void slabs_reclaim(struct slabs *s)
{
	vec_each (&s->retired, x)
		free_units(s, *x);
	s->retired.n = 0;
	s->retired_bytes = 0;
}
