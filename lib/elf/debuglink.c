/* SPDX-License-Identifier: Apache-2.0 */
/* Links to debug information. Contract in debuglink.h. */
#include "elf/debuglink.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <zlib.h>

#define PIECE      ((size_t)65536)
#define LINK_BYTES ((size_t)4096)

/* A name that cannot lead elsewhere than into a folder. */
static bool plain_name(struct str name)
{
	return name.n && name.n <= DEBUGLINK_NAME_MAX && str_find(name, '/') == name.n &&
	       !str_is(name, ".") && !str_is(name, "..");
}

/* The text at the front and what follows it. */
static bool split(const struct buf *b, struct str *text, struct str *rest)
{
	size_t n = b->n ? strnlen(b->p, b->n) : 0;

	if (n >= b->n)
		return false;
	*text = (struct str){b->p, n};
	*rest = str_skip(buf_str(b), n + 1);
	return true;
}

static void take_link(const struct buf *b, struct elf_debuglinks *ret)
{
	struct str name, rest;
	size_t at;

	if (!split(b, &name, &rest) || !plain_name(name))
		return;
	at = (name.n + 1 + 3) & ~(size_t)3; /* the CRC is aligned to 4 */
	if (b->n < at + 4)
		return;
	memcpy(ret->name, name.p, name.n);
	memcpy(&ret->crc, b->p + at, 4);
}

static void take_altlink(const struct buf *b, struct elf_debuglinks *ret)
{
	struct str name, id;

	if (split(b, &name, &id) && id.n && id.n <= ELF_BUILD_ID_CHARS / 2)
		elf_hex(id.p, id.n, ret->alt_build_id);
}

static int read_link(const struct elf_file *f, const char *name, struct buf *out)
{
	const Elf64_Shdr *s = elf_file_section(f, name);
	int r = s ? elf_file_read_section(f, s, LINK_BYTES, out) : -ENOENT;

	return r == -ENOENT || r == -ENODATA || r == -ENOEXEC || r == -E2BIG || r == -ENOTSUP ? 0
											      : r;
}

int elf_debuglinks_read(struct elf_file *f, struct elf_debuglinks *ret)
{
	_cleanup_(buf_free) struct buf link = BUF_NULL, alt = BUF_NULL;
	int r = elf_file_load_sections(f, NULL);

	if (r == 0)
		r = read_link(f, ".gnu_debuglink", &link);
	if (r == 0)
		r = read_link(f, ".gnu_debugaltlink", &alt);
	if (r < 0)
		return r;
	memset(ret, 0, sizeof(*ret));
	take_link(&link, ret);
	take_altlink(&alt, ret);
	return 0;
}

int elf_debuglink_crc(int fd, uint64_t max, uint32_t *ret)
{
	_cleanup_(freep) unsigned char *piece = malloc(PIECE);
	uLong crc = crc32(0, NULL, 0);
	struct stat st;

	if (!piece)
		return -ENOMEM;
	if (fstat(fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size > max)
		return -E2BIG;
	for (uint64_t at = 0, size = (uint64_t)st.st_size; at < size;) {
		size_t n = size - at < PIECE ? (size_t)(size - at) : PIECE;
		int r = file_pread(fd, piece, n, at);

		if (r < 0)
			return r;
		crc = crc32(crc, piece, (uInt)n);
		at += n;
	}
	*ret = (uint32_t)crc;
	return 0;
}

static int build_id_of(int fd, struct elf_ids *ret)
{
	struct elf_file f = ELF_FILE_NULL;
	int r = elf_file_open(&f, fd, NULL);

	if (r == 0)
		r = elf_ids_read(&f, ret);
	elf_file_close(&f);
	return r;
}

int elf_debuglink_belongs(struct elf_file *own, const struct elf_debuglinks *links, int debug,
			  uint64_t max)
{
	struct elf_ids ids, other;
	uint32_t crc;
	int r = elf_ids_read(own, &ids);

	if (r == 0)
		r = build_id_of(debug, &other);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (ids.gnu_build_id[0] && other.gnu_build_id[0])
		return !strcmp(ids.gnu_build_id, other.gnu_build_id);
	if (!links->name[0])
		return 0;
	r = elf_debuglink_crc(debug, max, &crc);
	return r == -ENOMEM ? r : r == 0 && crc == links->crc;
}
