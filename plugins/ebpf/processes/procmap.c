/* SPDX-License-Identifier: Apache-2.0 */
/* See procmap.h. */
#include "ebpf/processes/procmap.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "ebpf/processes/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>

/* The kernel's own, which older headers do not have. */
struct query {
	uint64_t size;
	uint64_t query_flags, query_addr;
	uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset;
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	uint32_t vma_name_size, build_id_size;
	uint64_t vma_name_addr, build_id_addr;
};

_Static_assert(sizeof(struct query) == 104, "the kernel's");

#define QUERY            _IOWR('f', 17, struct query)
#define QUERY_READABLE   0x01u
#define QUERY_WRITABLE   0x02u
#define QUERY_EXECUTABLE 0x04u
#define QUERY_SHARED     0x08u
#define QUERY_OR_NEXT    0x10u /* the one that covers the address, or the next */

/* As the text has it: a name is one line. */
static int put_name(struct buf *text, struct str name)
{
	int r = 0;

	while (r == 0 && name.n) {
		struct str part = str_first(name, str_find(name, '\n'));

		r = buf_str_append(text, part);
		name = str_skip(name, part.n);
		if (r == 0 && name.n) {
			r = buf_str_append(text, STR("\\012"));
			name = str_skip(name, 1);
		}
	}
	return r;
}

static int put_line(struct buf *text, const struct query *q, struct str name)
{
	int r = buf_printf(text, "%08llx-%08llx %c%c%c%c %08llx %02x:%02x %llu ",
			   (unsigned long long)q->vma_start, (unsigned long long)q->vma_end,
			   q->vma_flags & QUERY_READABLE ? 'r' : '-',
			   q->vma_flags & QUERY_WRITABLE ? 'w' : '-',
			   q->vma_flags & QUERY_EXECUTABLE ? 'x' : '-',
			   q->vma_flags & QUERY_SHARED ? 's' : 'p',
			   (unsigned long long)q->vma_offset, q->dev_major, q->dev_minor,
			   (unsigned long long)q->inode);

	if (r == 0)
		r = put_name(text, name);
	return r == 0 ? buf_putc(text, '\n') : r;
}

/* The first executable mapping from an address on. Without its name where that is too long. */
static int ask_one(int fd, uint64_t address, char *name, uint32_t n, struct query *ret)
{
	*ret = (struct query){
		.size = sizeof(*ret),
		.query_flags = QUERY_EXECUTABLE | QUERY_OR_NEXT,
		.query_addr = address,
		.vma_name_size = n,
		.vma_name_addr = n ? (uint64_t)(uintptr_t)name : 0,
	};
	if (ioctl(fd, QUERY, ret) == 0)
		return 0;
	if (errno == ENAMETOOLONG && n)
		return ask_one(fd, address, name, 0, ret);
	return -errno;
}

static uint64_t hash_answer(uint64_t h, const struct query *q)
{
	h = hash_mix(h, q->vma_start);
	h = hash_mix(h, q->vma_end);
	h = hash_mix(h, q->vma_flags);
	h = hash_mix(h, q->vma_offset);
	h = hash_mix(h, q->inode);
	return hash_mix(h, (uint64_t)q->dev_major << 32 | q->dev_minor);
}

static int ask(int fd, struct buf *text, size_t max, uint64_t *hash)
{
	size_t begin = text->n;
	struct query q = {0};
	char name[4096];
	size_t end;
	int r;

	for (uint32_t n = 0; n < MAPS_MAX; n++) {
		r = ask_one(fd, q.vma_end, name, sizeof(name), &q);
		if (r != 0)
			return r == -ENOENT ? 0 : r;
		*hash = hash_answer(*hash, &q);
		end = text->n;
		r = put_line(text, &q,
			     (struct str){name, q.vma_name_size ? q.vma_name_size - 1 : 0});
		if (r == 0 && text->n - begin > max) {
			text->n = end;
			r = -E2BIG;
		}
		if (r != 0)
			return r;
	}
	return 0;
}

static int read_text(struct procmap *t, struct procmap_pace *pace, int fd, struct buf *text,
		     size_t max)
{
	int64_t start = clock_mono();
	int r;

	if (start < pace->next_ns) {
		t->n_deferred++;
		return -EAGAIN;
	}
	t->n_texts++;
	r = file_read_fd(fd, text, max);
	pace->next_ns = start + (clock_mono() - start) * PROCMAP_PACE;
	return r;
}

int procmap_read(struct procmap *t, struct procmap_pace *pace, int dir, struct buf *text,
		 size_t max)
{
	_cleanup_(closep) int fd = openat(dir, "maps", O_RDONLY | O_CLOEXEC);
	size_t begin = text->n;
	int r;

	if (fd < 0)
		return -errno;
	t->asked = 0;
	if (!t->text_only) {
		r = ask(fd, text, max, &t->asked);
		if (r == 0 || r == -ESRCH || r == -E2BIG || r == -ENOMEM)
			return r;
		t->text_only = r == -ENOTTY;
		t->asked = 0;
		text->n = begin;
	}
	return read_text(t, pace, fd, text, max);
}

bool procmap_is(const struct procmap *t, int dir, uint64_t asked)
{
	_cleanup_(closep) int fd = t->text_only ? -1 : openat(dir, "maps", O_RDONLY | O_CLOEXEC);
	struct query q = {0};
	uint64_t hash = 0;

	for (uint32_t n = 0; fd >= 0 && n < MAPS_MAX; n++) {
		int r = ask_one(fd, q.vma_end, NULL, 0, &q);

		if (r != 0)
			return r == -ENOENT && hash == asked;
		hash = hash_answer(hash, &q);
	}
	return false;
}
