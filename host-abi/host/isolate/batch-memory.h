/* SPDX-License-Identifier: Apache-2.0 */
/* Batches and arguments in sealed memory: a memfd that nobody can write, shorten or lengthen any
 * more. It is read, never mapped, and checked as what a stranger has written. */
#pragma once

#include "base/buf.h"

#include <andiron/batch.h>

/* A new memfd with these bytes: 0 and *ret_fd, the caller's to close, or a negative errno. O(n) */
int memory_of_bytes(struct str bytes, int *ret_fd);
/* Appends all that it holds, at most `most` bytes: 0; -EBADMSG: it is not sealed, or larger;
 * -ENOMEM, or what reading says. */
int memory_bytes(int fd, size_t most, struct buf *ret);

/* The same of a batch; objects stay ids. O(bytes) */
int memory_of_batch(const struct andiron_batch *batch, int *ret_fd);
/* A batch with one reference, whose layout is as batch-view.h wants it and whose `bytes` is what it
 * takes here. `parent` (may be NULL) is retained as long as it lives, since its objects are that
 * one's. 0, -EBADMSG, -ENOMEM. O(bytes) */
int memory_batch(int fd, const struct andiron_batch *parent, const struct andiron_batch **ret);
