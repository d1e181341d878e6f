/* SPDX-License-Identifier: Apache-2.0 */
/* go-table FILE: each function of Go's table, one a line: entry, end, flags, name; and below it,
 * each row of the stack pointer ("sp START END VALUE") and of the lines ("ln START END LINE FILE"),
 * addresses in hex. */
#include "base/cleanup.h"
#include "gosym/pclntab.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

static int print_stack(struct pclntab *t, const struct pclntab_function *f)
{
	struct pclntab_rows rows = pclntab_rows(f, f->pcsp);
	int r;

	while ((r = pclntab_next(t, &rows)) == 1)
		printf("sp %" PRIx64 " %" PRIx64 " %d\n", rows.row.start, rows.row.end,
		       rows.row.value);
	return r;
}

static int print_lines(struct pclntab *t, const struct pclntab_function *f)
{
	struct pclntab_rows rows = pclntab_rows(f, f->pcln);
	_cleanup_(buf_free) struct buf name = BUF_NULL;
	int r;

	while ((r = pclntab_next(t, &rows)) == 1) {
		int32_t file;

		buf_clear(&name);
		r = pclntab_value(t, f, f->pcfile, rows.row.start, &file);
		if (r == 0)
			r = pclntab_file(t, f, file, &name);
		if (r < 0 && r != -ENOENT)
			return r;
		printf("ln %" PRIx64 " %" PRIx64 " %d %.*s\n", rows.row.start, rows.row.end,
		       rows.row.value, STR_FMT(buf_str(&name)));
	}
	return r;
}

static int print_function(struct pclntab *t, size_t i, struct buf *name)
{
	struct pclntab_function f;
	int r = pclntab_function(t, i, &f);

	buf_clear(name);
	if (r == 0)
		r = pclntab_name(t, f.name, name);
	if (r < 0)
		return r;
	printf("fn %" PRIx64 " %" PRIx64 " %u %.*s\n", f.entry, f.end, f.flags,
	       STR_FMT(buf_str(name)));
	r = print_stack(t, &f);
	return r < 0 ? r : print_lines(t, &f);
}

int main(int argc, char **argv)
{
	_cleanup_(closep) int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	_cleanup_(buf_free) struct buf name = BUF_NULL;
	struct pclntab t = PCLNTAB_NULL;
	struct elf_file f = ELF_FILE_NULL;
	struct error err = ERROR_NULL;
	int r;

	if (fd < 0) {
		fputs("usage: go-table FILE\n", stderr);
		return 2;
	}
	r = elf_file_open(&f, fd, &err);
	if (r == 0)
		r = pclntab_open(&t, &f, &err);
	for (size_t i = 0; r == 0 && i < t.n_functions; i++)
		r = print_function(&t, i, &name);
	if (r < 0)
		fprintf(stderr, "%s: %s (error %d)\n", argv[1], err.text, -r);
	pclntab_close(&t);
	elf_file_close(&f);
	return r < 0;
}
