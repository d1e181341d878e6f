/* SPDX-License-Identifier: Apache-2.0 */
/* Directories for the spools of tests. Contract in test-directory.h. */
#include "pyroscope-push/tests/test-directory.h"

#include "testing/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void test_directory_make(char *path, size_t n)
{
	snprintf(path, n, "%s/andiron-push-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	expect(mkdtemp(path));
}

void test_directory_clear(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
}
