/* SPDX-License-Identifier: Apache-2.0 */
/* See online-cpus.h. */
#include "ebpf/kernel/online-cpus.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>

#define CPU_MAX 65536

static int each_in_range(struct str range, int (*fn)(void *context, int cpu), void *context)
{
	struct str rest = range, first = str_cut(&rest, '-');
	uint64_t from, to;
	int r = 0;

	if (!str_u64(first, &from))
		return -EINVAL;
	to = from;
	if (first.n < range.n && !str_u64(rest, &to))
		return -EINVAL;
	if (to < from || to >= CPU_MAX)
		return -EINVAL;
	for (uint64_t cpu = from; cpu <= to && r == 0; cpu++)
		r = fn(context, (int)cpu);
	return r;
}

int cpu_list_each(const char *list, int (*fn)(void *context, int cpu), void *context)
{
	struct str rest = str_trim(str_of(list));
	int r = rest.n ? 0 : -EINVAL;

	while (rest.n && r == 0)
		r = each_in_range(str_cut(&rest, ','), fn, context);
	return r;
}

static int note_highest(void *context, int cpu)
{
	uint32_t *n = context;

	if ((uint32_t)cpu >= *n)
		*n = (uint32_t)cpu + 1;
	return 0;
}

static int read_online(struct buf *ret)
{
	int r = file_read(AT_FDCWD, "/sys/devices/system/cpu/online", ret, 65536);

	return r == 0 ? buf_putc(ret, '\0') : r;
}

int online_cpus_each(int (*fn)(void *context, int cpu), void *context)
{
	struct buf text = BUF_NULL;
	int r = read_online(&text);

	if (r == 0)
		r = cpu_list_each(text.p, fn, context);
	buf_free(&text);
	return r;
}

uint32_t online_cpus_end(void)
{
	uint32_t n = 1;

	online_cpus_each(note_highest, &n);
	return n;
}
