/* SPDX-License-Identifier: Apache-2.0 */
/* Growing arrays of any type. VEC(type) declares the struct {p, n, capacity};
 * zero-initialised is empty.
 *
 *     VEC(struct edge) edges = {0};
 *     if (!vec_push(&edges, ((struct edge){from, to})))  → out of memory
 *     vec_each(&edges, e) use(e);
 *     vec_free(&edges);
 *
 * Amortised O(1) push; elements move when it grows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define VEC(type)                                                                                  \
	struct {                                                                                   \
		type *p;                                                                           \
		size_t n;                                                                          \
		size_t capacity;                                                                   \
	}

/* Makes room for `more` elements of `size`; false when memory is short. */
bool vec_grow(void **p, size_t *capacity, size_t need, size_t size);

#define vec_reserve(v, more)                                                                       \
	vec_grow((void **)&(v)->p, &(v)->capacity, (v)->n + (more), sizeof(*(v)->p))

/* The element is evaluated while n is what it was. */
#define vec_push(v, element)                                                                       \
	(vec_reserve(v, 1) ? ((v)->p[(v)->n] = (element), (v)->n++, true) : false)

#define vec_each(v, e) for (__typeof__((v)->p + 0) e = (v)->p; e < (v)->p + (v)->n; e++)

#define vec_free(v)                                                                                \
	do {                                                                                       \
		free((v)->p);                                                                      \
		(v)->p = NULL;                                                                     \
		(v)->n = (v)->capacity = 0;                                                        \
	} while (0)
