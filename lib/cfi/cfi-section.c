/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a section with call-frame information. Contract in cfi.h.
 *
 * A window moves over the file. Functions are asked for in the order of their addresses, which
 * mostly is that of the section, in a few passes over it (cold code first): whoever goes on a
 * little gets a whole window, whoever jumps gets one page, so that no order costs more than a small
 * read per record. */
#include "cfi/cfi.h"

#include "base/check.h"
#include "base/file.h"
#include "elf/inflate.h"

#include <errno.h>
#include <stdlib.h>

#define WINDOW_MAX ((size_t)65536)
#define JUMP_BYTES ((size_t)4096)
#define RECORD_MAX (UINT64_C(16) << 20)

static uint64_t leb(struct cfi_bytes *b, bool is_signed)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = cfi_u8(b);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && (byte & 0x40) && shift < 64)
		value |= ~UINT64_C(0) << shift;
	return value;
}

uint64_t cfi_uleb_long(struct cfi_bytes *b)
{
	return leb(b, false);
}

int64_t cfi_sleb(struct cfi_bytes *b)
{
	return (int64_t)leb(b, true);
}

static int open_range(struct cfi_section *s, const struct elf_file *f, uint64_t offset,
		      uint64_t size, uint64_t address)
{
	size_t capacity = size / 8 < WINDOW_MAX ? (size_t)(size / 8) : WINDOW_MAX;

	if (!elf_file_holds(f, offset, size))
		return -ENOEXEC;
	if (size > UINT32_MAX)
		return -E2BIG;
	*s = (struct cfi_section){
		.address = address,
		.size = size,
		.fd = f->fd,
		.offset = offset,
		.capacity = capacity < JUMP_BYTES ? JUMP_BYTES : capacity,
	};
	s->window = malloc(s->capacity);
	return s->window ? 0 : -ENOMEM;
}

int cfi_section_open_range(struct cfi_section *s, const struct elf_file *f, uint64_t offset,
			   uint64_t size, uint64_t address)
{
	int r = open_range(s, f, offset, size < UINT32_MAX ? size : UINT32_MAX, address);

	s->open_end = true;
	return r;
}

static int open_inflated(struct cfi_section *s, const struct elf_file *f, const Elf64_Shdr *header)
{
	struct buf content = {.limit = CFI_INFLATED_MAX};
	int r = elf_file_read_section(f, header, CFI_INFLATED_MAX, &content);

	if (r < 0) {
		buf_free(&content);
		return r;
	}
	*s = (struct cfi_section){
		.size = content.n,
		.fd = -1,
		.window = (uint8_t *)content.p,
		.high = content.n,
		.capacity = content.capacity,
	};
	return 0;
}

int cfi_section_open(struct cfi_section *s, const struct elf_file *f, const Elf64_Shdr *header)
{
	int r;

	if (header->sh_type == SHT_NOBITS)
		return -ENOEXEC;
	r = elf_section_is_compressed(f, header)
		    ? open_inflated(s, f, header)
		    : open_range(s, f, header->sh_offset, header->sh_size, header->sh_addr);
	if (r == 0)
		s->debug = elf_file_section_is(f, header, ".debug_frame");
	return r;
}

void cfi_section_close(struct cfi_section *s)
{
	for (size_t i = 0; i < CFI_CIES; i++)
		free(s->cies[i].bytes);
	free(s->window);
	*s = CFI_SECTION_NULL;
}

/* Room for n bytes; what the window holds is lost. */
static int widen(struct cfi_section *s, size_t n)
{
	uint8_t *window;

	if (n <= s->capacity)
		return 0;
	s->low = s->high = 0;
	window = realloc(s->window, n);
	if (!window)
		return -ENOMEM;
	s->window = window;
	s->capacity = n;
	return 0;
}

static int fill(struct cfi_section *s, uint64_t at, size_t n)
{
	bool ahead = at >= s->low && at <= s->high + JUMP_BYTES;
	uint64_t left = s->size - at;
	size_t want = ahead ? s->capacity : JUMP_BYTES;
	int r = widen(s, n);

	if (r < 0)
		return r;
	want = want < n ? n : want;
	want = want < left ? want : (size_t)left;
	check(s->fd >= 0 && want <= s->capacity); /* an inflated section is whole */
	s->low = s->high = at;
	r = file_pread(s->fd, s->window, want, s->offset + at);
	if (r == 0)
		s->high = at + want;
	return r;
}

int cfi_section_bytes(struct cfi_section *s, uint64_t at, uint64_t n, const uint8_t **ret)
{
	int r = 0;

	if (at > s->size || n > s->size - at || n > RECORD_MAX)
		return -ENODATA;
	if (at < s->low || at + n > s->high)
		r = fill(s, at, (size_t)n);
	if (r < 0)
		return r;
	*ret = s->window + (at - s->low);
	return r;
}
