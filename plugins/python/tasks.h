/* SPDX-License-Identifier: Apache-2.0 */
/* Where asyncio's tasks are, and who awaits them. Two files say it, each what is its own: the
 * interpreter at the beginning of _PyRuntime, and `_asyncio`, a library or a part of the
 * interpreter's file, in a section. Both may be forged, and are checked. */
#pragma once

#include "python/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What one of the files says; the other's fields are 0. */
struct tasks {
	uint64_t interp_bytes; /* of PyInterpreterState, which both say; 0: nothing is known */
	struct python_tasks fields;
};

/* From the beginning of _PyRuntime of a version whose layout is known. To 3.13 there is nothing,
 * and *ret is zeros. */
void tasks_of_runtime(const unsigned char *bytes, size_t n, const struct python_layout *l,
		      struct tasks *ret);

/* From a file that holds the module; NULL: it does not, or memory is short. Some ten reads; a few
 * more where it does. The caller's to free. */
struct tasks *tasks_read(int fd);

/* Both; false: they do not fit each other, or one says nothing. */
bool tasks_joined(const struct tasks *interpreter, const struct tasks *asyncio,
		  struct python_tasks *ret);
