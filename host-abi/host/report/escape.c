/* SPDX-License-Identifier: Apache-2.0 */
/* Escaping. Contracts in escape.h. */
#include "host/report/escape.h"

static bool control(struct str s)
{
	unsigned char c = (unsigned char)s.p[0];

	/* The C1 range is two bytes, 0xc2 0x80 to 0xc2 0x9f. */
	return c < 0x20 || c == 0x7f || (c == 0xc2 && s.n > 1 && (unsigned char)s.p[1] < 0xa0);
}

void text_label(struct buf *out, struct str s)
{
	buf_putc(out, '"');
	while (s.n) {
		size_t n = str_utf8_length(s);

		if (!n)
			buf_str_append(out, STR("\xef\xbf\xbd"));
		else if (s.p[0] == '\n')
			buf_str_append(out, STR("\\n"));
		else if (s.p[0] == '"' || s.p[0] == '\\')
			buf_printf(out, "\\%c", s.p[0]);
		else
			buf_append(out, s.p, n);
		s = str_skip(s, n ? n : 1);
	}
	buf_putc(out, '"');
}

void text_line(struct buf *out, struct str s)
{
	while (s.n) {
		size_t n = str_utf8_length(s);

		if (!n || control(s))
			buf_printf(out, "\\x%02x", (unsigned int)(unsigned char)s.p[0]);
		else
			buf_append(out, s.p, n);
		s = str_skip(s, n && !control(s) ? n : 1);
	}
}

static bool is_bare(struct str s)
{
	bool bare = s.n > 0;

	while (bare && s.n) {
		size_t n = str_utf8_length(s);

		bare = n && !control(s) && s.p[0] != ' ' && s.p[0] != '=' && s.p[0] != '"';
		s = str_skip(s, n ? n : 1);
	}
	return bare;
}

/* Readers of logfmt know the escapes of JSON only, and drop a line that has another. json_put_str
 * would escape what matters in a page, too: people read "a -> b" here. */
void text_value(struct buf *out, struct str s)
{
	if (is_bare(s)) {
		buf_str_append(out, s);
		return;
	}
	buf_putc(out, '"');
	while (s.n) {
		size_t n = str_utf8_length(s);

		if (!n)
			buf_str_append(out, STR("\\ufffd"));
		else if (s.p[0] == '\n')
			buf_str_append(out, STR("\\n"));
		else if (control(s))
			buf_printf(out, "\\u%04x", (unsigned int)(unsigned char)s.p[n - 1]);
		else if (s.p[0] == '"' || s.p[0] == '\\')
			buf_printf(out, "\\%c", s.p[0]);
		else
			buf_append(out, s.p, n);
		s = str_skip(s, n ? n : 1);
	}
	buf_putc(out, '"');
}
