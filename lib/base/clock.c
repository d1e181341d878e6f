/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, and durations in Go's notation. Contracts in clock.h. */
#include "base/clock.h"

#include <stdio.h>

int64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

static const struct unit {
	struct str name;
	int64_t ns;
} units[] = {
	{{"ns", 2}, 1},
	{{"us", 2}, 1000},
	{{"µs", 3}, 1000},
	{{"ms", 2}, NS_PER_MSEC},
	{{"s", 1}, NS_PER_SEC},
	{{"m", 1}, 60 * NS_PER_SEC},
	{{"h", 1}, 3600 * NS_PER_SEC},
};

static const struct unit *unit_at(struct str s)
{
	/* Longest first where one name begins another: "ms" before "m". */
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (str_starts(s, units[i].name))
			return &units[i];
	return NULL;
}

static size_t count_digits(struct str s)
{
	size_t n = 0;

	while (n < s.n && s.p[n] >= '0' && s.p[n] <= '9')
		n++;
	return n;
}

/* One "1.5h" off the front of *s, added to *total. */
static bool take_part(struct str *s, int64_t *total)
{
	size_t whole = count_digits(*s), fraction = 0;
	uint64_t value = 0;
	const struct unit *unit;
	int64_t part, scale;

	if (whole && !str_u64(str_first(*s, whole), &value))
		return false;
	struct str digits = str_skip(*s, whole);
	if (digits.n && digits.p[0] == '.') {
		digits = str_skip(digits, 1);
		fraction = count_digits(digits);
	}
	unit = unit_at(str_skip(digits, fraction));
	if (!unit || whole + fraction == 0 || value > INT64_MAX ||
	    __builtin_mul_overflow((int64_t)value, unit->ns, &part))
		return false;
	scale = unit->ns;
	for (size_t i = 0; i < fraction && scale; i++) {
		scale /= 10;
		part += (digits.p[i] - '0') * scale;
	}
	*s = str_skip(digits, fraction + unit->name.n);
	return !__builtin_add_overflow(*total, part, total);
}

bool duration_parse(struct str s, int64_t *ret_ns)
{
	bool negative = s.n && s.p[0] == '-';
	int64_t total = 0;

	if (s.n && (s.p[0] == '-' || s.p[0] == '+'))
		s = str_skip(s, 1);
	if (s.n == 0)
		return false;
	if (str_is(s, "0"))
		s = STR_NULL;
	while (s.n)
		if (!take_part(&s, &total))
			return false;
	*ret_ns = negative ? -total : total;
	return true;
}

char *duration_format(int64_t ns, char *out, size_t n)
{
	int64_t s = ns / NS_PER_SEC;

	if (ns % NS_PER_SEC && ns < NS_PER_SEC)
		snprintf(out, n, "%gms", (double)ns / 1e6);
	else if (ns % NS_PER_SEC)
		snprintf(out, n, "%gs", (double)ns / 1e9);
	else if (s % 3600 == 0 && s)
		snprintf(out, n, "%lldh", (long long)(s / 3600));
	else if (s % 60 == 0 && s)
		snprintf(out, n, "%lldm", (long long)(s / 60));
	else if (s > 60)
		snprintf(out, n, "%lldm%llds", (long long)(s / 60), (long long)(s % 60));
	else
		snprintf(out, n, "%llds", (long long)s);
	return out;
}
