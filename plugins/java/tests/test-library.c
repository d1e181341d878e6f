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

static const char names[] = "\0Agent_OnAttach\0asprof_execute";

/* What is taken for the library. */
static void fill(char bytes[sizeof(Elf64_Ehdr) + sizeof(names)])
{
	Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
			   .e_machine = EM_X86_64};

	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + sizeof(head), names, sizeof(names));
}

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
	struct error err;
	char path[64], bytes[sizeof(Elf64_Ehdr) + sizeof(names)];

	check(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/lib", folder);
	expect_eq(mkdir(path, 0755), 0);
	fill(bytes);
	expect_eq(load(bytes, sizeof(bytes), 0644, &err), 0);
	expect_eq(load(bytes, sizeof(bytes), 0664, &err), -EPERM);
	expect(strstr(err.text, "chmod go-w") && strstr(err.text, folder));
	expect_eq(load(bytes, sizeof(Elf64_Ehdr), 0644, &err), -EINVAL);
	expect_eq(load("", 0, 0644, &err), -EINVAL);
	expect_eq(load("garbage", 7, 0644, &err), -EINVAL);
	expect_eq(rmdir(path), 0);
	expect_eq(rmdir(folder), 0);
}

/* In a folder that others can change they could put another file in its place, unless the sticky
 * bit keeps them from it. */
TEST(the_folders_above_count)
{
	struct error err;
	char path[64], bytes[sizeof(Elf64_Ehdr) + sizeof(names)];

	check(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/lib", folder);
	expect_eq(mkdir(path, 0755), 0);
	fill(bytes);
	expect_eq(chmod(path, 0777), 0);
	expect_eq(load(bytes, sizeof(bytes), 0644, &err), -EPERM);
	expect(strstr(err.text, "the folders above it") && strstr(err.text, path));
	expect(!strstr(err.text, LIBRARY_NAME));
	expect_eq(chmod(path, 0775), 0);
	expect_eq(load(bytes, sizeof(bytes), 0644, &err), -EPERM);
	expect_eq(chmod(path, 01777), 0);
	expect_eq(load(bytes, sizeof(bytes), 0644, &err), 0);
	expect_eq(chmod(folder, 0777), 0);
	expect_eq(load(bytes, sizeof(bytes), 0644, &err), -EPERM);
	expect_eq(chmod(folder, 0755), 0);
	if (geteuid() == 0) {
		expect_eq(chown(folder, 1234, 1234), 0);
		expect_eq(load(bytes, sizeof(bytes), 0644, &err), -EPERM);
		expect_eq(chown(folder, 0, 0), 0);
	}
	expect_eq(rmdir(path), 0);
	expect_eq(rmdir(folder), 0);
}

/* A JVM gets the path without links, which others might change later. */
TEST(links_are_followed_once)
{
	struct library l;
	struct error err = ERROR_NULL;
	char path[64], link[64], bytes[sizeof(Elf64_Ehdr) + sizeof(names)];
	int fd;

	check(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/library", folder);
	snprintf(link, sizeof(link), "%s/link", folder);
	fill(bytes);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	expect_eq(file_write_fd(fd, bytes, sizeof(bytes)), 0);
	close(fd);
	expect_eq(symlink("library", link), 0);
	expect_eq(library_load(&l, str_of(link), &err), 0);
	expect_str(str_of(l.path), path);
	library_free(&l);
	unlink(link);
	unlink(path);
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
