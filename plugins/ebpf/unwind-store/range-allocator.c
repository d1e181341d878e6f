/* SPDX-License-Identifier: Apache-2.0 */
/* See range-allocator.h. */
#include "ebpf/unwind-store/range-allocator.h"

#include "base/check.h"
#include "base/hash.h"

#include <errno.h>
#include <string.h>

static struct ranges_node *node(const struct ranges *e, uint32_t at)
{
	check(at > 0 && at <= e->nodes.n);
	return &e->nodes.p[at - 1];
}

static uint64_t key_of(struct range x, int order)
{
	return order == RANGES_BY_START ? x.start : (uint64_t)x.n << 32 | x.start;
}

static uint64_t key(const struct ranges *e, uint32_t at, int order)
{
	return key_of(node(e, at)->range, order);
}

void ranges_free(struct ranges *e)
{
	vec_free(&e->nodes);
	*e = (struct ranges){0};
}

int ranges_reserve(struct ranges *e, size_t n)
{
	return n <= e->nodes.n || vec_reserve(&e->nodes, n - e->nodes.n) ? 0 : -ENOMEM;
}

static uint32_t new_node(struct ranges *e, struct range x)
{
	uint32_t at = e->unused;

	if (at) {
		e->unused = node(e, at)->child[0][0];
	} else {
		check(e->nodes.n < e->nodes.capacity);
		at = (uint32_t)++e->nodes.n;
	}
	*node(e, at) = (struct ranges_node){.range = x, .rank = (uint32_t)hash_u64(at)};
	return at;
}

/* Below the nodes of higher rank; what hangs there is split by the key. */
static void insert(struct ranges *e, uint32_t at, int order)
{
	uint64_t k = key(e, at, order);
	uint32_t *link = &e->root[order], *left, *right, rest;

	while (*link && node(e, *link)->rank >= node(e, at)->rank)
		link = &node(e, *link)->child[order][key(e, *link, order) < k];
	rest = *link;
	*link = at;
	left = &node(e, at)->child[order][0];
	right = &node(e, at)->child[order][1];
	while (rest) {
		if (key(e, rest, order) < k) {
			*left = rest;
			left = &node(e, rest)->child[order][1];
			rest = *left;
		} else {
			*right = rest;
			right = &node(e, rest)->child[order][0];
			rest = *right;
		}
	}
	*left = *right = 0;
}

/* Takes a node out of a tree; its children are merged in its place. */
static void cut(struct ranges *e, uint32_t at, int order)
{
	uint64_t k = key(e, at, order);
	uint32_t *link = &e->root[order], left, right;

	while (*link != at)
		link = &node(e, *link)->child[order][key(e, *link, order) < k];
	left = node(e, at)->child[order][0];
	right = node(e, at)->child[order][1];
	while (left && right) {
		if (node(e, left)->rank >= node(e, right)->rank) {
			*link = left;
			link = &node(e, left)->child[order][1];
			left = *link;
		} else {
			*link = right;
			link = &node(e, right)->child[order][0];
			right = *link;
		}
	}
	*link = left ? left : right;
}

/* The first with that key or a higher one, 0 if there is none; *ret_before is the one before. */
static uint32_t seek(const struct ranges *e, uint64_t k, int order, uint32_t *ret_before)
{
	uint32_t found = 0, before = 0;

	for (uint32_t at = e->root[order]; at;) {
		bool below = key(e, at, order) < k;

		if (below)
			before = at;
		else
			found = at;
		at = node(e, at)->child[order][below];
	}
	if (ret_before)
		*ret_before = before;
	return found;
}

static void drop(struct ranges *e, uint32_t at)
{
	for (int order = 0; order < RANGES_ORDERS; order++)
		cut(e, at, order);
	e->total -= node(e, at)->range.n;
	e->n--;
	node(e, at)->child[0][0] = e->unused;
	e->unused = at;
}

static void put(struct ranges *e, struct range x)
{
	uint32_t at = new_node(e, x);

	for (int order = 0; order < RANGES_ORDERS; order++)
		insert(e, at, order);
	e->total += x.n;
	e->n++;
}

void ranges_add(struct ranges *e, struct range add, uint32_t span)
{
	uint32_t before, after = seek(e, add.start, RANGES_BY_START, &before);
	uint32_t end = add.start + add.n;

	check(add.n > 0 && add.start / span == (end - 1) / span);
	if (after) {
		struct range x = node(e, after)->range;

		check(x.start >= end);
		if (x.start == end && end % span != 0) {
			add.n += x.n;
			drop(e, after);
		}
	}
	if (before) {
		struct range x = node(e, before)->range;

		check(x.start + x.n <= add.start);
		if (x.start + x.n == add.start && add.start % span != 0) {
			add.start = x.start;
			add.n += x.n;
			drop(e, before);
		}
	}
	put(e, add);
}

bool ranges_take(struct ranges *e, uint32_t n, uint32_t *ret_start)
{
	uint32_t at =
		seek(e, key_of((struct range){0, n}, RANGES_BY_LENGTH), RANGES_BY_LENGTH, NULL);
	struct range x;

	check(n > 0);
	if (!at)
		return false;
	x = node(e, at)->range;
	check(x.n >= n);
	drop(e, at);
	if (x.n > n)
		put(e, (struct range){x.start + n, x.n - n});
	*ret_start = x.start;
	return true;
}

bool ranges_remove(struct ranges *e, struct range gone)
{
	uint32_t at = seek(e, gone.start, RANGES_BY_START, NULL);

	if (!at || node(e, at)->range.start != gone.start || node(e, at)->range.n != gone.n)
		return false;
	drop(e, at);
	return true;
}
