/* SPDX-License-Identifier: Apache-2.0 */
/* See cpu-usage.h. Format: proc(5), /proc/stat: user nice system idle iowait irq softirq steal
 * guest guest_nice; guest time is part of user time already. */
#include "cli/record/cpu-usage.h"

#include "cli/doctor/probe.h"

enum { IDLE = 3, IOWAIT = 4, GUEST = 8 };

bool machine_parse(struct str text, struct machine_time *ret)
{
	struct str line = str_first(text, str_find(text, '\n'));
	struct machine_time t = {0, 0};
	int n = 0;

	if (!str_starts(line, STR("cpu ")))
		return false;
	line = str_trim(str_skip(line, 4));
	while (line.n > 0 && n < GUEST) {
		uint64_t ticks;

		if (!str_u64(str_cut(&line, ' '), &ticks))
			return false;
		t.total += ticks;
		t.busy += n == IDLE || n == IOWAIT ? 0 : ticks;
		n++;
	}
	if (n <= IDLE)
		return false;
	*ret = t;
	return true;
}

struct machine_time machine_time(void)
{
	struct probe_text head = probe_file("/proc/stat");
	struct machine_time t = {0, 0};

	machine_parse(str_of(head.text), &t);
	return t;
}

double machine_busy(const struct machine_time *from, const struct machine_time *to)
{
	if (to->total <= from->total || to->busy < from->busy)
		return 0;
	return 100.0 * (double)(to->busy - from->busy) / (double)(to->total - from->total);
}
