/* SPDX-License-Identifier: Apache-2.0 */
/* Call-frame information of one function: where the canonical frame address is. A reader of the
 * little that compilers write for an ordinary function; what it does not know ends it. */
#include "python/elf-frames.h"

#include <stdlib.h>
#include <string.h>

#define ENTRY_MAX  4096u
#define STATES     8u
#define SEARCH_MAX (16u << 20) /* bytes of .eh_frame that are searched */
#define COMMONS    8u          /* that are kept: few are used, again and again */
#define COMMON_MAX 4096u       /* that are read in a search */

struct cursor {
	const unsigned char *at, *limit;
	bool bad;
};

static uint64_t take_bytes(struct cursor *c, size_t n)
{
	uint64_t ret = 0;

	if ((size_t)(c->limit - c->at) < n) {
		c->bad = true;
		c->at = c->limit;
		return 0;
	}
	memcpy(&ret, c->at, n);
	c->at += n;
	return ret;
}

static void skip_bytes(struct cursor *c, uint64_t n)
{
	c->bad |= (uint64_t)(c->limit - c->at) < n;
	c->at = c->bad ? c->limit : c->at + n;
}

static uint64_t take_leb(struct cursor *c, bool is_signed)
{
	uint64_t ret = 0, byte;
	unsigned shift = 0;

	do {
		byte = take_bytes(c, 1);
		if (shift < 64)
			ret |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && !c->bad && shift < 80);
	if (is_signed && shift < 64 && byte & 0x40)
		ret |= UINT64_MAX << shift;
	return ret;
}

/* A pointer as .eh_frame encodes it, standing at `address`. */
static uint64_t take_pointer(struct cursor *c, unsigned encoding, uint64_t address)
{
	uint64_t ret;

	switch (encoding & 0x0f) {
	case 0x00:
	case 0x04:
	case 0x0c:
		ret = take_bytes(c, 8);
		break;
	case 0x03:
		ret = take_bytes(c, 4);
		break;
	case 0x0b:
		ret = (uint64_t)(int32_t)take_bytes(c, 4);
		break;
	default:
		c->bad = true;
		return 0;
	}
	return (encoding & 0x70) == 0x10 ? ret + address : ret;
}

/* An entry: its bytes behind the length, and where they stand. */
struct entry {
	unsigned char bytes[ENTRY_MAX];
	size_t n;
	uint64_t address;
};

static bool read_entry(const struct elf_file *i, uint64_t address, struct entry *ret)
{
	uint32_t n;

	if (elf_read(i, address, &n, sizeof(n)) != sizeof(n) || n < 8 || n > ENTRY_MAX)
		return false;
	ret->address = address + 4;
	ret->n = n;
	return elf_read(i, address + 4, ret->bytes, n) == n;
}

/* The address of the entry for the function that has `address`: the table of .eh_frame_hdr, which
 * stands at `base`. */
static uint64_t look_up_entry(const struct elf_file *i, uint64_t base, uint64_t address)
{
	uint32_t low = 0, high, head[3];
	int32_t pair[2];

	/* Version 1, pointers relative and of four bytes, the table relative to the header. */
	if (elf_read(i, base, head, sizeof(head)) != sizeof(head) || head[0] != 0x3b031b01)
		return 0;
	high = head[2];
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (elf_read(i, base + 12 + middle * 8ull, pair, sizeof(pair)) != sizeof(pair))
			return 0;
		if (base + (uint64_t)(int64_t)pair[0] <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 ||
	    elf_read(i, base + 12 + (low - 1) * 8ull, pair, sizeof(pair)) != sizeof(pair))
		return 0;
	return base + (uint64_t)(int64_t)pair[1];
}

/* What a CIE says of its entries. */
struct common {
	uint64_t code_factor;
	unsigned encoding;
	bool augmented;
	struct elf_cfa cfa; /* at the function's beginning */
};

/* How the rule for the canonical frame address changes. */
struct rules {
	struct elf_cfa now, kept[STATES];
	uint32_t n_kept;
	uint64_t factor;
};

/* One instruction; true: it moves on by *ret_advance. */
static bool run_one(struct cursor *c, struct rules *r, uint64_t *ret_advance)
{
	unsigned op = (unsigned)take_bytes(c, 1);

	*ret_advance = 0;
	if (op >> 6 == 1) {
		*ret_advance = (op & 0x3f) * r->factor;
		return true;
	}
	if (op >> 6 == 2) {
		take_leb(c, false);
		return false;
	}
	if (op >> 6 == 3)
		return false;
	switch (op) {
	case 0x02:
	case 0x03:
	case 0x04:
		*ret_advance = take_bytes(c, 1u << (op - 2)) * r->factor;
		return true;
	case 0x05: /* offset_extended, register, val_offset */
	case 0x09:
	case 0x14:
		take_leb(c, false);
		take_leb(c, false);
		return false;
	case 0x06: /* restore_extended, undefined, same_value, GNU_args_size */
	case 0x07:
	case 0x08:
	case 0x2e:
		take_leb(c, false);
		return false;
	case 0x0a:
		if (r->n_kept < STATES)
			r->kept[r->n_kept] = r->now;
		r->n_kept++;
		return false;
	case 0x0b:
		if (r->n_kept == 0 || r->n_kept > STATES)
			c->bad = true;
		else
			r->now = r->kept[--r->n_kept];
		return false;
	case 0x0c:
		r->now.reg = (uint32_t)take_leb(c, false);
		r->now.offset = (uint32_t)take_leb(c, false);
		return false;
	case 0x0d:
		r->now.reg = (uint32_t)take_leb(c, false);
		return false;
	case 0x0e:
		r->now.offset = (uint32_t)take_leb(c, false);
		return false;
	case 0x10: /* expression, val_expression */
	case 0x16:
		take_leb(c, false);
		skip_bytes(c, take_leb(c, false));
		return false;
	case 0x00: /* nop, and arm64's state of return addresses */
	case 0x2d:
		return false;
	default:
		c->bad = true;
		return false;
	}
}

static bool read_common(const struct elf_file *i, uint64_t address, struct common *ret)
{
	struct entry e;
	struct cursor c;
	struct rules r = {0};
	uint64_t skip;
	const char *text;

	if (!read_entry(i, address, &e))
		return false;
	c = (struct cursor){e.bytes, e.bytes + e.n, false};
	if (take_bytes(&c, 4) != 0 || take_bytes(&c, 1) > 4)
		return false;
	text = (const char *)c.at;
	while (take_bytes(&c, 1) != 0)
		if (c.bad)
			return false;
	if (text[0] != '\0' && strncmp(text, "zR", 2) != 0)
		return false;
	*ret = (struct common){.augmented = text[0] == 'z'};
	ret->code_factor = take_leb(&c, false);
	take_leb(&c, true);
	take_leb(&c, false);
	if (ret->augmented) {
		skip = take_leb(&c, false);
		ret->encoding = (unsigned)take_bytes(&c, 1);
		skip_bytes(&c, skip > 0 ? skip - 1 : 0);
	}
	r.factor = ret->code_factor;
	while (c.at < c.limit && !c.bad)
		run_one(&c, &r, &skip);
	ret->cfa = r.now;
	return !c.bad;
}

struct search {
	uint64_t address;
	struct {
		uint64_t at; /* 0: none */
		bool good;
		struct common common;
	} kept[COMMONS];
	uint32_t n_read;
};

/* What the entries of this one have in common, NULL if that cannot be read. */
static const struct common *find_common(const struct elf_file *i, uint64_t at, struct search *s)
{
	uint32_t k = 0;

	while (k < COMMONS && s->kept[k].at != at)
		k++;
	if (k == COMMONS) {
		k = s->n_read++ % COMMONS;
		s->kept[k].at = at;
		s->kept[k].good = read_common(i, at, &s->kept[k].common);
	}
	return s->kept[k].good ? &s->kept[k].common : NULL;
}

/* Whether the entry with these bytes, which stand at `at` in memory, is for the function that has
 * the address. */
static bool is_entry_of(const struct elf_file *i, struct cursor c, uint64_t at, struct search *s)
{
	uint64_t id = take_bytes(&c, 4), begin;
	const struct common *common;

	if (id == 0 || c.bad)
		return false;
	common = find_common(i, at + 4 - id, s);
	if (!common)
		return false;
	begin = take_pointer(&c, common->encoding, at + 8);
	return s->address - begin < take_pointer(&c, common->encoding & 0x0f, 0) && !c.bad;
}

/* Likewise, one entry after the other: a static program has no .eh_frame_hdr. */
static uint64_t search_entry(const struct elf_file *i, uint64_t address)
{
	const Elf64_Shdr *section = elf_section(i, ".eh_frame");
	size_t n = section && section->sh_size <= SEARCH_MAX ? section->sh_size : 0, at, length;
	unsigned char *bytes = n > 0 ? malloc(n) : NULL;
	struct search s = {.address = address};
	uint64_t ret = 0;

	if (!bytes || !elf_read_all(i, section->sh_addr, bytes, n))
		n = 0;
	for (at = 0; ret == 0 && at + 8 <= n && s.n_read < COMMON_MAX; at += 4 + length) {
		struct cursor c = {bytes + at, bytes + n, false};

		length = take_bytes(&c, 4);
		if (length < 4 || length > n - at - 4)
			break;
		c.limit = c.at + length;
		if (is_entry_of(i, c, section->sh_addr + at, &s))
			ret = section->sh_addr + at;
	}
	free(bytes);
	return ret;
}

static uint64_t table_of(const struct elf_file *i)
{
	for (uint32_t k = 0; k < i->n_segments; k++)
		if (i->segments[k].p_type == PT_GNU_EH_FRAME)
			return i->segments[k].p_vaddr;
	return 0;
}

bool elf_has_table(const struct elf_file *i)
{
	return table_of(i) != 0;
}

static uint64_t find_entry(const struct elf_file *i, uint64_t address)
{
	uint64_t table = table_of(i);

	return table != 0 ? look_up_entry(i, table, address) : search_entry(i, address);
}

/* Opens the entry for the function that has `address`: *c stands at its instructions then. */
static bool open_entry(const struct elf_file *i, uint64_t address, struct entry *e,
		       struct cursor *c, struct common *common, struct elf_code *ret)
{
	uint64_t at = find_entry(i, address), back;

	if (at == 0 || !read_entry(i, at, e))
		return false;
	*c = (struct cursor){e->bytes, e->bytes + e->n, false};
	back = take_bytes(c, 4);
	if (back == 0 || !read_common(i, e->address - back, common))
		return false;
	ret->from = take_pointer(c, common->encoding, e->address + (uint64_t)(c->at - e->bytes));
	ret->to = ret->from + take_pointer(c, common->encoding & 0x0f, 0);
	if (common->augmented)
		skip_bytes(c, take_leb(c, false));
	return !c->bad && address >= ret->from && address < ret->to;
}

bool elf_function(const struct elf_file *i, uint64_t address, struct elf_code *ret)
{
	struct common common;
	struct cursor c;
	struct entry e;

	return open_entry(i, address, &e, &c, &common, ret);
}

size_t elf_cfas(const struct elf_file *i, uint64_t address, struct elf_cfa *ret, size_t max)
{
	struct elf_code code;
	struct common common;
	struct cursor c;
	struct entry e;
	struct rules r = {0};
	uint64_t at, advance;
	size_t n = 0;

	if (!open_entry(i, address, &e, &c, &common, &code))
		return 0;
	r.now = common.cfa;
	r.factor = common.code_factor;
	at = code.from;
	while (c.at < c.limit && !c.bad && n + 1 < max) {
		struct elf_cfa now = r.now;

		if (!run_one(&c, &r, &advance) || advance == 0)
			continue;
		now.from = at;
		now.to = at += advance;
		ret[n++] = now;
	}
	if (c.bad || at >= code.to || n >= max)
		return 0;
	r.now.from = at;
	r.now.to = code.to;
	ret[n++] = r.now;
	return n;
}
