/* SPDX-License-Identifier: Apache-2.0 */
/* One entry (DIE) with the attributes that matter here. */
#pragma once

#include "dwarf/form.h"

enum die_slot {
	DIE_NONE,
	DIE_SIBLING,
	DIE_NAME,
	DIE_LINKAGE_NAME,
	DIE_LOW_PC,
	DIE_HIGH_PC,
	DIE_RANGES,
	DIE_ORIGIN, /* abstract origin */
	DIE_SPECIFICATION,
	DIE_DECL_LINE,
	DIE_CALL_FILE,
	DIE_CALL_LINE,
	DIE_CALL_COLUMN,
	DIE_STMT_LIST,
	DIE_COMP_DIR,
	DIE_STR_OFFSETS_BASE,
	DIE_ADDR_BASE,
	DIE_RNGLISTS_BASE,
	DIE_RANGES_BASE,
	DIE_DWO_NAME,
	DIE_DWO_ID,
	DIE_SLOTS
};

struct die {
	uint32_t present; /* a bit for each slot */
	struct form_value v[DIE_SLOTS];
};

static inline bool die_has(const struct die *d, enum die_slot slot)
{
	return d->present & 1u << slot;
}

static inline uint64_t die_number(const struct die *d, enum die_slot slot)
{
	return die_has(d, slot) ? d->v[slot].value : 0;
}

/* Reads an entry's attributes, going behind them; c->error says whether that worked. */
void die_read(struct die *d, struct cursor *c, const struct abbrev_table *t, const struct abbrev *a,
	      const struct dwarf_format *format);

/* Goes behind them. */
void die_skip(struct cursor *c, const struct abbrev_table *t, const struct abbrev *a,
	      const struct dwarf_format *format);
