/* SPDX-License-Identifier: Apache-2.0 */
/* The tests' writer of call-frame information. Contract in test-frames.h. */
#include "unwind/tests/test-frames.h"

#include "base/cleanup.h"
#include "testing/test.h"

void frames_begin(struct frames *x)
{
	*x = (struct frames){0};
	elf_writer_init(&x->w);
}

void frames_end(struct frames *x)
{
	elf_writer_fini(&x->w);
	buf_free(&x->bytes);
	buf_free(&x->table);
}

static void put32(struct buf *b, uint64_t value)
{
	uint32_t v = (uint32_t)value;

	expect_eq(buf_append(b, &v, 4), 0);
}

static void finish_record(struct buf *b, size_t at)
{
	uint32_t n;

	while (b->n % 8)
		expect_eq(buf_putc(b, 0), 0);
	n = (uint32_t)(b->n - at - 4);
	memcpy(b->p + at, &n, 4);
}

/* A CIE of .eh_frame with code alignment 1, data alignment -8; returns where it lies. */
size_t frames_cie(struct frames *x, const char *augmentation, uint8_t ra, const char *ops, size_t n)
{
	struct buf *b = &x->bytes;
	size_t at = b->n;

	put32(b, 0);
	put32(b, x->debug ? UINT32_MAX : 0);
	expect_eq(buf_putc(b, 1), 0);
	expect_eq(buf_append(b, augmentation, strlen(augmentation) + 1), 0);
	expect_eq(buf_append(b, "\x01\x78", 2), 0);
	expect_eq(buf_putc(b, (char)ra), 0);
	if (*augmentation == 'z')
		expect_eq(buf_append(b, "\x01\x1b", 2), 0);
	expect_eq(buf_append(b, ops, n), 0);
	finish_record(b, at);
	return at;
}

size_t frames_usual_cie(struct frames *x)
{
	return frames_cie(x, x->debug ? "" : "zR", 16, OPS(USUAL));
}

void frames_fde(struct frames *x, size_t of, uint64_t start, uint32_t size, const char *ops,
		size_t n)
{
	struct buf *b = &x->bytes;
	size_t at = b->n;

	put32(&x->table, start - HDR_AT);
	put32(&x->table, FRAMES_AT + at - HDR_AT);
	put32(b, 0);
	if (x->debug) {
		uint64_t range[2] = {start, size};

		put32(b, of);
		expect_eq(buf_append(b, range, 16), 0);
	} else {
		put32(b, b->n - of);
		put32(b, start - (FRAMES_AT + b->n));
		put32(b, size);
		expect_eq(buf_putc(b, 0), 0);
	}
	expect_eq(buf_append(b, ops, n), 0);
	finish_record(b, at);
}

void frames_terminator(struct frames *x)
{
	put32(&x->bytes, 0);
}

void frames_write_sections(struct frames *x)
{
	struct buf head = BUF_NULL;

	frames_terminator(x);
	elf_write_section(&x->w, x->debug ? ".debug_frame" : ".eh_frame", SHT_PROGBITS,
			  x->debug ? 0 : FRAMES_AT, x->bytes.p, x->bytes.n);
	if (x->hdr) {
		expect_eq(buf_append(&head, "\x01\x1b\x03\x3b", 4), 0);
		put32(&head, FRAMES_AT - (HDR_AT + 4));
		put32(&head, x->table.n / 8);
		expect_eq(buf_append(&head, x->table.p, x->table.n), 0);
		elf_write_section(&x->w, ".eh_frame_hdr", SHT_PROGBITS, HDR_AT, head.p, head.n);
	}
	buf_free(&head);
}

static int keep(void *context, const struct elf_row *row)
{
	struct frames *x = context;

	expect(x->n < 64);
	expect(x->n == 0 || row->address > x->rows[x->n - 1].address);
	expect(x->n == 0 || row->rule != x->rows[x->n - 1].rule ||
	       row->aux != x->rows[x->n - 1].aux);
	x->rows[x->n++] = *row;
	return 0;
}

int frames_read_fd(struct frames *x, int fd)
{
	struct elf_file f = ELF_FILE_NULL;
	int r = elf_file_open(&f, fd, NULL);

	x->n = 0;
	if (r == 0)
		r = elf_rows_read(&f, NULL, keep, x, &x->stats, NULL);
	elf_file_close(&f);
	return r;
}

void frames_read(struct frames *x)
{
	_cleanup_(closep) int fd = -1;

	frames_write_sections(x);
	fd = elf_write_memfd(&x->w);
	expect_eq(frames_read_fd(x, fd), 0);
}

void frames_row_is(const struct frames *x, size_t i, uint64_t address, uint64_t rule)
{
	expect(i < x->n);
	expect_eq(x->rows[i].address, address);
	expect_eq(x->rows[i].rule, rule);
}

uint64_t frames_rule(uint32_t base, int32_t offset, int32_t fp)
{
	return unwind_rule(base, UNWIND_CFA_REG, UNWIND_RA_CFA, fp, offset);
}
