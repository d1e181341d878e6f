/* SPDX-License-Identifier: Apache-2.0 */
/* See row-finder.h. */
#include "unwind/row-finder.h"

#include "base/check.h"
#include "cfi/fde-index.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct elf_row_finder {
	int fd;
	struct elf_file file;
	const struct rows_machine *machine;
	struct cfi_section section;
	struct rows_hdr hdr;
	struct cfi_run run;
};

static int open_frames(struct elf_row_finder *f)
{
	int r = elf_file_open(&f->file, f->fd, NULL);

	if (r == 0)
		r = elf_file_load_sections(&f->file, NULL);
	if (r < 0)
		return r;
	f->machine = rows_machine_of(f->file.machine);
	if (!f->machine || f->file.type == ET_REL)
		return -ENOENT;
	r = rows_frames_open(&f->section, &f->file, &f->hdr);
	if (r == 0 && f->hdr.n == 0)
		r = -ENOENT;
	return r;
}

int elf_row_finder_open(struct elf_row_finder **ret, int fd)
{
	struct elf_row_finder *f = calloc(1, sizeof(*f));
	int r;

	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	f->fd = fd;
	f->file = ELF_FILE_NULL;
	f->section = CFI_SECTION_NULL;
	r = open_frames(f);
	if (r == 0)
		*ret = f;
	else
		elf_row_finder_close(f);
	return r;
}

void elf_row_finder_close(struct elf_row_finder *f)
{
	if (!f)
		return;
	cfi_section_close(&f->section);
	elf_file_close(&f->file);
	close(f->fd);
	free(f);
}

/* The row of the function's that holds there: 1, or 0. */
static int find_in(struct elf_row_finder *f, const struct cfi_fde *fde, uint64_t address,
		   struct elf_row *ret)
{
	struct rows_words words;

	check(f->machine && fde->start <= address && address < fde->end);
	cfi_run_begin(&f->run, fde);
	while (cfi_run_next(&f->run) == 1) {
		if (address < f->run.start || address >= f->run.end)
			continue;
		words = rows_reduce(f->machine, &f->run.row, true);
		*ret = (struct elf_row){address, words.rule, words.aux};
		return words.rule != 0;
	}
	return 0;
}

int elf_row_finder_find(struct elf_row_finder *f, uint64_t address, struct elf_row *ret)
{
	struct cfi_fde fde = {0};
	uint64_t start, record;

	if (rows_hdr_find(&f->hdr, address, &start, &record) != 1)
		return 0;
	fde.next = record - f->section.address;
	if (cfi_section_next(&f->section, &fde) != 1 || fde.start != start || address >= fde.end)
		return 0;
	if (fde.cie->signal || fde.cie->ra != f->machine->ra)
		return 0;
	return find_in(f, &fde, address, ret);
}
