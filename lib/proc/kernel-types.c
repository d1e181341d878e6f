/* SPDX-License-Identifier: Apache-2.0 */
/* See kernel-types.h. */
#include "proc/kernel-types.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
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

int kernel_types_read(struct kernel_types *ret)
{
	_cleanup_(closep) int fd = open(TYPES, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct kernel_types t = {.copy = BUF_NULL};
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) != 0)
		return -errno;
	t.map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (t.map != MAP_FAILED) {
		t.text = (struct str){t.map, (size_t)st.st_size};
		*ret = t;
		return 0;
	}
	t.map = NULL;
	r = file_read_fd(fd, &t.copy, TYPES_MAX);
	if (r != 0) {
		buf_free(&t.copy);
		return r;
	}
	t.text = buf_str(&t.copy);
	*ret = t;
	return 0;
}

void kernel_types_fini(struct kernel_types *t)
{
	if (t->map)
		munmap(t->map, t->text.n);
	buf_free(&t->copy);
	*t = (struct kernel_types){.copy = BUF_NULL};
}

bool kernel_types_name(const char *name)
{
	struct kernel_types types;
	bool has;

	if (kernel_types_read(&types) != 0)
		return false;
	has = kernel_types_text_names(types.text, name);
	kernel_types_fini(&types);
	return has;
}
