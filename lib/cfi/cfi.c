/* SPDX-License-Identifier: Apache-2.0 */
/* The records of call-frame information. Contract in cfi.h.
 *
 * CIEs are few and shared, so that the last ones used stay parsed, with a copy of their bytes:
 * their expressions outlive the window. One that does not parse stays too, as invalid, or each of
 * its functions would parse it again. */
#include "cfi/cfi.h"

#include "base/check.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>

/* Pointer encodings: DW_EH_PE_* of LSB Core 5.0 §10.5.1. */
#define PE_ABSPTR  0x00
#define PE_ULEB128 0x01
#define PE_UDATA2  0x02
#define PE_UDATA4  0x03
#define PE_UDATA8  0x04
#define PE_SLEB128 0x09
#define PE_SDATA2  0x0a
#define PE_SDATA4  0x0b
#define PE_SDATA8  0x0c
#define PE_FORMAT  0x0f
#define PE_PCREL   0x10
#define PE_BASE    0x70
#define PE_OMIT    0xff

/* An encoded value, without its base. */
static uint64_t read_encoded(struct cfi_bytes *b, uint8_t encoding)
{
	switch (encoding & PE_FORMAT) {
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		return cfi_number(b, 8);
	case PE_ULEB128:
		return cfi_uleb(b);
	case PE_SLEB128:
		return (uint64_t)cfi_sleb(b);
	case PE_UDATA2:
		return cfi_number(b, 2);
	case PE_UDATA4:
		return cfi_number(b, 4);
	case PE_SDATA2:
		return (uint64_t)cfi_signed(b, 2);
	case PE_SDATA4:
		return (uint64_t)cfi_signed(b, 4);
	default:
		b->broken = true;
		return 0;
	}
}

/* Where a record's fields lie. */
struct record {
	uint64_t offset;
	uint64_t content; /* behind the length */
	uint64_t next;
	struct cfi_bytes bytes; /* the content */
};

/* 1, 0 for a terminator, -EBADMSG: longer than the section. */
static int read_record(struct cfi_section *s, uint64_t offset, struct record *ret)
{
	const uint8_t *p;
	uint32_t length;
	uint64_t n, content = offset + 4;
	int r = cfi_section_bytes(s, offset, 4, &p);

	if (r < 0)
		return r;
	memcpy(&length, p, 4);
	n = length;
	if (length == UINT32_MAX) {
		r = cfi_section_bytes(s, content, 8, &p);
		if (r < 0)
			return r;
		memcpy(&n, p, 8);
		content += 8;
	}
	*ret = (struct record){.offset = offset, .content = content, .next = s->size};
	if (n > s->size - content)
		return -EBADMSG;
	ret->next = content + n;
	if (n == 0)
		return 0;
	r = cfi_section_bytes(s, content, n, &p);
	if (r < 0)
		return r == -ENODATA ? -EBADMSG : r;
	ret->bytes = (struct cfi_bytes){p, p + n, false};
	return 1;
}

/* The size of the field that tells a CIE from an FDE, and its value in a CIE. */
static size_t id_bytes(const struct cfi_section *s, const struct record *record)
{
	return s->debug && record->content - record->offset == 12 ? 8 : 4;
}

static uint64_t cie_id(const struct cfi_section *s, size_t bytes)
{
	if (!s->debug)
		return 0;
	return bytes == 8 ? UINT64_MAX : UINT32_MAX;
}

static void read_augmentation(struct cfi_cie *cie, const char *letters, struct cfi_bytes *b)
{
	uint64_t n = cfi_uleb(b);
	const uint8_t *p = cfi_take(b, n);
	struct cfi_bytes data = {p, p ? p + n : p, false};
	uint8_t encoding;

	cie->has_size = true;
	/* A letter that is not known ends what can be told of those behind it. */
	for (; *letters && strchr("LPRSBG", *letters); letters++) {
		switch (*letters) {
		case 'L':
			cfi_u8(&data);
			break;
		case 'P':
			encoding = cfi_u8(&data);
			read_encoded(&data, encoding);
			break;
		case 'R':
			cie->encoding = cfi_u8(&data);
			break;
		case 'S':
			cie->signal = true;
			break;
		default:
			break;
		}
	}
	b->broken |= data.broken;
}

/* Runs the initial instructions. */
static int run_initial(struct cfi_cie *cie, struct cfi_bytes program)
{
	_cleanup_(freep) struct cfi_run *run = malloc(sizeof(*run));
	const struct cfi_fde fde = {.cie = cie, .end = 1, .program = program};
	int r;

	if (!run)
		return -ENOMEM;
	memset(run->watch, 0, sizeof(run->watch));
	cfi_run_begin(run, &fde);
	r = cfi_run_next(run);
	if (r < 0)
		return r;
	check(run->row.n <= CFI_REGISTERS);
	cie->initial.cfa = run->row.cfa;
	cie->initial.cfa_offset = run->row.cfa_offset;
	cie->initial.n = run->row.n;
	memcpy(cie->initial.rules, run->row.rules, run->row.n * sizeof(run->row.rules[0]));
	return 0;
}

/* `b` stands behind the id. */
static int parse_cie(struct cfi_cie *cie, struct cfi_bytes b)
{
	uint8_t version = cfi_u8(&b);
	const char *letters = (const char *)b.p;
	const uint8_t *end = memchr(b.p, 0, (size_t)(b.end - b.p));

	if (!end || (version != 1 && version != 3 && version != 4))
		return -EBADMSG;
	b.p = end + 1;
	if (version == 4 && (cfi_u8(&b) != 8 || cfi_u8(&b) != 0))
		return -EBADMSG;
	/* GCC 2's exception table. */
	if (strncmp(letters, "eh", 2) == 0) {
		cfi_number(&b, 8);
		letters += 2;
	}
	cie->code_align = cfi_uleb(&b);
	cie->data_align = cfi_sleb(&b);
	cie->ra = version == 1 ? cfi_u8(&b) : (uint32_t)cfi_uleb(&b);
	if (*letters == 'z')
		read_augmentation(cie, letters + 1, &b);
	else if (*letters)
		return -EBADMSG;
	if (b.broken || cie->ra >= CFI_REGISTERS)
		return -EBADMSG;
	return run_initial(cie, b);
}

/* Takes the place of another in the cache. */
static int load_cie(struct cfi_section *s, uint64_t offset, struct cfi_cie *cie)
{
	struct record record;
	struct cfi_bytes b;
	size_t n, id_n;
	int r = read_record(s, offset, &record);

	cie->valid = false;
	cie->offset = offset;
	if (r <= 0)
		return r == 0 || r == -ENODATA ? -EBADMSG : r;
	n = (size_t)(record.bytes.end - record.bytes.p);
	if (n > cie->capacity) {
		free(cie->bytes);
		cie->bytes = malloc(n);
		cie->capacity = cie->bytes ? n : 0;
		if (!cie->bytes)
			return -ENOMEM;
	}
	check(n <= cie->capacity);
	memcpy(cie->bytes, record.bytes.p, n);
	b = (struct cfi_bytes){cie->bytes, cie->bytes + n, false};
	id_n = id_bytes(s, &record);
	if (cfi_number(&b, id_n) != cie_id(s, id_n) || b.broken)
		return -EBADMSG;
	cie->encoding = PE_ABSPTR;
	cie->has_size = cie->signal = false;
	cie->initial.cfa = (struct cfi_rule){0};
	cie->initial.cfa_offset = 0;
	cie->initial.n = 0;
	r = parse_cie(cie, b);
	cie->valid = r == 0;
	return r;
}

int cfi_section_cie(struct cfi_section *s, uint64_t offset, const struct cfi_cie **ret)
{
	struct cfi_cie *cie = &s->cies[(offset ^ offset >> 7) / 8 % CFI_CIES];
	int r = 0;

	/* What no record has been read into yet has no bytes. */
	if (!cie->bytes || cie->offset != offset)
		r = load_cie(s, offset, cie);
	else if (!cie->valid)
		r = -EBADMSG;
	*ret = cie;
	return r;
}

/* The function's range, and its instructions; `at` is where `b` stands in the section. */
static int parse_fde(struct cfi_section *s, struct cfi_fde *fde, struct cfi_bytes b, uint64_t at)
{
	uint8_t encoding = fde->cie->encoding;

	if (encoding == PE_OMIT || ((encoding & PE_BASE) != 0 && (encoding & PE_BASE) != PE_PCREL))
		return -EBADMSG;
	fde->start = read_encoded(&b, encoding);
	if ((encoding & PE_BASE) == PE_PCREL)
		fde->start += s->address + at;
	fde->end = fde->start + read_encoded(&b, encoding & PE_FORMAT);
	if (fde->cie->has_size)
		cfi_take(&b, cfi_uleb(&b));
	if (b.broken || fde->end < fde->start)
		return -EBADMSG;
	fde->program = b;
	return 1;
}

/* From an FDE's pointer to its CIE; false where it leads nowhere. */
static bool cie_offset(const struct cfi_section *s, uint64_t field, uint64_t id, uint64_t *ret)
{
	*ret = s->debug ? id : field - id;
	return *ret < s->size && (s->debug || id <= field);
}

int cfi_section_next(struct cfi_section *s, struct cfi_fde *fde)
{
	struct record record = {.offset = fde->next, .next = s->size};
	uint64_t id, at, cie;
	size_t id_n;
	int r = read_record(s, fde->next, &record);

	if (r < 0 && r != -EBADMSG)
		return r;
	fde->section = s;
	fde->offset = record.offset;
	fde->next = record.next;
	check(fde->next > fde->offset); /* or a pass would not end */
	if (r == 0 && s->open_end)
		return -ENODATA;
	if (r <= 0)
		return r;
	id_n = id_bytes(s, &record);
	id = cfi_number(&record.bytes, id_n);
	if (record.bytes.broken)
		return -EBADMSG;
	if (id == cie_id(s, id_n))
		return 0;
	if (!cie_offset(s, record.content, id, &cie))
		return -EBADMSG;
	r = cfi_section_cie(s, cie, &fde->cie);
	if (r < 0)
		return r;
	/* The CIE may have moved the window. */
	at = record.content + id_n;
	r = cfi_section_bytes(s, at, record.next - at, &record.bytes.p);
	if (r < 0)
		return r;
	record.bytes.end = record.bytes.p + (record.next - at);
	return parse_fde(s, fde, record.bytes, at);
}
