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

void shown_text(struct buf *out, struct str s, size_t width)
{
	bool utf8 = str_utf8(s);
	size_t shown = 0;

	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		bool c1 = utf8 && c == 0xc2 && (unsigned char)s.p[i + 1] < 0xa0;

		if ((c & 0xc0) != 0x80 || !utf8)
			shown++;
		if (width && shown >= width && i + 1 < s.n && (c & 0xc0) != 0x80) {
			buf_str_append(out, STR("…"));
			return;
		}
		if (c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8))
			buf_printf(out, "\\x%02x", c);
		else if (c1)
			buf_printf(out, "\\x%02x", (unsigned char)s.p[++i]);
		else
			buf_putc(out, (char)c);
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
