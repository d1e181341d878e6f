/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of a unit's entries. Each is told how many bytes an entry of it takes where that does
 * not depend on the entry, since most are only skipped. */
#pragma once

#include "base/vec.h"
#include "dwarf/cursor.h"

#define ABBREV_MAX_SHAPES     65536u
#define ABBREV_MAX_ATTRIBUTES (1u << 20)
#define ABBREV_VARIABLE       UINT16_MAX

struct abbrev_attribute {
	uint16_t name, form;
	int64_t constant; /* DW_FORM_implicit_const */
};

struct abbrev {
	uint64_t code;
	uint32_t first; /* attribute */
	uint16_t n;
	uint16_t tag;
	uint16_t fixed_size; /* of all attributes, or ABBREV_VARIABLE */
	bool children;
};

struct abbrev_table {
	VEC(struct abbrev) shapes; /* by code */
	VEC(struct abbrev_attribute) attributes;
};

/* How long things are in a unit. */
struct dwarf_format {
	uint8_t version, offset_size, address_size;
};

/* Reads the table at `at`; only up to the shape of code `only` where that is not 0. -ENOEXEC,
 * -E2BIG (beyond the limits above), -ENOMEM or pread's errno. */
int abbrev_load(struct abbrev_table *ret, struct cursor *c, uint64_t at,
		const struct dwarf_format *format, uint64_t only);
void abbrev_free(struct abbrev_table *t);
size_t abbrev_bytes(const struct abbrev_table *t);

/* NULL: there is no such code. Usually O(1). */
const struct abbrev *abbrev_find(const struct abbrev_table *t, uint64_t code);
