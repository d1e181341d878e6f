/* SPDX-License-Identifier: Apache-2.0 */
/* Findings as text, for people and as JSON. Whatever comes from a file is untrusted: control
 * characters and broken UTF-8 are shown as \xNN and cannot steer a terminal, and of a long line
 * only a window around the place is shown. The underline is counted in columns as printed, so it
 * stays right behind tabs (four columns) and letters of several bytes (one column each). */
#include "host/diag.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/json.h"
#include "host/lang/syntax/redact.h"

#include <errno.h>

#define TAB          4
#define WINDOW       100 /* bytes of a line that are shown */
#define WINDOW_FIRST 40  /* of these, before the place */

#define RED    "\033[1;31m"
#define YELLOW "\033[1;33m"
#define BOLD   "\033[1m"
#define GREEN  "\033[32m"
#define PLAIN  "\033[0m"
#define STARS  "********"

struct printer {
	const struct diags *d;
	FILE *out;
	const struct source *source; /* whose spans are known */
	struct redact_spans spans;
	bool opened, colour;
	bool discreet; /* nothing is quoted of what stands at a place */
};

/* The code points that a terminal must not see though they are text: C1, and the marks that change
 * the direction of writing. */
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

/* How many bytes to underline where a place does not say: a quoted string, a dotted name or number,
 * else one. */
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

static struct window window_of(struct str line, size_t at, size_t length)
{
	size_t from = line.n > WINDOW && at > WINDOW_FIRST ? at - WINDOW_FIRST : 0;
	size_t to = line.n - from > WINDOW ? from + WINDOW : line.n;

	while (from > 0 && continues(line.p[from]))
		from--;
	while (to < line.n && continues(line.p[to]))
		to++;
	return (struct window){line, from, at, length < to - at ? at + length : to, to};
}

/* The part of span `i` within bytes [from, to) of the source; empty where it has none. */
static struct redact_span part_of(const struct redact_span *span, struct redact_span line)
{
	return (struct redact_span){span->from > line.from ? span->from : line.from,
				    span->to < line.to ? span->to : line.to};
}

/* Appends a line of the source, with stars for what is hidden. */
static void redact_line(struct buf *out, const struct printer *p, struct redact_span line)
{
	const char *text = p->source->text.p;
	size_t done = line.from;

	vec_each (&p->spans.list, span) {
		struct redact_span part = part_of(span, line);

		if (part.from >= part.to)
			continue;
		buf_append(out, text + done, part.from - done);
		buf_append(out, STARS, strlen(STARS));
		done = part.to;
	}
	buf_append(out, text + done, line.to - done);
}

/* Where byte `at` of a line of the source stands in what redact_line made of it. Within stars it is
 * their begin, or, for the end of a place, their end. */
static size_t redacted_at(const struct printer *p, struct redact_span line, size_t at, bool end)
{
	size_t shown = at - line.from;

	vec_each (&p->spans.list, span) {
		struct redact_span part = part_of(span, line);

		if (part.from >= part.to || at <= part.from)
			continue;
		if (at < part.to)
			return shown - (at - part.from) + (end ? strlen(STARS) : 0);
		shown = shown - (part.to - part.from) + strlen(STARS);
	}
	return shown;
}

static void print_window(const struct place *place, struct window w, FILE *out, bool colour)
{
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

/* Of which bytes of the source a place speaks. */
static struct redact_span bytes_of(const struct place *place, struct str line)
{
	size_t start = line.n ? (size_t)(line.p - place->source->text.p) : 0;
	size_t column = place->column - 1 < line.n ? place->column - 1 : line.n;
	size_t length = place->length ? place->length : word_length(str_skip(line, column));

	if (length > line.n - column)
		length = line.n - column;
	return (struct redact_span){start + column, start + column + length};
}

static void print_line(const struct place *place, const struct printer *p)
{
	struct str line = find_line(place->source->text, place->line);
	size_t start = line.n ? (size_t)(line.p - place->source->text.p) : 0;
	struct redact_span all = {start, start + line.n}, at = bytes_of(place, line);
	struct buf shown = BUF_NULL;

	at.from = redacted_at(p, all, at.from, false);
	at.to = redacted_at(p, all, at.to, true);
	redact_line(&shown, p, all);
	if (!shown.failed)
		print_window(place, window_of(buf_str(&shown), at.from, at.to - at.from), p->out,
			     p->colour);
	buf_free(&shown);
}

/* The length of a hidden value of the place at the front of s; 0 if none stands there. */
static size_t hidden_at(struct str s, const struct place *place, const struct printer *p)
{
	struct redact_span at;

	if (!place->source || !place->line)
		return 0;
	at = bytes_of(place, find_line(place->source->text, place->line));
	if (p->discreet) {
		struct str all = {place->source->text.p + at.from, at.to - at.from};

		if (str_starts(all, STR("\"")) && all.n > 1)
			all = (struct str){all.p + 1, all.n - 2};
		if (all.n > 2 && str_starts(s, all))
			return all.n;
	}
	vec_each (&p->spans.list, span) {
		struct str value = {place->source->text.p + span->from, span->to - span->from};

		if (span->from <= at.to && span->to >= at.from && value.n > 2 &&
		    str_starts(s, value))
			return value.n;
	}
	return 0;
}

/* A text that may quote what is hidden at the place. */
static void put_text(struct str s, const struct place *place, const struct printer *p)
{
	while (s.n) {
		bool hides = p->spans.list.n || p->discreet;
		size_t n = hides ? hidden_at(s, place, p) : 0;
		size_t plain = n || !hides ? s.n : printable(s);

		if (n)
			fputs(STARS, p->out);
		else
			put(p->out, str_first(s, plain ? plain : 1));
		s = str_skip(s, n ? n : plain ? plain : 1);
	}
}

/* Knows what is hidden in the file of a finding; prints no line where memory is short. */
static bool open_source(struct printer *p, const struct source *source)
{
	if (p->source != source)
		p->opened = redact_find(p->d, source, &p->spans) == 0;
	p->source = source;
	return p->opened;
}

static void print_finding(const struct diag *finding, struct printer *p)
{
	const struct place *place = &finding->place;
	bool error = finding->severity == DIAG_ERROR, quoted = place->source && place->line;
	struct str rest = str_of(finding->hint);
	FILE *out = p->out;

	if (quoted)
		quoted = open_source(p, place->source);
	if (p->colour)
		fputs(BOLD, out);
	if (place->source)
		put(out, str_of(place->source->name));
	if (place->source && place->line)
		fprintf(out, ":%u:%u", place->line, place->column);
	fprintf(out, "%s%s%s: %s", place->source ? ": " : "", p->colour ? error ? RED : YELLOW : "",
		error ? "error" : "warning", p->colour ? PLAIN : "");
	put_text(str_of(finding->text), place, p);
	fputc('\n', out);
	if (quoted)
		print_line(place, p);
	while (rest.n) {
		fputs("  ", out);
		put_text(str_cut(&rest, '\n'), place, p);
		fputc('\n', out);
	}
}

void diags_print(const struct diags *d, FILE *out, bool colour)
{
	struct printer p = {.d = d, .out = out, .colour = colour};
	size_t more = d->n_errors + d->n_warnings - d->list.n;

	vec_each (&d->list, finding)
		print_finding(finding, &p);
	if (more)
		fprintf(out, "and %zu more\n", more);
	vec_free(&p.spans.list);
}

char *diag_line(const struct diags *d, const struct diag *finding)
{
	struct printer p = {.d = d, .discreet = true};
	char *text = NULL;
	size_t n = 0;

	p.out = open_memstream(&text, &n);
	if (p.out) {
		print_finding(finding, &p);
		fclose(p.out);
	}
	if (text)
		text[strcspn(text, "\n")] = '\0';
	vec_free(&p.spans.list);
	return text;
}

/* As put_text, as a JSON string. */
static void json_text(struct buf *out, struct str s, const struct place *place, struct printer *p)
{
	char *text = NULL;
	size_t n = 0;

	p->out = open_memstream(&text, &n);
	while (p->out && s.n) {
		put_text(str_cut(&s, '\n'), place, p);
		if (s.n)
			fputc('\n', p->out);
	}
	if (!p->out || fclose(p->out) != 0)
		out->failed = true;
	json_put_str(out, (struct str){text, n});
	free(text);
}

static void json_finding(struct buf *out, const struct diag *finding, struct printer *p)
{
	const struct place *place = &finding->place;

	/* Where what is to be hidden is not known, nothing is said. */
	if (place->source && place->line && !open_source(p, place->source))
		out->failed = true;
	buf_str_append(out, STR("{\"file\":"));
	json_put_str(out, place->source ? str_of(place->source->name) : STR(""));
	buf_printf(out,
		   ",\"line\":%u,\"column\":%u,\"length\":%u,\"severity\":\"%s\",\"message\":",
		   place->line, place->column, place->length,
		   finding->severity == DIAG_ERROR ? "error" : "warning");
	json_text(out, str_of(finding->text), place, p);
	buf_str_append(out, STR(",\"hint\":"));
	json_text(out, str_of(finding->hint), place, p);
	buf_putc(out, '}');
}

int diags_put_json(const struct diags *d, struct buf *out)
{
	struct printer p = {.d = d};

	buf_putc(out, '[');
	vec_each (&d->list, finding) {
		buf_str_append(out, finding == d->list.p ? STR("") : STR(",\n"));
		json_finding(out, finding, &p);
	}
	buf_putc(out, ']');
	vec_free(&p.spans.list);
	return out->failed ? -ENOMEM : 0;
}
