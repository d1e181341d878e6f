/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths of instructions. Contract in x86.h. */
#include "codescan/x86.h"

#include <string.h>

/* What follows an opcode. */
#define NONE   0x00
#define MODRM  0x01
#define IMM8   0x02
#define IMM16  0x04
#define IMMZ   0x08 /* 4 bytes, 2 with an operand-size prefix */
#define IMMV   0x10 /* like IMMZ, 8 with REX.W */
#define OFFSET 0x20 /* an address of 8 bytes */
#define GROUP3 0x40 /* an immediate where ModRM's reg is 0 or 1 */
#define BAD    0x80

#define M       MODRM
#define M8      (MODRM | IMM8)
#define MZ      (MODRM | IMMZ)
#define ROW8(x) x, x, x, x, x, x, x, x
#define ALU     M, M, M, M, IMM8, IMMZ, BAD, BAD

/* clang-format off */
static const uint8_t one_byte[256] = {
	ALU, /* 00 */
	ALU,
	ALU, /* 10 */
	ALU,
	ALU, /* 20 */
	ALU,
	ALU, /* 30 */
	ALU,
	ROW8(BAD), /* 40 */
	ROW8(BAD),
	ROW8(NONE), /* 50 */
	ROW8(NONE),
	BAD, BAD, BAD, M, BAD, BAD, BAD, BAD, /* 60 */
	IMMZ, MZ, IMM8, M8, NONE, NONE, NONE, NONE,
	ROW8(IMM8), /* 70 */
	ROW8(IMM8),
	M8, MZ, BAD, M8, M, M, M, M, /* 80 */
	ROW8(M),
	ROW8(NONE), /* 90 */
	NONE, NONE, BAD, NONE, NONE, NONE, NONE, NONE,
	OFFSET, OFFSET, OFFSET, OFFSET, NONE, NONE, NONE, NONE, /* a0 */
	IMM8, IMMZ, NONE, NONE, NONE, NONE, NONE, NONE,
	ROW8(IMM8), /* b0 */
	ROW8(IMMV),
	M8, M8, IMM16, NONE, BAD, BAD, M8, MZ, /* c0 */
	IMM16 | IMM8, NONE, IMM16, NONE, NONE, IMM8, BAD, NONE,
	M, M, M, M, BAD, BAD, BAD, NONE, /* d0 */
	ROW8(M),
	ROW8(IMM8), /* e0 */
	IMMZ, IMMZ, BAD, IMM8, NONE, NONE, NONE, NONE,
	BAD, NONE, BAD, BAD, NONE, NONE, M | GROUP3, M | GROUP3, /* f0 */
	NONE, NONE, NONE, NONE, NONE, NONE, M, M,
};

/* Behind 0f. */
static const uint8_t two_bytes[256] = {
	M, M, M, M, BAD, NONE, NONE, NONE, /* 00 */
	NONE, NONE, BAD, NONE, BAD, M, M, M8,
	ROW8(M), /* 10 */
	ROW8(M),
	M, M, M, M, BAD, BAD, BAD, BAD, /* 20 */
	ROW8(M),
	NONE, NONE, NONE, NONE, NONE, NONE, BAD, NONE, /* 30 */
	M, BAD, M, BAD, BAD, BAD, BAD, BAD,
	ROW8(M), /* 40 */
	ROW8(M),
	ROW8(M), /* 50 */
	ROW8(M),
	ROW8(M), /* 60 */
	ROW8(M),
	M8, M8, M8, M8, M, M, M, NONE, /* 70 */
	ROW8(M),
	ROW8(IMMZ), /* 80 */
	ROW8(IMMZ),
	ROW8(M), /* 90 */
	ROW8(M),
	NONE, NONE, NONE, M, M8, M, M, M, /* a0 */
	NONE, NONE, NONE, M, M8, M, M, M,
	ROW8(M), /* b0 */
	M, M, M8, M, M, M, M, M,
	M, M, M8, M, M8, M8, M8, M, /* c0 */
	ROW8(NONE),
	ROW8(M), /* d0 */
	ROW8(M),
	ROW8(M), /* e0 */
	ROW8(M),
	ROW8(M), /* f0 */
	ROW8(M),
};
/* clang-format on */

struct decoder {
	const uint8_t *p, *end;
	uint8_t rex;
	bool operand16, address32, short_of;
};

static uint8_t next(struct decoder *d)
{
	if (d->p < d->end)
		return *d->p++;
	d->short_of = true;
	return 0;
}

/* Of n bytes: 1, 2, 4 or 8. */
static int64_t number(struct decoder *d, size_t n)
{
	const uint8_t *p = d->p;
	int64_t i64;
	int32_t i32;
	int16_t i16;

	if ((size_t)(d->end - p) < n) {
		d->short_of = true;
		return 0;
	}
	d->p += n;
	/* A copy of a size that is not known would be a call. */
	switch (n) {
	case 1:
		return (int8_t)*p;
	case 2:
		memcpy(&i16, p, sizeof(i16));
		return i16;
	case 4:
		memcpy(&i32, p, sizeof(i32));
		return i32;
	default:
		memcpy(&i64, p, sizeof(i64));
		return i64;
	}
}

static uint8_t read_prefixes(struct decoder *d)
{
	for (;;) {
		uint8_t byte = next(d);

		if (!(one_byte[byte] & BAD))
			return byte;
		switch (byte) {
		case 0x66:
			d->operand16 = true;
			break;
		case 0x67:
			d->address32 = true;
			break;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x64:
		case 0x65:
		case 0xf0:
		case 0xf2:
		case 0xf3:
			break;
		default:
			if ((byte & 0xf0) != 0x40)
				return byte;
			d->rex = byte;
			return next(d);
		}
		if (d->short_of)
			return 0;
	}
}

/* The bits of a VEX or EVEX prefix that matter here: the map, and where registers above 7 stand. */
static void read_vector(struct decoder *d, uint8_t prefix, struct x86_instruction *i)
{
	uint8_t first = next(d);

	i->vector = true;
	i->map = 1;
	d->rex = first & 0x80 ? 0 : 4;
	if (prefix != 0xc5) {
		i->map = first & (prefix == 0x62 ? 7 : 31);
		d->rex = (uint8_t)(~first >> 5 & 7);
		next(d);
	}
	if (prefix == 0x62)
		next(d);
	i->op = next(d);
}

/* AMD's XOP is told from pop by its map, where that has 0 in ModRM. */
static bool is_vector_prefix(const struct decoder *d, uint8_t byte)
{
	return byte == 0xc4 || byte == 0xc5 || byte == 0x62 ||
	       (byte == 0x8f && d->p < d->end && (*d->p & 31) >= 8);
}

static uint8_t vector_form(const struct x86_instruction *i)
{
	switch (i->map) {
	case 1:
		return i->op == 0x77 ? NONE : two_bytes[i->op] & IMM8 ? M8 : M;
	case 2:
	case 5:
	case 6:
	case 9:
		return M;
	case 3:
	case 8:
		return M8;
	case 10:
		return MZ;
	default:
		return BAD;
	}
}

static uint8_t read_opcode(struct decoder *d, struct x86_instruction *i)
{
	i->op = read_prefixes(d);
	if (!(one_byte[i->op] & BAD) && i->op != 0x8f)
		return one_byte[i->op];
	if (is_vector_prefix(d, i->op)) {
		read_vector(d, i->op, i);
		return vector_form(i);
	}
	if (i->op != 0x0f)
		return one_byte[i->op];
	i->op = next(d);
	if (i->op != 0x38 && i->op != 0x3a) {
		i->map = 1;
		return two_bytes[i->op];
	}
	i->map = i->op == 0x38 ? 2 : 3;
	i->op = next(d);
	return i->map == 2 ? M : M8;
}

static void read_modrm(struct decoder *d, struct x86_instruction *i)
{
	uint8_t byte = next(d), sib;

	i->has_modrm = true;
	i->mod = byte >> 6;
	i->reg = (uint8_t)((byte >> 3 & 7) | (d->rex & 4) << 1);
	i->rm = (uint8_t)((byte & 7) | (d->rex & 1) << 3);
	i->memory = i->mod != 3;
	if (!i->memory)
		return;
	i->based = i->mod != 0 || (byte & 7) != 5;
	if ((byte & 7) == 4) {
		sib = next(d);
		i->rm = (uint8_t)((sib & 7) | (d->rex & 1) << 3);
		i->based = (sib >> 3 & 7) == 4 && !(d->rex & 2);
		if (i->mod == 0 && (sib & 7) == 5) {
			i->based = false;
			i->displacement = (int32_t)number(d, 4);
		}
	} else if (i->mod == 0 && (byte & 7) == 5) {
		i->from_pc = true;
		i->displacement = (int32_t)number(d, 4);
	}
	if (i->mod == 1)
		i->displacement = (int32_t)number(d, 1);
	if (i->mod == 2)
		i->displacement = (int32_t)number(d, 4);
}

static void read_immediates(struct decoder *d, uint8_t form, struct x86_instruction *i)
{
	bool branch = i->op == 0xe8 || i->op == 0xe9 || i->map == 1;
	size_t z = d->operand16 ? 2 : 4;

	if (form & OFFSET)
		number(d, d->address32 ? 4 : 8);
	if (form & IMM16)
		i->immediate = number(d, 2);
	if (form & IMM8)
		i->immediate = number(d, 1);
	/* Near jumps and calls ignore the operand-size prefix. */
	if (form & IMMZ)
		i->immediate = number(d, branch ? 4 : z);
	if (form & IMMV)
		i->immediate = number(d, i->wide ? 8 : z);
}

void x86_decode(const uint8_t *p, size_t n, struct x86_instruction *ret)
{
	struct decoder d = {.p = p, .end = p + (n < X86_MAX ? n : X86_MAX)};
	uint8_t form;

	*ret = (struct x86_instruction){0};
	form = read_opcode(&d, ret);
	ret->wide = d.rex & 8;
	ret->rm = (uint8_t)((ret->op & 7) | (d.rex & 1) << 3);
	if (form & MODRM)
		read_modrm(&d, ret);
	if (form & GROUP3 && (ret->reg & 7) < 2)
		form |= ret->op & 1 ? IMMZ : IMM8;
	read_immediates(&d, form, ret);
	ret->n = (uint8_t)(d.p - p);
	if (form & BAD || d.short_of)
		*ret = (struct x86_instruction){0};
}
