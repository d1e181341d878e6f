/* SPDX-License-Identifier: Apache-2.0 */
/* The maker keeps one page of rows and writes it out when the rows have left it, so its memory is
 * that of the largest possible page, of which only what a file fills is ever touched.
 *
 * A page's cost is 2 bytes a row and 4 a block of at most UNWIND_BLOCK_ROWS. A gap above 255 is
 * bridged by rows that repeat the rule, or ends the block, whichever is cheaper: a block that is
 * left early has wasted the rest of its room, so the fuller it is the less a new one costs. Rules
 * are numbered when the page is finished, since what a page uses is known only then. */
#include "unwind/pages.h"

#include "base/check.h"
#include "base/hash.h"
#include "bpfwire/unwind-tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES (1u << UNWIND_PAGE_BITS)
#define PAGE_MASK  (PAGE_BYTES - 1)
#define GAP_MAX    255u
#define TEXT_MAX   (UINT64_C(8) << 30)

/* A block ends because it is full, or before a gap above 255. */
#define BLOCKS_MAX (PAGE_BYTES / UNWIND_BLOCK_ROWS + PAGE_BYTES / GAP_MAX + 1)
#define BYTES_MAX                                                                                  \
	(sizeof(struct unwind_page) + BLOCKS_MAX * sizeof(struct unwind_block) +                   \
	 UNWIND_PAGE_RULES * sizeof(uint16_t) + 2 * PAGE_BYTES + 8)

#define SLOTS     1024u /* of the index of a page's rules; a power of two */
#define SLOT_FREE UINT16_MAX

struct page_rule {
	uint64_t rule, aux;
	uint32_t n_rows;
};

struct pages_maker {
	pages_number_fn number;
	pages_page_fn page;
	void *context;
	struct pages_stats stats;
	int failed; /* what ended the making */
	bool begun;
	uint64_t n_given;
	uint64_t base;      /* address of page 0 */
	uint64_t address;   /* of the last row */
	uint64_t rule, aux; /* from there on */
	uint32_t current;   /* the page that is being filled */

	/* From here on nothing is read that was not written; most files never touch most of it. */
	uint32_t n_rows, n_rules;
	struct page_rule rules[UNWIND_PAGE_RULES];
	uint16_t slots[SLOTS]; /* positions in rules */
	uint16_t low[PAGE_BYTES];
	uint8_t local[PAGE_BYTES]; /* position in rules, by row */

	/* The page as it is written out. */
	uint32_t n_blocks, n_written;
	struct unwind_block blocks[BLOCKS_MAX];
	uint8_t gaps[UNWIND_BLOCK_ROWS]; /* of the block that is being filled */
	uint8_t numbers[UNWIND_BLOCK_ROWS];
	uint32_t n_block;
	uint8_t rows[2 * PAGE_BYTES];
	uint16_t global[UNWIND_PAGE_RULES];
	uint8_t bytes[BYTES_MAX];
};

static void clear_page(struct pages_maker *m)
{
	m->n_rows = m->n_rules = 0;
	memset(m->slots, 0xff, sizeof(m->slots));
}

struct pages_maker *pages_new(pages_number_fn number, pages_page_fn page, void *context)
{
	struct pages_maker *m = malloc(sizeof(*m));

	if (!m)
		return NULL;
	memset(m, 0, offsetof(struct pages_maker, n_rows));
	m->number = number;
	m->page = page;
	m->context = context;
	clear_page(m);
	return m;
}

void pages_free(struct pages_maker *m)
{
	free(m);
}

/* The slot that holds a rule, or the free one where it belongs. */
static uint16_t *slot_of(struct pages_maker *m, uint64_t rule, uint64_t aux)
{
	uint32_t i = (uint32_t)hash_mix(rule, aux) & (SLOTS - 1);

	for (;; i = (i + 1) & (SLOTS - 1)) {
		const struct page_rule *r;

		if (m->slots[i] == SLOT_FREE)
			return &m->slots[i];
		r = &m->rules[m->slots[i]];
		if (r->rule == rule && r->aux == aux)
			return &m->slots[i];
	}
}

/* The position of a rule among the page's. When they run out it is that of rule 0;
 * if rule 0 has none yet the last one's, which from there on means rule 0. */
static uint8_t local_number(struct pages_maker *m, uint64_t rule, uint64_t aux)
{
	uint16_t *slot = slot_of(m, rule, aux);
	struct page_rule *last = &m->rules[UNWIND_PAGE_RULES - 1];

	if (*slot == SLOT_FREE && m->n_rules == UNWIND_PAGE_RULES) {
		m->stats.lost++;
		slot = slot_of(m, 0, 0);
		if (*slot == SLOT_FREE) {
			m->stats.lost += last->n_rows;
			/* Its slot stays: who has this rule is as lost as those before. */
			*slot = UNWIND_PAGE_RULES - 1;
			last->rule = last->aux = 0;
		}
	} else if (*slot == SLOT_FREE) {
		*slot = (uint16_t)m->n_rules;
		m->rules[m->n_rules++] = (struct page_rule){.rule = rule, .aux = aux};
	}
	m->rules[*slot].n_rows++;
	return (uint8_t)*slot;
}

static void push_row(struct pages_maker *m, uint32_t low, uint64_t rule, uint64_t aux)
{
	check(m->n_rows < PAGE_BYTES);
	m->low[m->n_rows] = (uint16_t)low;
	m->local[m->n_rows++] = local_number(m, rule, aux);
}

static void end_block(struct pages_maker *m)
{
	uint8_t *to = m->rows + 2 * m->n_written;

	check(m->n_written + m->n_block <= PAGE_BYTES);
	memcpy(to, m->gaps, m->n_block);
	memcpy(to + m->n_block, m->numbers, m->n_block);
	m->n_written += m->n_block;
	m->n_block = 0;
}

static void begin_block(struct pages_maker *m, uint16_t start)
{
	end_block(m);
	check(m->n_blocks < BLOCKS_MAX && m->n_written < PAGE_BYTES);
	m->blocks[m->n_blocks++] =
		(struct unwind_block){.start = start, .row = (uint16_t)m->n_written};
}

static void put_row(struct pages_maker *m, uint32_t gap, uint8_t local)
{
	check(gap <= GAP_MAX && m->n_block < UNWIND_BLOCK_ROWS);
	m->gaps[m->n_block] = (uint8_t)gap;
	m->numbers[m->n_block++] = local;
}

/* Whether a row so far behind the one before begins a block. In units of a sixteenth of a byte: a
 * new block costs 64, less what the old one has used of its room (1 a row); a row that repeats a
 * rule costs 32 and 1 of room. More than one never pays. */
static bool begins_block(const struct pages_maker *m, uint32_t gap)
{
	if (m->n_block == UNWIND_BLOCK_ROWS || gap > 2 * GAP_MAX)
		return true;
	if (gap <= GAP_MAX)
		return false;
	return m->n_block + 2 > UNWIND_BLOCK_ROWS || 64 - m->n_block < 33;
}

static void write_rows(struct pages_maker *m)
{
	uint32_t last = 0;

	m->n_blocks = m->n_written = m->n_block = 0;
	for (uint32_t i = 0; i < m->n_rows; i++) {
		uint32_t gap = m->low[i] - last;

		last = m->low[i];
		if (i == 0 || begins_block(m, gap)) {
			begin_block(m, m->low[i]);
			gap = 0;
		} else if (gap > GAP_MAX) {
			put_row(m, GAP_MAX, m->local[i - 1]);
			m->stats.filled++;
			gap -= GAP_MAX;
		}
		put_row(m, gap, m->local[i]);
	}
	end_block(m);
}

/* Asks for the numbers of the page's rules. */
static int number_rules(struct pages_maker *m)
{
	for (uint32_t i = 0; i < m->n_rules; i++) {
		const struct page_rule *r = &m->rules[i];
		int32_t number = r->rule ? m->number(m->context, r->rule, r->aux) : 0;

		if (number == -ENOSPC) {
			m->stats.lost += r->n_rows;
			number = 0;
		}
		if (number < 0)
			return number;
		check((uint32_t)number <= UNWIND_RULES_MAX);
		m->global[i] = (uint16_t)number;
	}
	return 0;
}

static size_t put(struct pages_maker *m, size_t at, const void *data, size_t n)
{
	check(n <= sizeof(m->bytes) - at);
	memcpy(m->bytes + at, data, n);
	return at + n;
}

/* The head, and all behind it; how many bytes. */
static size_t assemble(struct pages_maker *m)
{
	struct unwind_page head = {(uint16_t)m->n_blocks, (uint16_t)m->n_rules, m->n_written};
	static const uint8_t zeros[8];
	size_t n = put(m, 0, &head, sizeof(head));

	n = put(m, n, m->blocks, m->n_blocks * sizeof(*m->blocks));
	n = put(m, n, m->global, m->n_rules * sizeof(*m->global));
	n = put(m, n, m->rows, 2 * (size_t)m->n_written);
	return put(m, n, zeros, -n & 7);
}

/* A page without a rule is none. */
static bool is_empty(const struct pages_maker *m)
{
	return m->n_rows == 0 || (m->n_rules == 1 && m->rules[0].rule == 0);
}

static int give_page(struct pages_maker *m)
{
	size_t n;
	int r;

	if (is_empty(m)) {
		clear_page(m);
		return 0;
	}
	r = number_rules(m);
	if (r != 0)
		return r;
	write_rows(m);
	n = assemble(m);
	m->stats.pages++;
	m->stats.bytes += n;
	r = m->page(m->context, m->current, m->bytes, n, m->global, m->n_rules);
	clear_page(m);
	return r;
}

/* Leaves pages behind until `page` is the current one, of which the rule in force is the first row
 * unless one comes at its beginning. */
static int go_to_page(struct pages_maker *m, uint32_t page, bool carried)
{
	int r = 0;

	check(page > m->current);
	while (r == 0 && m->current < page) {
		r = give_page(m);
		m->current++;
		if (m->rule == 0)
			m->current = page; /* nothing to say of those between */
		if (r == 0 && (m->current < page || carried))
			push_row(m, 0, m->rule, m->aux);
	}
	return r;
}

static int add_row(struct pages_maker *m, uint64_t address, uint64_t rule, uint64_t aux)
{
	uint32_t low = (uint32_t)address & PAGE_MASK;
	uint64_t page = (address - m->base) >> UNWIND_PAGE_BITS;
	int r = 0;

	if (page > m->current)
		r = go_to_page(m, (uint32_t)page, low != 0);
	if (r != 0)
		return r;
	push_row(m, low, rule, aux);
	m->stats.rows++;
	m->rule = rule;
	m->aux = aux;
	return 0;
}

int pages_add(void *maker, const struct elf_row *row)
{
	struct pages_maker *m = maker;
	uint64_t aux = row->rule ? row->aux : 0;

	if (m->failed)
		return m->failed;
	if (m->n_given++ > 0 && row->address <= m->address)
		return m->failed = -EINVAL;
	m->address = row->address;
	if (row->rule == m->rule && aux == m->aux)
		return 0; /* also before the first with a rule */
	if (!m->begun) {
		m->begun = true;
		m->base = row->address & ~(uint64_t)PAGE_MASK;
		if (row->address & PAGE_MASK)
			push_row(m, 0, 0, 0);
	}
	if (row->address - m->base >= TEXT_MAX)
		m->failed = -E2BIG;
	else
		m->failed = add_row(m, row->address, row->rule, aux);
	return m->failed;
}

int pages_finish(struct pages_maker *m, uint64_t *ret_base)
{
	if (m->failed == 0)
		m->failed = give_page(m);
	if (m->failed != 0)
		return m->failed;
	*ret_base = m->base;
	m->failed = -EINVAL; /* for rows that come after the end */
	return 0;
}

void pages_get_stats(const struct pages_maker *m, struct pages_stats *ret)
{
	*ret = m->stats;
}

/* Where a page's parts are; false if the bytes are not a page. */
struct layout {
	struct unwind_page head;
	const uint8_t *blocks, *rules, *rows;
};

static bool lay_out(const uint8_t *bytes, size_t n, struct layout *ret)
{
	struct unwind_page *head = &ret->head;
	size_t fixed;

	if (n < sizeof(*head))
		return false;
	memcpy(head, bytes, sizeof(*head));
	fixed = sizeof(*head) + head->n_blocks * sizeof(struct unwind_block) +
		head->n_rules * sizeof(uint16_t);
	if (fixed > n || head->n_rows > (n - fixed) / 2)
		return false;
	ret->blocks = bytes + sizeof(*head);
	ret->rules = ret->blocks + head->n_blocks * sizeof(struct unwind_block);
	ret->rows = bytes + fixed;
	return true;
}

static struct unwind_block block_at(const struct layout *l, uint32_t i)
{
	struct unwind_block block;

	check(i < l->head.n_blocks);
	memcpy(&block, l->blocks + i * sizeof(block), sizeof(block));
	return block;
}

void pages_renumber(void *bytes, size_t n, const uint16_t *numbers)
{
	struct layout l;
	uint16_t *rules;

	check(lay_out(bytes, n, &l));
	rules = (uint16_t *)(void *)((uint8_t *)bytes + (l.rules - (const uint8_t *)bytes));
	for (uint32_t i = 0; i < l.head.n_rules; i++)
		rules[i] = numbers[rules[i]];
}

uint64_t pages_rows_of(const void *bytes, size_t n, uint16_t number)
{
	uint64_t count = 0;
	struct layout l;

	check(lay_out(bytes, n, &l));
	for (uint32_t b = 0; b < l.head.n_blocks; b++) {
		uint32_t row = block_at(&l, b).row;
		uint32_t end = b + 1 < l.head.n_blocks ? block_at(&l, b + 1).row : l.head.n_rows;

		for (uint32_t i = row; i < end; i++) {
			uint16_t found;

			memcpy(&found, l.rules + l.rows[end + i] * sizeof(found), sizeof(found));
			count += found == number;
		}
	}
	return count;
}
