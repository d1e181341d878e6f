/* SPDX-License-Identifier: Apache-2.0 */
/* See comma-locale.h. The file's layout is glibc's (locale/localeinfo.h): a magic number, the count
 * of items, an offset for each. The decimal point is the first item, as a text, and the fourth, as
 * a wide character. */
#include "testing/comma-locale.h"

#include "base/buf.h"
#include "base/file.h"
#include "testing/test.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOURCE   "/usr/lib/locale/C.utf8/LC_NUMERIC"
#define NAME     "comma"
#define N_ITEMS  6
#define TEXT     0
#define WIDE     3
#define MAX_FILE ((size_t)64 << 10)

static void change(struct buf *file)
{
	uint32_t n, text, wide, comma = ',';

	expect(file->n > (2 + N_ITEMS) * sizeof(n));
	memcpy(&n, file->p + 4, sizeof(n));
	memcpy(&text, file->p + 8 + TEXT * sizeof(n), sizeof(text));
	memcpy(&wide, file->p + 8 + WIDE * sizeof(n), sizeof(wide));
	expect(n == N_ITEMS && text < file->n && wide + sizeof(comma) <= file->n);
	expect(file->p[text] == '.');
	file->p[text] = ',';
	memcpy(file->p + wide, &comma, sizeof(comma));
}

void test_comma_locale(void)
{
	char folder[64] = "/tmp/test-locale-XXXXXX", path[128], shown[16];
	struct buf file = BUF_NULL;

	if (file_read(AT_FDCWD, SOURCE, &file, MAX_FILE) == -ENOENT)
		test_skip("no " SOURCE ": this is not Debian's C library");
	change(&file);
	expect(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/" NAME, folder);
	expect_eq(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/" NAME "/LC_NUMERIC", folder);
	expect_eq(file_replace(path, file.p, file.n, NULL), 0);
	buf_free(&file);
	expect_eq(setenv("LOCPATH", folder, 1), 0);
	expect(setlocale(LC_NUMERIC, NAME));
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	rmdir(folder);
	snprintf(shown, sizeof(shown), "%.1f", 0.5);
	expect_str(str_of(shown), "0,5");
}
