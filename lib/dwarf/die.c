/* SPDX-License-Identifier: Apache-2.0 */
/* Entries. Contract in die.h. */
#include "dwarf/die.h"

#include "dwarf/dw.h"

static int slot_of(uint16_t attribute)
{
	switch (attribute) {
	case DW_AT_sibling:
		return DIE_SIBLING;
	case DW_AT_name:
		return DIE_NAME;
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
		return DIE_LINKAGE_NAME;
	case DW_AT_low_pc:
		return DIE_LOW_PC;
	case DW_AT_high_pc:
		return DIE_HIGH_PC;
	case DW_AT_ranges:
		return DIE_RANGES;
	case DW_AT_abstract_origin:
		return DIE_ORIGIN;
	case DW_AT_specification:
		return DIE_SPECIFICATION;
	case DW_AT_decl_line:
		return DIE_DECL_LINE;
	case DW_AT_call_file:
		return DIE_CALL_FILE;
	case DW_AT_call_line:
		return DIE_CALL_LINE;
	case DW_AT_call_column:
		return DIE_CALL_COLUMN;
	case DW_AT_stmt_list:
		return DIE_STMT_LIST;
	case DW_AT_comp_dir:
		return DIE_COMP_DIR;
	case DW_AT_str_offsets_base:
		return DIE_STR_OFFSETS_BASE;
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
		return DIE_ADDR_BASE;
	case DW_AT_rnglists_base:
		return DIE_RNGLISTS_BASE;
	case DW_AT_GNU_ranges_base:
		return DIE_RANGES_BASE;
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
		return DIE_DWO_NAME;
	case DW_AT_GNU_dwo_id:
		return DIE_DWO_ID;
	default:
		return -1;
	}
}

void die_read(struct die *d, struct cursor *c, const struct abbrev_table *t, const struct abbrev *a,
	      const struct dwarf_format *format)
{
	d->present = 0;
	for (unsigned int i = 0; i < a->n; i++) {
		const struct abbrev_attribute *attribute = &t->attributes.p[a->first + i];
		int slot = slot_of(attribute->name);

		if (slot < 0) {
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
