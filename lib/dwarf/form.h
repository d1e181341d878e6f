/* SPDX-License-Identifier: Apache-2.0 */
/* The values of attributes. */
#pragma once

#include "dwarf/abbrev.h"

enum form_class {
	FORM_NONE, /* a block, an expression: skipped */
	FORM_NUMBER,
	FORM_ADDRESS,
	FORM_ADDRESS_INDEX,
	FORM_TEXT,     /* value: offset in the section that was read */
	FORM_STR,      /* offset in .debug_str */
	FORM_LINE_STR, /* in .debug_line_str */
	FORM_STR_INDEX,
	FORM_STR_ALT,  /* in the .debug_str of the other file */
	FORM_REF,      /* offset from the unit's start */
	FORM_REF_FILE, /* offset in .debug_info */
	FORM_REF_ALT,  /* in the .debug_info of the other file */
	FORM_RANGES_INDEX,
};

struct form_value {
	enum form_class class;
	uint64_t value;
};

/* How many bytes a value takes; -1: that depends on it, or is unknown. O(1). */
int form_fixed_size(uint16_t form, const struct dwarf_format *format);

/* Goes behind a value. An unknown form is an error of the cursor. */
void form_skip(struct cursor *c, uint16_t form, const struct dwarf_format *format);

/* Reads a value, going behind it. c->error says whether that worked. */
struct form_value form_read(struct cursor *c, const struct abbrev_attribute *a,
			    const struct dwarf_format *format);
