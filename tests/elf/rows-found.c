/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are found one by one (row-finder.h) against those that are read (rows.h): at both ends
 * of each row that comes of call-frame information the finder has the same words, or none.
 * `functions` counts those that it has, `rows` all. */
#include "rows.h"

#include "base/file.h"
#include "unwind/row-finder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

struct finding {
	struct elf_row_finder *finder;
	struct verdict *v;
	struct elf_row before;
};

static void compare(struct finding *f, uint64_t address)
{
	struct elf_row found;

	f->v->rows++;
	if (elf_row_finder_find(f->finder, address, &found) != 1)
		return;
	f->v->functions++;
	if ((found.rule != f->before.rule || found.aux != f->before.aux) && verdict_differs(f->v))
		printf("# %#" PRIx64 ": %#" PRIx64 " %#" PRIx64 " found, %#" PRIx64 " %#" PRIx64
		       " read\n",
		       address, found.rule, found.aux, f->before.rule, f->before.aux);
}

static int on_row(void *context, const struct elf_row *row)
{
	struct finding *f = context;

	if (f->before.rule != 0) {
		compare(f, f->before.address);
		compare(f, row->address - 1);
	}
	f->before = *row;
	return 0;
}

int judge_found(struct elf_file *f, struct verdict *v)
{
	struct elf_rows_options options = {.aux = true};
	struct elf_rows_stats stats;
	struct finding finding = {.v = v};
	int r = elf_row_finder_open(&finding.finder, fcntl(f->fd, F_DUPFD_CLOEXEC, 0));

	if (r < 0)
		return r == -ENOENT || r == -ENOEXEC ? 0 : r;
	r = elf_rows_read(f, &options, on_row, &finding, &stats, NULL);
	elf_row_finder_close(finding.finder);
	return r;
}
