/* SPDX-License-Identifier: Apache-2.0 */
/* See kernel-types.h. */
#include "proc/kernel-types.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <fcntl.h>
#include <linux/btf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TYPES     "/sys/kernel/btf/vmlinux"
#define TYPES_MAX ((size_t)64 << 20)

/* The section of strings; STR_NULL where there is none. */
static struct str strings_of(struct str btf)
{
	struct btf_header head;
	uint64_t start;

	if (btf.n < sizeof(head))
		return STR_NULL;
	memcpy(&head, btf.p, sizeof(head));
	start = (uint64_t)head.hdr_len + head.str_off;
	if (head.magic != BTF_MAGIC || start > btf.n)
		return STR_NULL;
	return str_first(str_skip(btf, start), head.str_len);
}

bool kernel_types_text_names(struct str btf, const char *name)
{
	struct str rest = strings_of(btf);
	size_t n = strlen(name);
	const char *at;

	/* The first string is the empty one, so each has a NUL before it. */
	while (n > 0 && rest.n > n + 1 && (at = memmem(rest.p + 1, rest.n - 1, name, n + 1))) {
		if (at[-1] == '\0')
			return true;
		rest = str_skip(rest, (size_t)(at - rest.p) + n);
	}
	return false;
}

bool kernel_types_name(const char *name)
{
	_cleanup_(closep) int fd = open(TYPES, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	_cleanup_(buf_free) struct buf types = BUF_NULL;
	struct stat st;
	void *map;
	bool has;

	if (fd < 0 || fstat(fd, &st) != 0)
		return false;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return file_read_fd(fd, &types, TYPES_MAX) == 0 &&
		       kernel_types_text_names(buf_str(&types), name);
	has = kernel_types_text_names((struct str){map, (size_t)st.st_size}, name);
	munmap(map, (size_t)st.st_size);
	return has;
}
