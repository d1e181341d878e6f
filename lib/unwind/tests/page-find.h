/* SPDX-License-Identifier: Apache-2.0 */
/* A second reader of pages (bpf/include/bpfwire/unwind-tables.h), as the walker reads them, but
 * with bounds: tests compare what a maker wrote with what it was given. */
#pragma once

#include "bpfwire/unwind-tables.h"

#include <stddef.h>
#include <string.h>

static inline struct unwind_block page_block(const uint8_t *blocks, uint32_t i)
{
	struct unwind_block block;

	memcpy(&block, blocks + i * sizeof(block), sizeof(block));
	return block;
}

/* The number of the rule that a page's bytes have for an address; the same as the walker finds. 0
 * where there is none or the bytes are not a page. */
static inline uint16_t pages_find(const void *bytes, size_t n, uint16_t low)
{
	const uint8_t *blocks = (const uint8_t *)bytes + sizeof(struct unwind_page), *rules, *rows;
	struct unwind_page head;
	struct unwind_block block;
	uint32_t at = 0, end, address, row, local;
	uint16_t number;
	size_t fixed;

	if (n < sizeof(head))
		return 0;
	memcpy(&head, bytes, sizeof(head));
	rules = blocks + head.n_blocks * sizeof(block);
	rows = rules + head.n_rules * sizeof(number);
	fixed = (size_t)(rows - (const uint8_t *)bytes);
	if (head.n_blocks == 0 || fixed > n || head.n_rows > (n - fixed) / 2)
		return 0;
	while (at + 1 < head.n_blocks && page_block(blocks, at + 1).start <= low)
		at++;
	block = page_block(blocks, at);
	end = at + 1 < head.n_blocks ? page_block(blocks, at + 1).row : head.n_rows;
	if (block.start > low || block.row >= end || end > head.n_rows ||
	    end - block.row > UNWIND_BLOCK_ROWS)
		return 0;
	/* A block's gaps, and behind them the positions of its rules. */
	rows += 2 * (size_t)block.row;
	address = block.start;
	for (row = 0; block.row + row + 1 < end && address + rows[row + 1] <= low; row++)
		address += rows[row + 1];
	local = rows[end - block.row + row];
	if (local >= head.n_rules)
		return 0;
	memcpy(&number, rules + local * sizeof(number), sizeof(number));
	return number;
}
