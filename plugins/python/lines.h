/* SPDX-License-Identifier: Apache-2.0 */
/* Which line an instruction belongs to: CPython's three ways to write a table of lines. The bytes
 * may be forged, or cut. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct line_table {
	const unsigned char *bytes;
	size_t n;
	uint32_t kind; /* PYTHON_LINES_… */
	uint32_t first_line;
	bool cut; /* the process has more bytes */
};

/* The line of the instruction at `position` (wire.h says in what units); `first_line` where it is
 * before the first instruction, and 0 where the table does not say. O(n). */
uint32_t line_at(const struct line_table *t, uint64_t position);
