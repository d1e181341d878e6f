/* SPDX-License-Identifier: Apache-2.0 */
/* The values of attributes (DWARF 5, 7.5.6). Contract in form.h. */
#include "dwarf/form.h"

#include "dwarf/dw.h"

#include <errno.h>

#define VARIABLE (-1)
#define OFFSET   (-2)
#define ADDRESS  (-3)
#define UNKNOWN  (-4)

static const struct {
	int8_t size;
	uint8_t class;
} forms[] = {
	[DW_FORM_addr] = {ADDRESS, FORM_ADDRESS},
	[DW_FORM_block2] = {VARIABLE, FORM_NONE},
	[DW_FORM_block4] = {VARIABLE, FORM_NONE},
	[DW_FORM_data2] = {2, FORM_NUMBER},
	[DW_FORM_data4] = {4, FORM_NUMBER},
	[DW_FORM_data8] = {8, FORM_NUMBER},
	[DW_FORM_string] = {VARIABLE, FORM_TEXT},
	[DW_FORM_block] = {VARIABLE, FORM_NONE},
	[DW_FORM_block1] = {VARIABLE, FORM_NONE},
	[DW_FORM_data1] = {1, FORM_NUMBER},
	[DW_FORM_flag] = {1, FORM_NUMBER},
	[DW_FORM_sdata] = {VARIABLE, FORM_NUMBER},
	[DW_FORM_strp] = {OFFSET, FORM_STR},
	[DW_FORM_udata] = {VARIABLE, FORM_NUMBER},
	[DW_FORM_ref_addr] = {OFFSET, FORM_REF_FILE},
	[DW_FORM_ref1] = {1, FORM_REF},
	[DW_FORM_ref2] = {2, FORM_REF},
	[DW_FORM_ref4] = {4, FORM_REF},
	[DW_FORM_ref8] = {8, FORM_REF},
	[DW_FORM_ref_udata] = {VARIABLE, FORM_REF},
	[DW_FORM_indirect] = {VARIABLE, FORM_NONE},
	[DW_FORM_sec_offset] = {OFFSET, FORM_NUMBER},
	[DW_FORM_exprloc] = {VARIABLE, FORM_NONE},
	[DW_FORM_flag_present] = {0, FORM_NUMBER},
	[DW_FORM_strx] = {VARIABLE, FORM_STR_INDEX},
	[DW_FORM_addrx] = {VARIABLE, FORM_ADDRESS_INDEX},
	[DW_FORM_ref_sup4] = {4, FORM_REF_ALT},
	[DW_FORM_strp_sup] = {OFFSET, FORM_STR_ALT},
	[DW_FORM_data16] = {16, FORM_NONE},
	[DW_FORM_line_strp] = {OFFSET, FORM_LINE_STR},
	[DW_FORM_ref_sig8] = {8, FORM_NONE},
	[DW_FORM_implicit_const] = {0, FORM_NUMBER},
	[DW_FORM_loclistx] = {VARIABLE, FORM_NONE},
	[DW_FORM_rnglistx] = {VARIABLE, FORM_RANGES_INDEX},
	[DW_FORM_ref_sup8] = {8, FORM_REF_ALT},
	[DW_FORM_strx1] = {1, FORM_STR_INDEX},
	[DW_FORM_strx2] = {2, FORM_STR_INDEX},
	[DW_FORM_strx3] = {3, FORM_STR_INDEX},
	[DW_FORM_strx4] = {4, FORM_STR_INDEX},
	[DW_FORM_addrx1] = {1, FORM_ADDRESS_INDEX},
	[DW_FORM_addrx2] = {2, FORM_ADDRESS_INDEX},
	[DW_FORM_addrx3] = {3, FORM_ADDRESS_INDEX},
	[DW_FORM_addrx4] = {4, FORM_ADDRESS_INDEX},
};
#define N_FORMS (sizeof(forms) / sizeof(forms[0]))

/* VARIABLE, OFFSET, ADDRESS, UNKNOWN, or a number of bytes. */
static int shape_of(uint16_t form, enum form_class *ret)
{
	switch (form) {
	case DW_FORM_GNU_addr_index:
		*ret = FORM_ADDRESS_INDEX;
		return VARIABLE;
	case DW_FORM_GNU_str_index:
		*ret = FORM_STR_INDEX;
		return VARIABLE;
	case DW_FORM_GNU_ref_alt:
		*ret = FORM_REF_ALT;
		return OFFSET;
	case DW_FORM_GNU_strp_alt:
		*ret = FORM_STR_ALT;
		return OFFSET;
	case 0:
	case 2:
		return UNKNOWN;
	default:
		if (form >= N_FORMS)
			return UNKNOWN;
		*ret = (enum form_class)forms[form].class;
		return forms[form].size;
	}
}

static int size_of(int shape, uint16_t form, const struct dwarf_format *format)
{
	if (shape == ADDRESS || (form == DW_FORM_ref_addr && format->version < 3))
		return format->address_size;
	return shape == OFFSET ? format->offset_size : shape;
}

int form_fixed_size(uint16_t form, const struct dwarf_format *format)
{
	enum form_class class;
	int size = size_of(shape_of(form, &class), form, format);

	return size < 0 ? -1 : size;
}

static uint64_t read_variable(struct cursor *c, uint16_t form)
{
	uint64_t value;

	switch (form) {
	case DW_FORM_block1:
		cursor_skip(c, cursor_u8(c));
		return 0;
	case DW_FORM_block2:
		cursor_skip(c, cursor_number(c, 2));
		return 0;
	case DW_FORM_block4:
		cursor_skip(c, cursor_number(c, 4));
		return 0;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		cursor_skip(c, cursor_uleb(c));
		return 0;
	case DW_FORM_string:
		value = cursor_at(c);
		cursor_skip_text(c);
		return value;
	case DW_FORM_sdata:
		return (uint64_t)cursor_sleb(c);
	default:
		return cursor_uleb(c);
	}
}

/* An indirect form names the one that follows, itself not indirect. */
static uint16_t resolve(struct cursor *c, uint16_t form)
{
	uint64_t direct;

	if (form != DW_FORM_indirect)
		return form;
	direct = cursor_uleb(c);
	return direct == DW_FORM_indirect || direct == DW_FORM_implicit_const || direct > UINT16_MAX
		       ? 0
		       : (uint16_t)direct;
}

struct form_value form_read(struct cursor *c, const struct abbrev_attribute *a,
			    const struct dwarf_format *format)
{
	struct form_value v = {FORM_NONE, 0};
	uint16_t form = resolve(c, a->form);
	int size = size_of(shape_of(form, &v.class), form, format);

	if (form == DW_FORM_implicit_const)
		v.value = (uint64_t)a->constant;
	else if (form == DW_FORM_flag_present)
		v.value = 1;
	else if (size > 8)
		cursor_skip(c, (uint64_t)size);
	else if (size >= 0)
		v.value = cursor_number(c, (unsigned int)size);
	else if (size == VARIABLE)
		v.value = read_variable(c, form);
	else
		cursor_fail(c, -ENOEXEC);
	return v;
}

void form_skip(struct cursor *c, uint16_t form, const struct dwarf_format *format)
{
	const struct abbrev_attribute a = {.form = form};
	int size = form_fixed_size(form, format);

	if (size >= 0)
		cursor_skip(c, (uint64_t)size);
	else
		form_read(c, &a, format);
}
