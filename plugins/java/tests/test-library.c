/* SPDX-License-Identifier: Apache-2.0 */
/* Which file is taken for async-profiler's library. */
#include "java/attach/library.h"

#include "base/check.h"
#include "base/file.h"
#include "testing/test.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/test-library-XXXXXX";

/* Writes what the folder's lib/libasyncProfiler.so holds, and loads it by the folder. */
static int load(const void *bytes, size_t n, mode_t mode, struct error *err)
{
	struct library l = {.bytes = BUF_NULL};
	char path[64];
	int fd, r;

	snprintf(path, sizeof(path), "%s/lib/" LIBRARY_NAME, folder);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	expect_eq(file_write_fd(fd, bytes, n), 0);
	expect_eq(fchmod(fd, mode), 0);
	close(fd);
	*err = ERROR_NULL;
	r = library_load(&l, str_of(folder), err);
	if (r == 0) {
		expect_eq(l.machine, EM_X86_64);
		expect_str(str_of(l.path), path);
		library_free(&l);
	}
	unlink(path);
	return r;
}

/* One that others can write, another library, and what is none are refused, with the path. */
TEST(only_the_library_is_taken)
{
	static const char names[] = "\0Agent_OnAttach\0asprof_execute";
	struct error err;
	char path[64], bytes[sizeof(Elf64_Ehdr) + sizeof(names)] = "";
	Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
			   .e_machine = EM_X86_64};

	check(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/lib", folder);
	expect_eq(mkdir(path, 0755), 0);
	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + sizeof(head), names, sizeof(names));
	expect_eq(load(bytes, sizeof(bytes), 0644, &err), 0);
	expect_eq(load(bytes, sizeof(bytes), 0664, &err), -EPERM);
	expect(strstr(err.text, "chmod go-w") && strstr(err.text, folder));
	expect_eq(load(bytes, sizeof(head), 0644, &err), -EINVAL);
	expect_eq(load("", 0, 0644, &err), -EINVAL);
	expect_eq(load("garbage", 7, 0644, &err), -EINVAL);
	expect_eq(rmdir(path), 0);
	expect_eq(rmdir(folder), 0);
}

/* Where there is none the text says what to do. */
TEST(an_absent_one_is_explained)
{
	struct library l;
	struct error err = ERROR_NULL;

	expect_eq(library_load(&l, STR("/absent"), &err), -ENOENT);
	expect(strstr(err.text, "/absent") && strstr(err.text, "dist"));
	expect_eq(library_load(&l, STR("/dev/null"), &err), -EINVAL);
}
