/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of folded text. Contract in folded.h. */
#include "receive-http/folded.h"

#include <errno.h>

static int refuse(struct error *err, uint64_t line, const char *why)
{
	return error_set(err, -EBADMSG, "line %llu of the folded text %s",
			 (unsigned long long)line, why);
}

/* Cuts the number off a line's end. */
static bool cut_value(struct str *text, uint64_t *ret)
{
	size_t at = str_rfind(*text, ' ');

	if (at == text->n || !str_u64(str_skip(*text, at + 1), ret) || *ret > INT64_MAX)
		return false;
	*text = str_trim(str_first(*text, at));
	return true;
}

int folded_next(struct str *in, bool counted, uint64_t *line, struct folded_line *ret,
		struct error *err)
{
	uint64_t value = 1;
	struct str text = STR_NULL;
	size_t n_frames = 1;

	while (in->n && !text.n) {
		++*line;
		text = str_trim(str_cut(in, '\n'));
	}
	if (!text.n)
		return 0;
	if (!str_utf8(text) || memchr(text.p, '\0', text.n))
		return refuse(err, *line, "is not UTF-8 text");
	if (counted && !cut_value(&text, &value))
		return refuse(err, *line, "does not end with a space and a number");
	if (!text.n)
		return refuse(err, *line, "has no frames");
	for (size_t i = 0; i < text.n; i++)
		n_frames += text.p[i] == ';';
	if (n_frames > FOLDED_MAX_FRAMES)
		return refuse(err, *line, "has more than 1024 frames");
	*ret = (struct folded_line){text, value};
	return 1;
}
