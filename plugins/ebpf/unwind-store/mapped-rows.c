/* SPDX-License-Identifier: Apache-2.0 */
/* See mapped-rows.h. */
#include "ebpf/unwind-store/mapped-rows.h"

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

/* The end of the mapping of ours that begins at `start`; 0 if that is unknown. */
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

int mapped_rows_open(const struct andiron_extension *objects, const struct mapped_file *file)
{
	const struct andiron_objects *service = objects->table;
	int32_t fd = -1;
	int r;

	if (!file)
		return open_vdso();
	r = service->open(objects->self, mapped_file_object(file), ANDIRON_OPEN_FILE, &fd);
	return r < 0 ? r : fd;
}

/* The file's debug file, by its build id or else by its link; negative where it has none. */
static int open_debug(const struct andiron_extension *objects, const struct mapped_file *file,
		      const struct elf_debuglinks *links)
{
	const struct andiron_objects *service = objects->table;
	struct andiron_str name = {links->name, strlen(links->name)};
	int32_t fd = -1;

	if (!file)
		return -ENOENT;
	if (service->open(objects->self, mapped_file_object(file), ANDIRON_OPEN_DEBUG, &fd) == 0)
		return fd;
	if (name.len == 0 || !ANDIRON_HAS(service, andiron_objects, open_named) ||
	    service->open_named(objects->self, mapped_file_object(file), ANDIRON_OPEN_DEBUG_LINK,
				&name, &fd) != 0)
		return -ENOENT;
	return fd;
}

/* Whether there is something in it for rows. Asked first, because a CRC is of the whole file. */
static bool helps(const struct elf_file *debug)
{
	const Elf64_Shdr *frames = elf_file_section(debug, ".debug_frame");

	return (frames && frames->sh_type != SHT_NOBITS) ||
	       elf_file_section_of_type(debug, SHT_SYMTAB);
}

/* A file and, where it has one that helps, its debug file. */
struct opened {
	int fds[2];
	struct elf_file file, debug;
	bool helped;
};

/* -ENOMEM is the one failure: without its debug file there is still the file. */
static int open_companion(struct opened *o, const struct andiron_extension *objects,
			  const struct mapped_file *file)
{
	struct elf_debuglinks links;
	int r = elf_debuglinks_read(&o->file, &links);

	if (r == 0)
		o->fds[1] = r = open_debug(objects, file, &links);
	if (r >= 0)
		r = elf_file_open(&o->debug, o->fds[1], NULL);
	if (r == 0)
		r = elf_file_load_sections(&o->debug, NULL);
	if (r == 0 && helps(&o->debug))
		r = elf_debuglink_belongs(&o->file, &links, o->fds[1], CRC_MAX);
	o->helped = r == 1;
	return r == -ENOMEM ? r : 0;
}

int mapped_rows_read(void *objects, const struct mapped_file *file,
		     const struct elf_rows_options *options, elf_row_fn fn, void *fn_context,
		     struct error *err)
{
	struct opened o = {
		{mapped_rows_open(objects, file), -1}, ELF_FILE_NULL, ELF_FILE_NULL, false};
	struct elf_rows_options with = *options;
	struct elf_rows_stats stats;
	int r;

	if (o.fds[0] < 0)
		return error_errno(err, o.fds[0], "cannot open the file");
	r = elf_file_open(&o.file, o.fds[0], err);
	if (r == 0)
		r = open_companion(&o, objects, file);
	with.debug = o.helped ? &o.debug : NULL;
	if (r == 0)
		r = elf_rows_read(&o.file, &with, fn, fn_context, &stats, err);
	elf_file_close(&o.debug);
	elf_file_close(&o.file);
	closep(&o.fds[0]);
	closep(&o.fds[1]);
	return r;
}
