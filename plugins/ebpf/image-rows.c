/* SPDX-License-Identifier: Apache-2.0 */
/* See image-rows.h. */
#include "image-rows.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "elf/debuglink.h"
#include "proc/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

/* It is some pages long; the kernel says only where it begins. */
#define VDSO_MAX 65536u

#define CRC_MAX (UINT64_C(1) << 30) /* of a debug file whose CRC is computed */

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

/* The file's debug file, by its build id or else by its link; negative where it has none. */
static int open_debug(const struct andiron_extension *objects, const struct image *image,
		      const struct elf_debuglinks *links)
{
	const struct andiron_objects *service = objects->table;
	struct andiron_str name = {links->name, strlen(links->name)};
	int32_t fd = -1;

	if (!image)
		return -ENOENT;
	if (service->open(objects->self, image_object(image), ANDIRON_OPEN_DEBUG, &fd) == 0)
		return fd;
	if (name.len == 0 || service->size < offsetof(struct andiron_objects, open_named) + sizeof(service->open_named) ||
	    service->open_named(objects->self, image_object(image), ANDIRON_OPEN_DEBUG_LINK, &name, &fd) != 0)
		return -ENOENT;
	return fd;
}

/* Whether there is something in it for rows. Asked first, because a CRC is of the whole file. */
static bool helps(const struct elf_file *debug)
{
	const Elf64_Shdr *frames = elf_file_section(debug, ".debug_frame");

	return (frames && frames->sh_type != SHT_NOBITS) || elf_file_section_of_type(debug, SHT_SYMTAB);
}

/* Rows with the help of the debug file in `fd`, if it is the file's and opens. */
static int read_with(struct elf_file *file, const struct elf_debuglinks *links, int fd, elf_row_fn fn,
		     void *fn_context, struct error *err)
{
	struct elf_rows_options options = {0};
	struct elf_file debug = ELF_FILE_NULL;
	struct elf_rows_stats stats;
	int r = fd < 0 ? -ENOENT : elf_file_open(&debug, fd, NULL);

	if (r == 0)
		r = elf_file_load_sections(&debug, NULL);
	if (r == 0 && helps(&debug))
		r = elf_debuglink_belongs(file, links, fd, CRC_MAX);
	if (r == 1)
		options.debug = &debug;
	if (r != -ENOMEM)
		r = elf_rows_read(file, &options, fn, fn_context, &stats, err);
	elf_file_close(&debug);
	return r;
}

int image_rows_read(void *objects, const struct image *image, elf_row_fn fn, void *fn_context,
		    struct error *err)
{
	struct elf_file file = ELF_FILE_NULL;
	struct elf_debuglinks links;
	_cleanup_(closep) int fd = open_image(objects, image), debug = -1;
	int r;

	if (fd < 0)
		return error_errno(err, fd, "cannot open the file");
	r = elf_file_open(&file, fd, err);
	if (r == 0)
		r = elf_debuglinks_read(&file, &links);
	if (r == 0) {
		debug = open_debug(objects, image, &links);
		r = read_with(&file, &links, debug, fn, fn_context, err);
	}
	elf_file_close(&file);
	return r;
}
