/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings as text. Whatever comes from a file is written by a stranger:
 * control characters and broken UTF-8 are shown as \xNN and cannot steer a
 * terminal, and of a long line only a window around the place is shown. The
 * underline is counted in columns as printed, so it stays right behind tabs
 * (four columns) and letters of several bytes (one column each).
 */
#include "host/diag.h"

#include "base/check.h"

#define TAB 4
#define WINDOW 100      /* bytes of a line that are shown */
#define WINDOW_FIRST 40 /* of these, before the place */

#define RED "\033[1;31m"
#define YELLOW "\033[1;33m"
#define BOLD "\033[1m"
#define GREEN "\033[32m"
#define PLAIN "\033[0m"

/* The code points that a terminal must not see though they are text: C1, and
 * the marks that change the direction of writing. */
static const struct {
	const char *first, *last;
} steering[] = {
	{"\xc2\x80", "\xc2\x9f"},
	{"\xe2\x80\xaa", "\xe2\x80\xae"},
	{"\xe2\x81\xa6", "\xe2\x81\xa9"},
};

/* Bytes of the printable character at the front of s, 0 if it is none. */
static size_t printable(struct str s)
{
	unsigned char c = (unsigned char)s.p[0];
	size_t n = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;

	s = str_first(s, n);
	if (c < 0x20 || c == 0x7f || !str_utf8(s))
		return 0;
	for (size_t i = 0; i < sizeof(steering) / sizeof(steering[0]); i++)
		if (str_cmp(s, str_of(steering[i].first)) >= 0 &&
		    str_cmp(s, str_of(steering[i].last)) <= 0)
			return 0;
	return n;
}

/* Writes s (or, without `out`, only counts) and returns its columns. */
static size_t put(FILE *out, struct str s)
{
	size_t columns = 0;

	while (s.n) {
		size_t n = printable(s);

		if (out && n)
			fwrite(s.p, 1, n, out);
		else if (out && s.p[0] == '\t')
			fprintf(out, "%*s", TAB, "");
		else if (out)
			fprintf(out, "\\x%02x", (unsigned char)s.p[0]);
		columns += n ? 1 : s.p[0] == '\t' ? TAB : 4;
		s = str_skip(s, n ? n : 1);
	}
	return columns;
}

/* The line of that number, empty beyond the end. O(file). */
static struct str find_line(struct str text, uint32_t line)
{
	struct str rest = text, found = str_cut(&rest, '\n');

	while (line-- > 1)
		found = str_cut(&rest, '\n');
	if (str_ends(found, STR("\r")))
		found.n--;
	return found;
}

static bool continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* How many bytes to underline where a place does not say: a quoted string, a
 * dotted name or number, else one. */
static size_t word_length(struct str s)
{
	size_t n = 0;

	if (s.n && s.p[0] == '"')
		return str_find(str_skip(s, 1), '"') + 2;
	while (n < s.n && (s.p[n] == '.' || s.p[n] == '_' || (s.p[n] >= '0' && s.p[n] <= '9') ||
			   ((s.p[n] | 32) >= 'a' && (s.p[n] | 32) <= 'z')))
		n++;
	return n;
}

/* The part of a line that is shown, and the part of that which is underlined. */
struct window {
	struct str line;
	size_t from, at, end, to;
};

static struct window window_of(const struct place *place)
{
	struct str line = find_line(place->source->text, place->line);
	size_t at = place->column - 1 < line.n ? place->column - 1 : line.n;
	size_t from = line.n > WINDOW && at > WINDOW_FIRST ? at - WINDOW_FIRST : 0;
	size_t to = line.n - from > WINDOW ? from + WINDOW : line.n;
	size_t length = place->length ? place->length : word_length(str_skip(line, at));

	while (from > 0 && continues(line.p[from]))
		from--;
	while (to < line.n && continues(line.p[to]))
		to++;
	return (struct window){line, from, at, length < to - at ? at + length : to, to};
}

static void print_line(const struct place *place, FILE *out, bool colour)
{
	struct window w = window_of(place);
	size_t lead, width;

	check(w.from <= w.at && w.at <= w.end && w.end <= w.to && w.to <= w.line.n);
	fprintf(out, "%5u | %s", place->line, w.from ? "…" : "");
	lead = put(out, str_first(str_skip(w.line, w.from), w.at - w.from)) + (w.from > 0);
	width = put(NULL, str_first(str_skip(w.line, w.at), w.end - w.at));
	put(out, str_first(str_skip(w.line, w.at), w.to - w.at));
	fprintf(out, "%s\n      | %*s%s^", w.to < w.line.n ? "…" : "", (int)lead, "",
		colour ? GREEN : "");
	for (size_t i = 1; i < width; i++)
		fputc('~', out);
	fprintf(out, "%s\n", colour ? PLAIN : "");
}

static void print_finding(const struct diag *finding, FILE *out, bool colour)
{
	const struct place *place = &finding->place;
	bool error = finding->severity == DIAG_ERROR;
	struct str rest = str_of(finding->hint);

	if (colour)
		fputs(BOLD, out);
	if (place->source)
		put(out, str_of(place->source->name));
	if (place->source && place->line)
		fprintf(out, ":%u:%u", place->line, place->column);
	fprintf(out, "%s%s%s: %s", place->source ? ": " : "", colour ? error ? RED : YELLOW : "",
		error ? "error" : "warning", colour ? PLAIN : "");
	put(out, str_of(finding->text));
	fputc('\n', out);
	if (place->source && place->line)
		print_line(place, out, colour);
	while (rest.n) {
		fputs("  ", out);
		put(out, str_cut(&rest, '\n'));
		fputc('\n', out);
	}
}

void diags_print(const struct diags *d, FILE *out, bool colour)
{
	size_t more = d->n_errors + d->n_warnings - d->list.n;

	vec_each(&d->list, finding)
		print_finding(finding, out, colour);
	if (more)
		fprintf(out, "and %zu more\n", more);
}
