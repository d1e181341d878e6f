/* SPDX-License-Identifier: Apache-2.0 */
/* See exposition.h. */
#include "agents/kit/exposition.h"

#include <stdlib.h>

/* The position of the quote that ends a value, or text.n. */
static size_t value_end(struct str text)
{
	size_t i = 0;

	while (i < text.n && text.p[i] != '"')
		i += text.p[i] == '\\' ? 2 : 1;
	return i < text.n ? i : text.n;
}

/* The position of the brace that ends the labels, or text.n. */
static size_t labels_end(struct str text)
{
	size_t i = 0;

	while (i < text.n && text.p[i] != '}') {
		if (text.p[i] == '"')
			i += 1 + value_end(str_skip(text, i + 1));
		i++;
	}
	return i < text.n ? i : text.n;
}

static bool read_value(struct str text, double *ret)
{
	char digits[64], *end;

	text = str_trim(text);
	text = str_first(text, str_find(text, ' ')); /* a time may follow */
	if (text.n == 0 || text.n >= sizeof(digits))
		return false;
	memcpy(digits, text.p, text.n);
	digits[text.n] = 0;
	*ret = str_parse_fraction(digits, &end);
	return *end == 0;
}

static bool read_sample(struct str line, struct exposition_sample *ret)
{
	size_t n = 0;

	while (n < line.n && line.p[n] != '{' && line.p[n] != ' ')
		n++;
	ret->name = str_first(line, n);
	ret->labels = STR_NULL;
	line = str_skip(line, n);
	if (line.n > 0 && line.p[0] == '{') {
		line = str_skip(line, 1);
		n = labels_end(line);
		ret->labels = str_first(line, n);
		line = str_skip(line, n + 1);
	}
	return ret->name.n > 0 && read_value(line, &ret->value);
}

bool exposition_next(struct exposition *x, struct exposition_sample *ret)
{
	while (x->rest.n > 0) {
		struct str line = str_cut(&x->rest, '\n');

		if (str_starts(line, STR("# TYPE ")) && str_ends(line, STR(" counter"))) {
			line = str_skip(line, strlen("# TYPE "));
			x->counter = str_first(line, line.n - strlen(" counter"));
		} else if (line.n > 0 && line.p[0] != '#' && read_sample(line, ret)) {
			ret->counter = str_eq(ret->name, x->counter);
			return true;
		}
	}
	return false;
}

bool exposition_label(struct str *labels, struct str *ret_value)
{
	size_t at = str_search(*labels, STR("=\""));
	struct str value = str_skip(*labels, at + 2);

	if (at >= labels->n)
		return false;
	*ret_value = str_first(value, value_end(value));
	*labels = str_skip(value, ret_value->n + 1);
	return true;
}
