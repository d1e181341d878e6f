/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in batch-memory.h. The memory is head, columns, sizes of the segments, and then the
 * segments, each 8-aligned: what andiron/batch.h says of a batch holds for it as it stands. */
#include "host/isolate/batch-memory.h"

#include "abi/batch-view.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SEALS        (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif
#define MAX_COLUMNS  256
#define MAX_SEGMENTS 65536
#define MAX_BATCH    ((size_t)ANDIRON_BATCH_MAX_BYTES + (1u << 20)) /* with its head */

struct head {
	uint32_t n_columns, n_segments, demangle, reserved;
	int64_t start_ns, end_ns;
	uint64_t samples, producer, sequence;
};

struct copied {
	struct andiron_batch batch;
	atomic_uint refs;
	const struct andiron_batch *parent;
	struct buf bytes;
	struct andiron_segment segments[];
};

static int memory_new(int *ret_fd)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create("andiron-batch", flags | MFD_NOEXEC_SEAL);

	/* Where vm.memfd_noexec is 2 there is none without; before Linux 6.3, none with. */
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("andiron-batch", flags);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static int seal(int fd)
{
	return fcntl(fd, F_ADD_SEALS, SEALS) < 0 ? -errno : 0;
}

int memory_of_bytes(struct str bytes, int *ret_fd)
{
	_cleanup_(closep) int fd = -1;
	int r = memory_new(&fd);

	if (r == 0)
		r = file_write_fd(fd, bytes.p, bytes.n);
	if (r == 0)
		r = seal(fd);
	if (r == 0)
		*ret_fd = take_fd(fd);
	return r;
}

int memory_bytes(int fd, size_t most, struct buf *ret)
{
	int seals = fcntl(fd, F_GET_SEALS), r;
	struct stat st;
	char *room;

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0 || st.st_size < 0 ||
	    (uint64_t)st.st_size > most)
		return -EBADMSG;
	room = buf_reserve(ret, (size_t)st.st_size + 1);
	if (!room)
		return -ENOMEM;
	r = file_pread(fd, room, (size_t)st.st_size, 0);
	if (r < 0)
		return r;
	ret->n += (size_t)st.st_size;
	return 0;
}

static int write_segments(int fd, const struct andiron_batch *batch)
{
	static const char zeros[8];
	int r = 0;

	for (uint32_t i = 0; i < batch->n_segments && r == 0; i++) {
		r = file_write_fd(fd, batch->segments[i].base, batch->segments[i].size);
		if (r == 0)
			r = file_write_fd(fd, zeros, -batch->segments[i].size % 8);
	}
	return r;
}

int memory_of_batch(const struct andiron_batch *batch, int *ret_fd)
{
	const struct head head = {.n_columns = batch->n_columns,
				  .n_segments = batch->n_segments,
				  .demangle = batch->demangle,
				  .start_ns = batch->start_ns,
				  .end_ns = batch->end_ns,
				  .samples = batch->samples,
				  .producer = batch->producer,
				  .sequence = batch->sequence};
	_cleanup_(closep) int fd = -1;
	int r = batch->n_columns <= MAX_COLUMNS && batch->n_segments <= MAX_SEGMENTS ? 0 : -E2BIG;

	if (r == 0)
		r = memory_new(&fd);
	if (r == 0)
		r = file_write_fd(fd, &head, sizeof(head));
	if (r == 0)
		r = file_write_fd(fd, batch->columns,
				  batch->n_columns * sizeof(struct andiron_column));
	for (uint32_t i = 0; i < batch->n_segments && r == 0; i++)
		r = file_write_fd(fd, &batch->segments[i].size, sizeof(uint64_t));
	if (r == 0)
		r = write_segments(fd, batch);
	if (r == 0)
		r = seal(fd);
	if (r == 0)
		*ret_fd = take_fd(fd);
	return r;
}

static void retain(void *owner)
{
	struct copied *c = owner;

	atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
}

static void release(void *owner)
{
	struct copied *c = owner;

	if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (c->parent)
		c->parent->release(c->parent->owner);
	buf_free(&c->bytes);
	free(c);
}

/* The next n bytes, or NULL. */
static const void *next(struct str *rest, uint64_t n)
{
	const char *at = rest->p;

	if (n > rest->n)
		return NULL;
	*rest = str_skip(*rest, n);
	return at;
}

static int place_segments(struct copied *c, const char *sizes, struct str rest)
{
	for (uint32_t i = 0; i < c->batch.n_segments; i++) {
		uint64_t size;
		const void *base;

		memcpy(&size, sizes + i * sizeof(size), sizeof(size));
		if (size > rest.n)
			return -EBADMSG;
		base = next(&rest, (size + 7) / 8 * 8);
		if (!base)
			return -EBADMSG;
		c->segments[i] = (struct andiron_segment){.base = base, .size = size, .fd = -1};
	}
	return rest.n ? -EBADMSG : 0;
}

static int parse(struct buf *bytes, const struct andiron_batch *parent,
		 const struct andiron_batch **ret)
{
	struct str rest = buf_str(bytes);
	const struct head *head = next(&rest, sizeof(*head));
	const struct andiron_column *columns;
	struct batch_view view;
	const char *sizes;
	struct copied *c;
	int r;

	if (!head || head->n_columns > MAX_COLUMNS || head->n_segments > MAX_SEGMENTS)
		return -EBADMSG;
	columns = next(&rest, head->n_columns * sizeof(*columns));
	sizes = columns ? next(&rest, head->n_segments * sizeof(uint64_t)) : NULL;
	if (!sizes)
		return -EBADMSG;
	c = calloc(1, sizeof(*c) + head->n_segments * sizeof(c->segments[0]));
	if (!c)
		return -ENOMEM;
	c->refs = 1;
	c->batch = (struct andiron_batch){.size = sizeof(c->batch),
					  .demangle = head->demangle,
					  .n_columns = head->n_columns,
					  .n_segments = head->n_segments,
					  .columns = columns,
					  .segments = c->segments,
					  .start_ns = head->start_ns,
					  .end_ns = head->end_ns,
					  .samples = head->samples,
					  .bytes = bytes->n,
					  .producer = head->producer,
					  .sequence = head->sequence,
					  .owner = c,
					  .retain = retain,
					  .release = release};
	r = place_segments(c, sizes, rest);
	if (r < 0 || batch_view_init(&view, &c->batch) < 0) {
		free(c);
		return -EBADMSG;
	}
	c->bytes = *bytes;
	*bytes = BUF_NULL;
	if (parent)
		parent->retain(parent->owner);
	c->parent = parent;
	*ret = &c->batch;
	return 0;
}

int memory_batch(int fd, const struct andiron_batch *parent, const struct andiron_batch **ret)
{
	struct buf bytes = BUF_NULL;
	int r = memory_bytes(fd, MAX_BATCH, &bytes);

	if (r == 0)
		r = parse(&bytes, parent, ret);
	buf_free(&bytes);
	return r;
}
