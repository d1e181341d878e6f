/* SPDX-License-Identifier: Apache-2.0 */
/* Scope guards: a local that frees itself on every way out.
 *
 *     _cleanup_(freep) char *text = NULL;
 *     _cleanup_(closep) int fd = -1;
 *     *ret = take_ptr(text);    hands it out and disarms the guard
 *
 * A type's own guard is made by DEFINE_CLEANUP(struct thing *, thing_free), next to thing_free, and
 * is called thing_freep. */
#pragma once

#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

#define DEFINE_CLEANUP(type, fn)                                                                   \
	static inline void fn##p(type *p)                                                          \
	{                                                                                          \
		if (*p)                                                                            \
			fn(*p);                                                                    \
	}                                                                                          \
	struct cleanup_##fn##_needs_semicolon

static inline void freep(void *p)
{
	free(*(void **)p);
}

static inline void closep(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#define take_ptr(p)                                                                                \
	__extension__({                                                                            \
		__typeof__(p) taken_ = (p);                                                        \
		(p) = NULL;                                                                        \
		taken_;                                                                            \
	})

#define take_fd(fd)                                                                                \
	__extension__({                                                                            \
		int taken_ = (fd);                                                                 \
		(fd) = -1;                                                                         \
		taken_;                                                                            \
	})
