/* SPDX-License-Identifier: Apache-2.0 */
/* The vDSO as a file. Contract in vdso.h. */
#include "symbolize/parser/vdso.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <elf.h>
#include <errno.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#define VDSO_MAX 65536u

/* Its size is not told; its section headers come last. They are the kernel's, so trusted. */
static size_t size_of(const Elf64_Ehdr *h)
{
	return (size_t)h->e_shoff + (size_t)h->e_shnum * h->e_shentsize;
}

int vdso_open(int *ret_fd)
{
	const Elf64_Ehdr *h = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
	_cleanup_(closep) int fd = -1;
	int r;

	if (!h)
		return -ENOENT;
	if (size_of(h) > VDSO_MAX)
		return -ENOEXEC;
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = file_write_fd(fd, h, size_of(h));
	if (r == 0)
		*ret_fd = take_fd(fd);
	return r;
}
