/* SPDX-License-Identifier: Apache-2.0 */
/* JSON strings. Contract in json.h. */
#include "base/json.h"

/* What could end a script element, or a string, and the two characters that JavaScript takes for
 * line ends. */
static bool must_escape(struct str c)
{
	unsigned char first = (unsigned char)c.p[0];

	return first < 0x20 || first == 0x7f || strchr("<>&", first) ||
	       str_eq(c, STR("\xe2\x80\xa8")) || str_eq(c, STR("\xe2\x80\xa9"));
}

void json_put_str(struct buf *out, struct str s)
{
	buf_putc(out, '"');
	while (s.n) {
		size_t n = str_utf8_length(s);
		struct str c = str_first(s, n);

		if (n == 0)
			buf_str_append(out, STR("\\ufffd"));
		else if (*c.p == '"' || *c.p == '\\')
			buf_printf(out, "\\%c", *c.p);
		else if (*c.p == '\n')
			buf_str_append(out, STR("\\n"));
		else if (!must_escape(c))
			buf_str_append(out, c);
		else if (n == 3)
			buf_printf(out, "\\u20%02x", c.p[2] == '\xa8' ? 0x28u : 0x29u);
		else
			buf_printf(out, "\\u%04x", (unsigned int)(unsigned char)c.p[0]);
		s = str_skip(s, n ? n : 1);
	}
	buf_putc(out, '"');
}
