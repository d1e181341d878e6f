/* SPDX-License-Identifier: Apache-2.0 */
/* Assertions. They stay on in every build: each states something that our own code guarantees,
 * never something that input, kernel or memory decides.
 *
 * check()    an invariant; its failure is a bug, and going on would be worse
 * absurd()   a place that cannot be reached */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#define check(cond)                                                                                \
	do {                                                                                       \
		if (__builtin_expect(!(cond), 0)) {                                                \
			fprintf(stderr, "%s:%d: %s: check failed: %s\n", __FILE__, __LINE__,       \
				__func__, #cond);                                                  \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

#define absurd(what)                                                                               \
	do {                                                                                       \
		fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, __func__, what);            \
		abort();                                                                           \
	} while (0)
