/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing whole files, with bounds. No file is ever mapped: reading a file that another
 * user truncates would be a SIGBUS. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <sys/types.h>

/* Appends what `fd` holds from its position on, at most `max` bytes: 0, -E2BIG if there is more
 * (the first `max` bytes are in b), or a negative errno. */
int file_read_fd(int fd, struct buf *b, size_t max);

/* The same for a path, relative to directory `at` (AT_FDCWD). */
int file_read(int at, const char *path, struct buf *b, size_t max);

/* Exactly n bytes at `offset`: 0, -ENODATA if the file is shorter, or a negative errno. */
int file_pread(int fd, void *data, size_t n, uint64_t offset);

/* All of it, over short writes and EINTR: 0 or a negative errno. */
int file_write_fd(int fd, const void *data, size_t n);

/* Replaces `path` by writing beside it and renaming, so that a reader sees the old file or the
 * whole new one. Mode 0644 less umask. */
int file_replace(const char *path, const void *data, size_t n, struct error *err);

/* The same for a regular file that exists, and is on disk afterwards. It keeps mode and owner, but
 * no access lists and attributes; a symbolic link still leads to it. */
int file_rewrite(const char *path, const void *data, size_t n, struct error *err);
