/* SPDX-License-Identifier: Apache-2.0 */
/* go-frames FILE: as frames (frames.c), out of Go's own table alone: what a stripped program still
 * says. */
#include "symbolize/parser/go-frames.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

static void print(const struct dwarf_frames *f)
{
	vec_each (&f->list, frame)
		printf("%.*s %.*s:%u:0\n", STR_FMT(dwarf_frame_text(f, frame->function)),
		       STR_FMT(dwarf_frame_text(f, frame->file)), frame->line);
}

int main(int argc, char **argv)
{
	_cleanup_(closep) int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	struct elf_file f = ELF_FILE_NULL;
	struct dwarf_frames frames = {0};
	struct error err = ERROR_NULL;
	struct pclntab t = PCLNTAB_NULL;
	uint64_t address;
	int r = fd < 0 ? -1 : elf_file_open(&f, fd, &err);

	if (r == 0)
		r = pclntab_open(&t, &f, &err);
	if (r < 0) {
		fprintf(stderr, "go-frames: %s (error %d)\n", err.text, -r);
		return 1;
	}
	while (scanf("%" SCNx64, &address) == 1) {
		if (go_frames(&t, address, true, &frames) == 0)
			print(&frames);
		else
			puts("? ?:0:0");
		puts("");
	}
	dwarf_frames_free(&frames);
	pclntab_close(&t);
	elf_file_close(&f);
	return 0;
}
