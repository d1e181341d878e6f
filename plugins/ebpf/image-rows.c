/* SPDX-License-Identifier: Apache-2.0 */
/* See image-rows.h. */
#include "image-rows.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "proc/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

/* It is some pages long; the kernel says only where it begins. */
#define VDSO_MAX 65536u

/* The end of the mapping of ours that begins at `start`; 0 if that cannot be told. */
static uint64_t mapping_end(uint64_t start)
{
	unsigned long long from, to;
	char line[512];
	uint64_t end = 0;
	FILE *f = fopen("/proc/self/maps", "re");

	if (!f)
		return 0;
	while (end == 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx-%llx", &from, &to) == 2 && from == start)
			end = to;
	fclose(f);
	return end;
}

static int open_vdso(void)
{
	uint64_t start = getauxval(AT_SYSINFO_EHDR), end = start ? mapping_end(start) : 0;
	_cleanup_(closep) int fd = -1;
	ssize_t n;

	if (end <= start || end - start > VDSO_MAX)
		return -ENOENT;
	fd = memfd_create("andiron-vdso", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* An address of the kernel's as a pointer: there is no other way to it. */
	n = write(fd, (const void *)(uintptr_t)start, end - start); /* NOLINT */
	if (n != (ssize_t)(end - start))
		return n < 0 ? -errno : -EIO;
	return take_fd(fd);
}

static int open_image(const struct andiron_extension *objects, const struct image *image)
{
	const struct andiron_objects *service = objects->table;
	int32_t fd = -1;
	int r;

	if (!image)
		return open_vdso();
	r = service->open(objects->self, image_object(image), ANDIRON_OPEN_FILE, &fd);
	return r < 0 ? r : fd;
}

int image_rows_read(void *objects, const struct image *image, elf_row_fn fn, void *fn_context,
		    struct error *err)
{
	struct elf_rows_options options = {0};
	struct elf_file file = ELF_FILE_NULL;
	struct elf_rows_stats stats;
	_cleanup_(closep) int fd = open_image(objects, image);
	int r;

	if (fd < 0)
		return error_errno(err, fd, "cannot open the file");
	r = elf_file_open(&file, fd, err);
	if (r == 0)
		r = elf_rows_read(&file, &options, fn, fn_context, &stats, err);
	elf_file_close(&file);
	return r;
}
