/* SPDX-License-Identifier: Apache-2.0 */
/* The table. Contract in screen.h. Sequences are those that all terminals since the VT100 know.
 * Names are strangers' text and go through shown_text. */
#include "cli/top/screen.h"

#include "base/ascii.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "cli/report/shown.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define HEAD_LINES     4u
#define FIGURE_COLUMNS 20u
#define ENTER          "\033[?1049h\033[?25l" /* the other screen, no cursor */
#define LEAVE          "\033[?25h\033[?1049l"

void screen_open(struct screen *s, size_t limit)
{
	struct termios raw;

	*s = (struct screen){.limit = limit};
	s->terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 &&
		      tcgetattr(STDIN_FILENO, &s->before) == 0;
	if (!s->terminal)
		return;
	raw = s->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VSUSP] = _POSIX_VDISABLE; /* a stopped program would leave its screen behind */
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	file_write_fd(STDOUT_FILENO, ENTER, sizeof(ENTER) - 1);
}

void screen_close(struct screen *s)
{
	if (!s->terminal)
		return;
	file_write_fd(STDOUT_FILENO, LEAVE, sizeof(LEAVE) - 1);
	tcsetattr(STDIN_FILENO, TCSANOW, &s->before);
	s->terminal = false;
}

/* Keys */

static void search_for(struct screen *s, char key)
{
	s->first = 0;
	if (key == '\r' || key == '\n') {
		s->searching = false;
	} else if (key == '\b' || key == 0x7f) {
		while (s->search_n > 0 && ((unsigned char)s->search[--s->search_n] & 0xc0) == 0x80)
			;
		s->search[s->search_n] = '\0';
	} else if ((unsigned char)key >= ' ' && s->search_n + 1 < SCREEN_SEARCH_MAX) {
		s->search[s->search_n++] = key;
		s->search[s->search_n] = '\0';
	}
}

static void scroll(struct screen *s, long by)
{
	if (by < 0 && s->first < (size_t)-by)
		s->first = 0;
	else
		s->first += (size_t)by;
}

static bool command(struct screen *s, char key)
{
	switch (key) {
	case 'q':
		return true;
	case '/':
		s->searching = true;
		break;
	case 's':
		s->by_total = !s->by_total;
		break;
	case 'p':
		s->programs = !s->programs;
		s->first = 0;
		break;
	case ' ':
		s->paused = !s->paused;
		break;
	case 'j':
		scroll(s, 1);
		break;
	case 'k':
		scroll(s, -1);
		break;
	default:
		break;
	}
	return false;
}

static void clear_search(struct screen *s)
{
	s->searching = false;
	s->search[s->search_n = 0] = '\0';
	s->first = 0;
}

/* One more byte of a key that is "[A", "[5~", "OA". */
static void escaped(struct screen *s, char byte)
{
	static const struct {
		const char *keys;
		long by;
	} moves[] = {{"[A", -1}, {"[B", 1}, {"[5~", -10}, {"[6~", 10}, {"OA", -1}, {"OB", 1}};
	bool opens = s->escape_n == 0 && (byte == '[' || byte == 'O');

	s->escape[s->escape_n++] = byte;
	s->escape[s->escape_n] = '\0';
	if (opens ||
	    (s->escape_n + 1 < sizeof(s->escape) && (byte == ';' || (byte >= '0' && byte <= '9'))))
		return;
	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++)
		if (strcmp(s->escape, moves[i].keys) == 0)
			scroll(s, moves[i].by);
	s->escaping = false;
}

bool screen_type(struct screen *s, const char *keys, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (s->escaping) {
			escaped(s, keys[i]);
		} else if (keys[i] == '\033' && i + 1 < n) {
			s->escaping = true;
			s->escape_n = 0;
		} else if (keys[i] == '\033') {
			clear_search(s); /* the key alone */
		} else if (s->searching) {
			search_for(s, keys[i]);
		} else if (command(s, keys[i])) {
			return true;
		}
	}
	return false;
}

/* Drawing */

struct page {
	const struct screen *s;
	struct live_view *v;
	struct buf out;
	size_t rows, columns; /* of the screen; rows 0: no end */
	const char *end;      /* of a line */
};

static void end_line(struct page *page)
{
	buf_printf(&page->out, "%s", page->end);
}

static double cores(const struct page *page, int64_t ns)
{
	return page->v->covered_ns > 0 ? (double)ns / (double)page->v->covered_ns : 0;
}

static void put_head(struct page *page)
{
	const struct screen *s = page->s;
	size_t width = page->columns;
	struct buf line = BUF_NULL;

	if (s->terminal && !page->v->covered_ns)
		buf_str_append(&line, STR("no samples yet"));
	else
		buf_printf(&line, "%.2f cores busy; %llu samples of the last %.3g s",
			   cores(page, page->v->functions.sum),
			   (unsigned long long)page->v->samples,
			   (double)page->v->covered_ns / (double)NS_PER_SEC);
	if (s->paused)
		buf_str_append(&line, STR("; paused, space goes on"));
	shown_text(&page->out, buf_str(&line), width);
	end_line(page);
	buf_clear(&line);
	if (s->searching || s->search_n)
		buf_printf(&line, "/%s%s", s->search, s->searching ? "_" : "   (Esc shows all)");
	else if (s->terminal)
		buf_printf(&line, "/ search   q quit   s by %s   p %s   space pause",
			   s->by_total ? "self" : "total", s->programs ? "functions" : "programs");
	shown_text(&page->out, buf_str(&line), width);
	end_line(page);
	end_line(page);
	buf_free(&line);
	buf_printf(&page->out, "%8s %8s   %s", s->programs ? "" : "self", "total",
		   s->programs ? "program" : "function");
	end_line(page);
}

static void put_name(struct buf *out, const struct top_entry *e)
{
	struct str module = call_tree_base_name(e->source.n ? e->source : e->module);

	buf_str_append(out, e->name.n ? e->name : STR("[unnamed code]"));
	if (module.n && (!e->name.n || !call_tree_unsymbolized(e->name, e->module)))
		buf_printf(out, module.p[0] == '[' ? "  %.*s" : "  [%.*s]", STR_FMT(module));
}

/* Letters of ASCII in any case. */
static bool holds(struct str text, struct str word)
{
	for (size_t i = 0; i + word.n <= text.n; i++) {
		size_t n = 0;

		while (n < word.n && ascii_lower(text.p[i + n]) == ascii_lower(word.p[n]))
			n++;
		if (n == word.n)
			return true;
	}
	return false;
}

static void put_row(struct page *page, const struct top_entry *e, struct str name)
{
	if (page->s->programs)
		buf_printf(&page->out, "%8s", "");
	else
		buf_printf(&page->out, "%7.1f%%", 100 * cores(page, e->self));
	buf_printf(&page->out, " %7.1f%%   ", 100 * cores(page, e->total));
	shown_text(&page->out, name, page->columns ? page->columns - FIGURE_COLUMNS : 0);
	end_line(page);
}

/* Rows that hold what is searched for, from the first that is to be seen. */
static void put_rows(struct page *page)
{
	const struct screen *s = page->s;
	const struct top *top = s->programs ? &page->v->programs : &page->v->functions;
	struct str word = {s->search, s->search_n};
	size_t found = 0, put = 0, room = page->rows ? page->rows - HEAD_LINES : s->limit;
	struct buf name = BUF_NULL;

	for (size_t i = 0; i < top->n && put < room; i++) {
		buf_clear(&name);
		put_name(&name, &top->entries[i]);
		if (name.failed || !holds(buf_str(&name), word) || found++ < s->first)
			continue;
		put_row(page, &top->entries[i], buf_str(&name));
		put++;
	}
	page->out.failed |= name.failed;
	buf_free(&name);
}

static void measure(struct page *page)
{
	struct winsize size = {0};

	if (!page->s->terminal)
		return;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_row || !size.ws_col)
		size = (struct winsize){.ws_row = 24, .ws_col = 80};
	page->rows = size.ws_row > HEAD_LINES ? size.ws_row - 1u : HEAD_LINES;
	page->columns = size.ws_col > FIGURE_COLUMNS ? size.ws_col : FIGURE_COLUMNS + 1u;
}

int screen_draw(const struct screen *s, struct live_view *v)
{
	struct page page = {.s = s, .v = v, .end = s->terminal ? "\033[K\r\n" : "\n"};
	int r = -ENOMEM;

	measure(&page);
	if (s->by_total || s->programs)
		top_sort_by_total(s->programs ? &v->programs : &v->functions);
	else
		top_sort_by_self(&v->functions);
	if (s->terminal)
		buf_str_append(&page.out, STR("\033[H"));
	put_head(&page);
	put_rows(&page);
	buf_str_append(&page.out, s->terminal ? STR("\033[J") : STR("\n"));
	if (!page.out.failed)
		r = file_write_fd(STDOUT_FILENO, page.out.p, page.out.n) < 0 ? -EIO : 0;
	buf_free(&page.out);
	return r;
}
