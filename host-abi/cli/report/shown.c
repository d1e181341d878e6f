/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in shown.h. */
#include "cli/report/shown.h"

#include <inttypes.h>
#include <stdio.h>

void shown_amount(char *text, size_t n, int64_t value, struct str unit)
{
	static const char *const sizes[] = {"B", "kB", "MB", "GB", "TB", "PB"};
	double v = (double)value;
	size_t i = 0;

	if (str_is(unit, "nanoseconds") && (v >= 1e9 || v <= -1e9)) {
		snprintf(text, n, "%.2f s", v / 1e9);
	} else if (str_is(unit, "nanoseconds")) {
		snprintf(text, n, "%.1f ms", v / 1e6);
	} else if (str_is(unit, "bytes")) {
		for (; i < 5 && (v >= 1000 || v <= -1000); i++)
			v /= 1000;
		snprintf(text, n, i ? "%.1f %s" : "%.0f %s", v, sizes[i]);
	} else {
		snprintf(text, n, "%" PRId64, value);
	}
}

/* How many bytes at the begin of `s` are a mark that turns the direction of text, by which one name
 * looks like another: U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069. */
static size_t turns_text(struct str s)
{
	const unsigned char *p = (const unsigned char *)s.p;

	if (s.n >= 2 && p[0] == 0xd8 && p[1] == 0x9c)
		return 2;
	if (s.n < 3 || p[0] != 0xe2)
		return 0;
	if (p[1] == 0x80)
		return p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xaa && p[2] <= 0xae) ? 3 : 0;
	return p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9 ? 3 : 0;
}

/* How many bytes at the begin of `s`, which is not empty, are not to reach a terminal. */
static size_t steers(struct str s, bool utf8)
{
	unsigned char c = (unsigned char)s.p[0];

	if (c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8))
		return 1;
	if (c == 0xc2 && (unsigned char)s.p[1] < 0xa0)
		return 2;
	return turns_text(s);
}

void shown_text(struct buf *out, struct str s, size_t width)
{
	bool utf8 = str_utf8(s);
	size_t shown = 0;

	while (s.n) {
		bool begins = ((unsigned char)*s.p & 0xc0) != 0x80 || !utf8;
		size_t n = steers(s, utf8);

		shown += begins;
		if (width && shown >= width && s.n > 1 && begins) {
			buf_str_append(out, STR("…"));
			return;
		}
		if (!n)
			buf_putc(out, *s.p);
		for (size_t i = 0; i < n; i++)
			buf_printf(out, "\\x%02x", (unsigned char)s.p[i]);
		s = str_skip(s, n ? n : 1);
	}
}

void shown_cores(struct buf *out, int64_t cpu_ns, int64_t duration_ns)
{
	char cpu[32], duration[32];

	shown_amount(cpu, sizeof(cpu), cpu_ns, STR("nanoseconds"));
	buf_printf(out, "%s of CPU", cpu);
	if (duration_ns <= 1)
		return;
	shown_amount(duration, sizeof(duration), duration_ns, STR("nanoseconds"));
	buf_printf(out, " in %s: %.2f cores", duration, (double)cpu_ns / (double)duration_ns);
}
