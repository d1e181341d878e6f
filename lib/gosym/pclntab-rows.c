/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of values by address, and the trees of inlined calls. A table is a sequence of pairs
 * of variable-length numbers: by how much the value changes (zigzag), and for how many quanta of
 * code it then holds; a change of 0 ends it, unless it is the first (golang.org/s/go12symtab). */
#include "gosym/pclntab.h"

#include "base/check.h"

#include <errno.h>

#define PAIR_BYTES 10 /* two numbers of up to 5 bytes */

struct pclntab_rows pclntab_rows(const struct pclntab_function *f, uint32_t table)
{
	return (struct pclntab_rows){
		.end = f->end,
		.at = table,
		.row = {.end = f->entry, .value = -1},
	};
}

/* A number of at most 32 bits at the front of n bytes; how long it is, or 0. */
static size_t read_number(const unsigned char *p, size_t n, uint32_t *ret)
{
	uint32_t value = 0;

	for (size_t i = 0; i < n && i < PAIR_BYTES / 2; i++) {
		value |= (uint32_t)(p[i] & 0x7f) << (7 * i);
		if (!(p[i] & 0x80)) {
			*ret = value;
			return i + 1;
		}
	}
	return 0;
}

/* 1 and the row; 0 at the table's end. */
static int read_pair(const unsigned char *p, size_t n, uint8_t quantum, struct pclntab_rows *rows)
{
	uint32_t change, quanta = 0;
	size_t first = read_number(p, n, &change), second;

	if (first && change == 0 && rows->row.start)
		return 0;
	second = first ? read_number(p + first, n - first, &quanta) : 0;
	if (!second || !quanta)
		return -ENOEXEC;
	check(rows->row.end < rows->end);
	rows->row.start = rows->row.end;
	rows->row.value =
		(int32_t)((uint32_t)rows->row.value + (change & 1 ? ~(change >> 1) : change >> 1));
	if (__builtin_add_overflow(rows->row.start, (uint64_t)quanta * quantum, &rows->row.end) ||
	    rows->row.end > rows->end)
		rows->row.end = rows->end;
	rows->at += first + second;
	return 1;
}

int pclntab_next(struct pclntab *t, struct pclntab_rows *rows)
{
	const unsigned char *p;
	int r;

	if (!rows->at || rows->row.end >= rows->end)
		return 0;
	r = window_some(&t->rows, t->values + rows->at, PAIR_BYTES, &p);
	return r < 0 ? r : read_pair(p, (size_t)r, t->quantum, rows);
}

int pclntab_value(struct pclntab *t, const struct pclntab_function *f, uint32_t table,
		  uint64_t address, int32_t *ret)
{
	struct pclntab_rows rows = pclntab_rows(f, table);
	int r;

	while ((r = pclntab_next(t, &rows)) == 1)
		if (address < rows.row.end) {
			*ret = rows.row.value;
			return address >= rows.row.start ? 0 : -ENOENT;
		}
	return r < 0 ? r : -ENOENT;
}

int pclntab_inlined(struct pclntab *t, const struct pclntab_function *f, int32_t index,
		    struct pclntab_call *ret)
{
	const bool lines = t->version >= PCLNTAB_GO120;
	const size_t size = lines ? 16 : 20;
	const unsigned char *p;
	int32_t words[5];
	int r;

	if (index < 0 || f->tree == PCLNTAB_NO_TREE || !t->trees.size)
		return -ENOENT;
	r = window_read(&t->trees, f->tree + (uint64_t)(uint32_t)index * size, size, &p);
	if (r < 0)
		return r;
	memcpy(words, p, size);
	if (words[lines ? 2 : 4] < 0 || (uint64_t)words[lines ? 2 : 4] >= f->end - f->entry)
		return -ENOEXEC;
	*ret = (struct pclntab_call){
		.name = (uint32_t)words[lines ? 1 : 3],
		.start_line = lines ? (uint32_t)words[3] : 0,
		.call = f->entry + (uint64_t)words[lines ? 2 : 4],
		.id = lines ? p[0] : p[2],
	};
	return 0;
}
