/* SPDX-License-Identifier: Apache-2.0 */
/* CPython keeps a text in one, two or four bytes a character, and says which. */
#include "python/names.h"

#include "runtime-kit/text.h"

#include <errno.h>
#include <string.h>

static bool is_sound(const struct python_record *r, size_t size)
{
	return r->id >= PYTHON_ID_MIN && r->n_name > 0 && r->n_name <= PYTHON_TEXT_MAX &&
	       r->n_file <= PYTHON_TEXT_MAX && r->n_lines <= PYTHON_LINES_MAX &&
	       r->name_width <= 4 && r->file_width <= 4 && r->name_width != 3 &&
	       r->file_width != 3 && r->lines_kind <= PYTHON_LINES_TASK &&
	       size - sizeof(*r) >= (size_t)r->n_name + r->n_file + r->n_lines;
}

/* A text of the record. One as long as the longest that is copied was cut, at `cut`. */
static uint32_t to_utf8(char *to, const unsigned char *from, uint32_t n, uint32_t width,
			enum text_cut cut)
{
	static const enum text_encoding encodings[] = {TEXT_LATIN1, TEXT_LATIN1, TEXT_UTF16,
						       TEXT_LATIN1, TEXT_UCS4};

	return (uint32_t)text_to_utf8(to, TEXT_BYTES(PYTHON_TEXT_MAX), from, n, encodings[width],
				      n == PYTHON_TEXT_MAX ? cut : TEXT_WHOLE);
}

int names_add(struct name_cache *c, const void *record, size_t size, const unsigned char *table)
{
	const unsigned char *from = (const unsigned char *)record + sizeof(struct python_record);
	char function[TEXT_BYTES(PYTHON_TEXT_MAX)], file[TEXT_BYTES(PYTHON_TEXT_MAX)];
	struct python_record r;

	if (size < sizeof(r))
		return -EINVAL;
	memcpy(&r, record, sizeof(r));
	if (!is_sound(&r, size) || (table && r.all_lines > NAMES_TABLE_MAX))
		return -EINVAL;
	return name_cache_put(c, r.id,
			      &(struct name){
				      .function = function,
				      .n_function = to_utf8(function, from, r.n_name, r.name_width,
							    TEXT_CUT_END),
				      .file = file,
				      .n_file = to_utf8(file, from + r.n_name, r.n_file,
							r.file_width, TEXT_CUT_BEGIN),
				      .first_line = r.first_line,
				      .kind = r.lines_kind,
				      .extra = r.all_lines,
				      .owner = r.pid,
				      .table = table ? table : from + r.n_name + r.n_file,
				      .n_table = table ? r.all_lines : r.n_lines,
			      });
}

struct line_table names_lines(const struct name *name)
{
	return (struct line_table){name->table, name->n_table, name->kind, name->first_line,
				   name->n_table < name->extra};
}
