/* SPDX-License-Identifier: Apache-2.0 */
/* Entries. Contract in die.h. */
#include "dwarf/die.h"

#include "base/check.h"
#include "dwarf/dw.h"

static const uint8_t slots[] = {
	[DW_AT_sibling] = DIE_SIBLING,
	[DW_AT_name] = DIE_NAME,
	[DW_AT_linkage_name] = DIE_LINKAGE_NAME,
	[DW_AT_low_pc] = DIE_LOW_PC,
	[DW_AT_high_pc] = DIE_HIGH_PC,
	[DW_AT_ranges] = DIE_RANGES,
	[DW_AT_abstract_origin] = DIE_ORIGIN,
	[DW_AT_specification] = DIE_SPECIFICATION,
	[DW_AT_decl_line] = DIE_DECL_LINE,
	[DW_AT_call_file] = DIE_CALL_FILE,
	[DW_AT_call_line] = DIE_CALL_LINE,
	[DW_AT_call_column] = DIE_CALL_COLUMN,
	[DW_AT_stmt_list] = DIE_STMT_LIST,
	[DW_AT_comp_dir] = DIE_COMP_DIR,
	[DW_AT_str_offsets_base] = DIE_STR_OFFSETS_BASE,
	[DW_AT_addr_base] = DIE_ADDR_BASE,
	[DW_AT_rnglists_base] = DIE_RNGLISTS_BASE,
	[DW_AT_dwo_name] = DIE_DWO_NAME,
};

static enum die_slot slot_of(uint16_t attribute)
{
	switch (attribute) {
	case DW_AT_MIPS_linkage_name:
		return DIE_LINKAGE_NAME;
	case DW_AT_GNU_addr_base:
		return DIE_ADDR_BASE;
	case DW_AT_GNU_ranges_base:
		return DIE_RANGES_BASE;
	case DW_AT_GNU_dwo_name:
		return DIE_DWO_NAME;
	case DW_AT_GNU_dwo_id:
		return DIE_DWO_ID;
	default:
		return attribute < sizeof(slots) ? (enum die_slot)slots[attribute] : DIE_NONE;
	}
}

void die_read(struct die *d, struct cursor *c, const struct abbrev_table *t, const struct abbrev *a,
	      const struct dwarf_format *format)
{
	check((size_t)a->first + a->n <= t->attributes.n);
	d->present = 0;
	for (unsigned int i = 0; i < a->n; i++) {
		const struct abbrev_attribute *attribute = &t->attributes.p[a->first + i];
		enum die_slot slot = slot_of(attribute->name);

		if (slot == DIE_NONE) {
			form_skip(c, attribute->form, format);
			continue;
		}
		d->v[slot] = form_read(c, attribute, format);
		d->present |= 1u << slot;
	}
}

void die_skip(struct cursor *c, const struct abbrev_table *t, const struct abbrev *a,
	      const struct dwarf_format *format)
{
	if (a->fixed_size != ABBREV_VARIABLE) {
		cursor_skip(c, a->fixed_size);
		return;
	}
	for (unsigned int i = 0; i < a->n; i++)
		form_skip(c, t->attributes.p[a->first + i].form, format);
}
