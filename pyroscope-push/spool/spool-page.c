/* SPDX-License-Identifier: Apache-2.0 */
/* The page beside the segments: counts that a kill would lose. It is not mapped, since a store into
 * a mapping on a full or read-only disk is a signal, and a write an error. It is no entry of the
 * log, which would grow each second, and could not on a full disk. */
#include "pyroscope-push/spool/spool-files.h"

#include "base/check.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#define PAGE_MAGIC 0x47504153u /* "SAPG" */
#define PAGE_HEAD  48
#define PAGE_BYTES (PAGE_HEAD + SPOOL_REASONS * 32) /* from the first: it is never to grow */

static uint32_t checksum(const char *page)
{
	return (uint32_t)crc32_z(0, (const unsigned char *)page + 8, PAGE_BYTES - 8);
}

static void read_page(struct spool *s, const char *page)
{
	struct entry_reader r = {.rest = {page, PAGE_BYTES}};
	uint32_t magic = entry_u32(&r), crc = entry_u32(&r), version = entry_u32(&r);

	entry_u32(&r);
	if (magic != PAGE_MAGIC || crc != checksum(page) || version != ENTRY_VERSION)
		return;
	s->kept_at = entry_u64(&r);
	s->kept.coming = entry_u64(&r);
	s->kept.in_memory = entry_u64(&r);
	s->kept.uncertain = entry_u64(&r);
	for (size_t i = 0; i < SPOOL_REASONS; i++) {
		struct spool_drop *drop = &s->kept.dropped[i];

		memcpy(drop->reason, r.rest.p, sizeof(drop->reason) - 1);
		r.rest = str_skip(r.rest, sizeof(drop->reason));
		drop->samples = entry_u64(&r);
	}
}

void page_open(struct spool *s)
{
	int flags = O_CLOEXEC | O_NOFOLLOW;
	char page[PAGE_BYTES];

	s->page = openat(s->directory, "page", O_RDWR | O_CREAT | flags, 0600);
	if (s->page < 0) /* on a disk that has become read-only */
		s->page = openat(s->directory, "page", O_RDONLY | flags);
	if (s->page >= 0 && file_pread(s->page, page, sizeof(page), 0) == 0)
		read_page(s, page);
}

static uint64_t next_sequence(const struct spool *s)
{
	return s->fd < 0 ? (s->last_number + 1) << 32 : s->last_number << 32 | s->next_entry;
}

int spool_keep(struct spool *s, const struct spool_books *books)
{
	uint64_t next = next_sequence(s);
	char page[PAGE_BYTES] = {0};
	ssize_t n;

	if (s->page < 0)
		return -EROFS;
	if (memcmp(&s->kept, books, sizeof(*books)) == 0 && s->kept_at == next)
		return 0;
	entry_put_u32(page, PAGE_MAGIC);
	entry_put_u32(page + 8, ENTRY_VERSION);
	entry_put_u64(page + 16, next);
	entry_put_u64(page + 24, books->coming);
	entry_put_u64(page + 32, books->in_memory);
	entry_put_u64(page + 40, books->uncertain);
	for (size_t i = 0; i < SPOOL_REASONS; i++) {
		const struct spool_drop *drop = &books->dropped[i];
		char *at = page + PAGE_HEAD + i * 32;

		memcpy(at, drop->reason, sizeof(drop->reason));
		entry_put_u64(at + sizeof(drop->reason), drop->samples);
	}
	entry_put_u32(page + 4, checksum(page));
	n = pwrite(s->page, page, sizeof(page), 0);
	if (n != sizeof(page))
		return n < 0 ? -errno : -EIO;
	s->kept = *books;
	s->kept_at = next;
	return 0;
}
