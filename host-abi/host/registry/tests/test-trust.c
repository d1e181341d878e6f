/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of who may have a hand in what is loaded. */
#include "base/file.h"
#include "host/registry/trust.h"
#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void expect_untrusted(const char *path, enum trust needed, const char *words)
{
	struct error err = ERROR_NULL;
	struct stat st;

	expect_eq(stat(path, &st), 0);
	expect_eq(trust_check(path, &st, needed, &err), -ENOEXEC);
	if (!strstr(err.text, words))
		test_fail(__FILE__, __LINE__, "\"%s\" lacks \"%s\"", err.text, words);
}

/* A privileged process loads nothing that anybody may replace: neither the file, nor a folder above
 * it, also behind a link. One that obeys somebody else's arguments loads what is root's alone. */
TEST(what_others_may_replace_is_not_trusted)
{
	char folder[] = "/tmp/test-trust-XXXXXX";
	char path[128], link[128], words[128];
	struct error err = ERROR_NULL;
	struct stat st;

	expect(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/andiron-x.so", folder);
	snprintf(link, sizeof(link), "%s-link", folder);
	expect_eq(file_replace(path, "", 0, NULL), 0);
	snprintf(words, sizeof(words), "anybody may replace what is in %s (mode 0777)", folder);
	expect(symlink(path, link) == 0 && stat(path, &st) == 0);
	expect_eq(trust_check(link, &st, TRUST_KNOWN, &err), 0); /* /tmp has the sticky bit */
	expect_untrusted(path, TRUST_ROOT,
			 geteuid() ? "does not belong to root" : "/tmp may be changed by others");
	expect_eq(chmod(folder, 0777), 0);
	expect_untrusted(path, TRUST_KNOWN, words);
	expect_untrusted(link, TRUST_KNOWN, words);
	expect_eq(trust_check(path, &st, TRUST_ALL, &err), 0);
	expect_eq(stat("/bin/sh", &st), 0);
	expect_eq(trust_check("/bin/sh", &st, TRUST_ROOT, &err), 0);
	expect(unlink(link) == 0 && unlink(path) == 0 && rmdir(folder) == 0);
}

/* A link is as good as the folder that it stands in; and in one with the sticky bit everybody has
 * files of his own. */
TEST(what_others_may_put_there_is_not_trusted)
{
	char folder[] = "/tmp/test-trust-XXXXXX";
	char path[128], words[128];
	struct error err = ERROR_NULL;
	struct stat st;

	expect(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/andiron-x.so", folder);
	snprintf(words, sizeof(words), "anybody may replace what is in %s (mode 0777)", folder);
	expect(symlink("/bin/sh", path) == 0 && chmod(folder, 0777) == 0);
	expect_untrusted(path, TRUST_KNOWN, words);
	expect_eq(unlink(path), 0);
	expect_eq(file_replace(path, "", 0, NULL), 0);
	expect(chmod(folder, 01777) == 0 && stat(path, &st) == 0);
	expect_eq(trust_check(path, &st, TRUST_KNOWN, &err), 0);
	st.st_uid = geteuid() + 1;
	expect_eq(trust_check(path, &st, TRUST_KNOWN, &err), -ENOEXEC);
	expect(strstr(err.text, "another user's") != NULL);
	expect(unlink(path) == 0 && rmdir(folder) == 0);
}
