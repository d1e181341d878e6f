/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of paths. Contract in path-pattern.h. Braces are expanded first, so that the rest looks
 * at one name of the path at a time, and fnmatch(3) judges that. */
#include "discovery/path-pattern.h"

#include "base/buf.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>

static void form_free(struct path_form *f)
{
	vec_free(&f->parts);
	free(f->text);
}

void path_pattern_free(struct path_pattern *p)
{
	vec_each (&p->forms, f)
		form_free(f);
	vec_free(&p->forms);
}

/* Takes a part as Go's filepath.Clean would: "." is nothing, ".." takes the name before it away. */
static bool add_part(struct path_form *f, const char *part)
{
	const char *last = f->parts.n ? f->parts.p[f->parts.n - 1] : NULL;
	bool up = strcmp(part, "..") == 0;

	if (strcmp(part, ".") == 0 || (last && path_part_is_deep(last) && path_part_is_deep(part)))
		return true;
	if (up && last && !*last) /* above the root is the root */
		return true;
	if (up && last && strcmp(last, "..") != 0 && path_part_is_name(last)) {
		f->parts.n--;
		return true;
	}
	return vec_push(&f->parts, part);
}

/* An empty part is the root's, at the begin; elsewhere a slash too many. Of several ** in a row one
 * is enough, and at the end it stands for what is below as well. */
static bool split(struct path_form *f)
{
	char *at = f->text, *end;
	bool ok = true;

	do {
		end = strchr(at, '/');
		if (end)
			*end = '\0';
		if (*at || at == f->text)
			ok = add_part(f, at);
		at = end ? end + 1 : NULL;
	} while (ok && at);
	if (ok && f->parts.n && path_part_is_deep(f->parts.p[f->parts.n - 1]))
		ok = vec_push(&f->parts, "*");
	if (ok && !f->parts.n)
		ok = vec_push(&f->parts, ".");
	return ok;
}

static int add_form(struct path_pattern *p, struct str text)
{
	struct path_form form = {0};
	int r;

	if (text.n >= PATH_MAX || p->forms.n >= PATH_PATTERN_FORMS)
		return -E2BIG;
	form.text = str_dup(text);
	r = !form.text || !split(&form)             ? -ENOMEM
	    : form.parts.n > PATH_PATTERN_PARTS ? -E2BIG
	    : vec_push(&p->forms, form)         ? 0
						: -ENOMEM;
	if (r < 0)
		form_free(&form);
	return r;
}

/* Where the first brace that nothing escapes opens, from `i` on; n where none does. */
static size_t find_brace(struct str s, size_t i)
{
	while (i < s.n && s.p[i] != '{')
		i += s.p[i] == '\\' ? 2 : 1;
	return i < s.n ? i : s.n;
}

/* Where the alternative that begins at `i` ends, its comma or closing brace; n: nowhere. */
static size_t find_end(struct str s, size_t i)
{
	int depth = 0;

	for (; i < s.n; i += s.p[i] == '\\' ? 2 : 1) {
		if (depth == 0 && (s.p[i] == ',' || s.p[i] == '}'))
			return i;
		depth += (s.p[i] == '{') - (s.p[i] == '}');
	}
	return s.n;
}

static size_t find_close(struct str s, size_t i)
{
	while (i < s.n && s.p[i] != '}')
		i = find_end(s, i + 1);
	return i;
}

/* Each alternative of the first brace in its place, and that read again. */
static int expand(struct path_pattern *p, struct str text, int braces)
{
	size_t open = find_brace(text, 0), at, end, close;
	int r = 0;

	if (open >= text.n)
		return add_form(p, text);
	close = find_close(text, open);
	if (close >= text.n)
		return -EINVAL;
	if (braces == PATH_PATTERN_BRACES)
		return -E2BIG;
	for (at = open + 1; r == 0 && at <= close; at = end + 1) {
		_cleanup_(buf_free) struct buf one = BUF_NULL;

		end = find_end(text, at);
		buf_append(&one, text.p, open);
		buf_append(&one, text.p + at, end - at);
		buf_append(&one, text.p + close + 1, text.n - close - 1);
		r = one.failed ? -ENOMEM : expand(p, buf_str(&one), braces + 1);
	}
	return r;
}

int path_pattern_read(struct str text, struct path_pattern *ret)
{
	int r;

	*ret = (struct path_pattern){0};
	if (memchr(text.p, '\0', text.n))
		return -EINVAL;
	r = text.n >= PATH_MAX ? -E2BIG : expand(ret, text, 0);
	if (r < 0)
		path_pattern_free(ret);
	return r;
}

/* Only the last ** has to give way: an earlier one could give no more than it. */
static bool form_matches(const struct path_form *f, const struct path_form *path)
{
	size_t i = 0, j = 0, deep = SIZE_MAX, taken = 0;

	while (j < path->parts.n) {
		if (i < f->parts.n && path_part_is_deep(f->parts.p[i])) {
			deep = i++;
			taken = j;
		} else if (i < f->parts.n &&
			   fnmatch(f->parts.p[i], path->parts.p[j], 0) == 0) {
			i++;
			j++;
		} else if (deep != SIZE_MAX) {
			i = deep + 1;
			j = ++taken;
		} else {
			return false;
		}
	}
	return i == f->parts.n;
}

bool path_pattern_matches(const struct path_pattern *p, const char *path)
{
	struct path_form parts = {.text = str_dup(str_of(path))};
	bool is = parts.text && split(&parts);

	if (is) {
		is = false;
		vec_each (&p->forms, f)
			is |= form_matches(f, &parts);
	}
	form_free(&parts);
	return is;
}
