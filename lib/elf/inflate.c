/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders behind one loop that reads, bounds and hands out. Contract in inflate.h. */
#include "elf/inflate.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <endian.h>
#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define PIECE           ((size_t)65536)
#define ZSTD_WINDOW_LOG 23 /* 8 MiB: what all levels need but --ultra's */

struct stream {
	const struct elf_file *f;
	uint64_t at, end; /* of what is left to read */
	unsigned char *in, *out;
	unsigned char *next; /* in `in`: bytes that are not decoded yet */
	size_t n_next;
	z_stream zlib;
	lzma_stream xz;
	ZSTD_DCtx *zstd;
};

/* One call of a decoder: *ret_n bytes are in s->out, *ret_done behind the last. It may take and
 * make nothing. */
typedef int (*step_fn)(struct stream *s, size_t *ret_n, bool *ret_done);

static int step_zlib(struct stream *s, size_t *ret_n, bool *ret_done)
{
	int z;

	s->zlib.next_in = s->next;
	s->zlib.avail_in = (uInt)s->n_next;
	s->zlib.next_out = s->out;
	s->zlib.avail_out = (uInt)PIECE;
	z = inflate(&s->zlib, Z_NO_FLUSH);
	if (z != Z_OK && z != Z_STREAM_END && z != Z_BUF_ERROR)
		return z == Z_MEM_ERROR ? -ENOMEM : -ENOEXEC;
	s->next = s->zlib.next_in;
	s->n_next = s->zlib.avail_in;
	*ret_n = PIECE - s->zlib.avail_out;
	*ret_done = z == Z_STREAM_END;
	return 0;
}

/* Of several frames all count. */
static int step_zstd(struct stream *s, size_t *ret_n, bool *ret_done)
{
	ZSTD_inBuffer in = {s->next, s->n_next, 0};
	ZSTD_outBuffer out = {s->out, PIECE, 0};
	size_t z = ZSTD_decompressStream(s->zstd, &out, &in);

	if (ZSTD_isError(z)) {
		ZSTD_ErrorCode error = ZSTD_getErrorCode(z);

		return error == ZSTD_error_memory_allocation               ? -ENOMEM
		       : error == ZSTD_error_frameParameter_windowTooLarge ? -E2BIG
									   : -ENOEXEC;
	}
	s->next += in.pos;
	s->n_next -= in.pos;
	*ret_n = out.pos;
	*ret_done = z == 0 && s->n_next == 0 && s->at == s->end;
	return 0;
}

static int step_xz(struct stream *s, size_t *ret_n, bool *ret_done)
{
	lzma_ret z;

	s->xz.next_in = s->next;
	s->xz.avail_in = s->n_next;
	s->xz.next_out = s->out;
	s->xz.avail_out = PIECE;
	z = lzma_code(&s->xz, s->at == s->end ? LZMA_FINISH : LZMA_RUN);
	if (z == LZMA_MEM_ERROR)
		return -ENOMEM;
	if (z == LZMA_MEMLIMIT_ERROR)
		return -E2BIG;
	if (z != LZMA_OK && z != LZMA_STREAM_END)
		return -ENOEXEC;
	s->next += s->n_next - s->xz.avail_in;
	s->n_next = s->xz.avail_in;
	*ret_n = PIECE - s->xz.avail_out;
	*ret_done = z == LZMA_STREAM_END;
	return 0;
}

static const step_fn steps[] = {
	[ELF_CODEC_ZLIB] = step_zlib, [ELF_CODEC_ZSTD] = step_zstd, [ELF_CODEC_XZ] = step_xz};

static bool stream_init(struct stream *s, enum elf_codec codec)
{
	unsigned char *memory = malloc(2 * PIECE);

	if (!memory)
		return false;
	s->in = memory;
	s->out = memory + PIECE;
	switch (codec) {
	case ELF_CODEC_ZLIB:
		return inflateInit(&s->zlib) == Z_OK;
	case ELF_CODEC_ZSTD:
		s->zstd = ZSTD_createDCtx();
		return s->zstd && !ZSTD_isError(ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_windowLogMax,
								       ZSTD_WINDOW_LOG));
	case ELF_CODEC_XZ:
		return lzma_stream_decoder(&s->xz, MINIDEBUG_MEMORY, 0) == LZMA_OK;
	default:
		absurd("a codec that is none");
	}
}

static void stream_fini(struct stream *s)
{
	inflateEnd(&s->zlib);
	lzma_end(&s->xz);
	ZSTD_freeDCtx(s->zstd);
	free(s->in);
}

static int refill(struct stream *s)
{
	size_t n = s->end - s->at < PIECE ? (size_t)(s->end - s->at) : PIECE;

	if (s->n_next)
		return 0;
	s->next = s->in;
	s->n_next = n;
	s->at += n;
	return n ? file_pread(s->f->fd, s->in, n, s->at - n) : 0;
}

static int run(struct stream *s, const struct elf_compressed *c, elf_inflate_fn put, void *context)
{
	uint64_t total = 0;
	bool done = false;

	while (!done) {
		size_t n = 0;
		int r = refill(s);

		if (r == 0)
			r = steps[c->codec](s, &n, &done);
		if (r < 0)
			return r;
		check(n <= PIECE && total <= c->max);
		if (n > c->max - total)
			return c->exact ? -ENOEXEC : -E2BIG;
		if (!done && n == 0 && s->n_next == 0 && s->at == s->end)
			return -ENOEXEC; /* cut short */
		total += n;
		r = n ? put(context, s->out, n) : 0;
		if (r < 0)
			return r;
	}
	return c->exact && total != c->max ? -ENOEXEC : 0;
}

int elf_inflate(const struct elf_file *f, const struct elf_compressed *c, elf_inflate_fn put,
		void *context)
{
	struct stream s = {.f = f, .at = c->offset, .end = c->end, .xz = LZMA_STREAM_INIT};
	int r;

	check(c->offset <= c->end && c->end <= f->size);
	r = stream_init(&s, c->codec) ? run(&s, c, put, context) : -ENOMEM;
	stream_fini(&s);
	return r;
}

struct sink {
	int fd;
	uint64_t n;
};

static int write_out(void *context, const void *bytes, size_t n)
{
	struct sink *sink = context;

	sink->n += n;
	return file_write_fd(sink->fd, bytes, n);
}

int elf_inflate_memfd(const struct elf_file *f, const struct elf_compressed *c, int *ret_fd,
		      uint64_t *ret_n)
{
	_cleanup_(closep) int fd = memfd_create("andiron-debug", MFD_CLOEXEC);
	struct sink sink = {.fd = fd};
	int r;

	if (fd < 0)
		return -errno;
	r = elf_inflate(f, c, write_out, &sink);
	if (r == 0) {
		*ret_n = sink.n;
		*ret_fd = take_fd(fd);
	}
	return r;
}

bool elf_section_is_compressed(const struct elf_file *f, const Elf64_Shdr *s)
{
	return s->sh_flags & SHF_COMPRESSED ||
	       str_starts(elf_file_section_name(f, s), STR(".zdebug_"));
}

int elf_compressed_read(const struct elf_file *f, const Elf64_Shdr *s, uint64_t max,
			struct elf_compressed *ret)
{
	union {
		Elf64_Chdr elf;
		struct {
			char magic[4];
			unsigned char size[8];
		} gnu;
	} head;
	bool gnu = !(s->sh_flags & SHF_COMPRESSED);
	size_t n = gnu ? sizeof(head.gnu) : sizeof(head.elf);
	uint64_t claim;
	int r;

	if (s->sh_size < n || !elf_file_holds(f, s->sh_offset, s->sh_size))
		return -ENOEXEC;
	r = file_pread(f->fd, &head, n, s->sh_offset);
	if (r < 0)
		return r;
	if (gnu) {
		if (memcmp(head.gnu.magic, "ZLIB", sizeof(head.gnu.magic)) != 0)
			return -ENOEXEC;
		memcpy(&claim, head.gnu.size, sizeof(claim));
		claim = be64toh(claim);
	} else {
		if (head.elf.ch_type != ELFCOMPRESS_ZLIB && head.elf.ch_type != ELFCOMPRESS_ZSTD)
			return -ENOTSUP;
		claim = head.elf.ch_size;
	}
	if (claim > max)
		return -E2BIG;
	*ret = (struct elf_compressed){
		.codec = !gnu && head.elf.ch_type == ELFCOMPRESS_ZSTD ? ELF_CODEC_ZSTD
								      : ELF_CODEC_ZLIB,
		.offset = s->sh_offset + n,
		.end = s->sh_offset + s->sh_size,
		.max = claim,
		.exact = true,
	};
	return 0;
}

int elf_minidebug_open(struct elf_file *f, int *ret_fd)
{
	struct elf_compressed c = {.codec = ELF_CODEC_XZ, .max = MINIDEBUG_MAX};
	int r = elf_file_load_sections(f, NULL);
	const Elf64_Shdr *section;
	uint64_t n;

	if (r < 0)
		return r;
	section = elf_file_section(f, ".gnu_debugdata");
	if (!section || section->sh_type == SHT_NOBITS)
		return -ENOENT;
	if (!elf_file_holds(f, section->sh_offset, section->sh_size))
		return -ENOEXEC;
	c.offset = section->sh_offset;
	c.end = section->sh_offset + section->sh_size;
	return elf_inflate_memfd(f, &c, ret_fd, &n);
}
