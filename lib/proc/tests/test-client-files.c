/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are replaced under a confined process. What else it reads is in test-landlock.c. */
#include "proc/client-files.h"

#include "base/check.h"
#include "testing/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_CONFINED 255

static char folder[] = "/tmp/andiron-client-files-XXXXXX";
static char bundle[64], other[64];

static void put_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	check(f && fputs(text, f) >= 0);
	check(fclose(f) == 0);
}

static void make_folder(void)
{
	check(mkdtemp(folder));
	snprintf(bundle, sizeof(bundle), "%s/bundle", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
	check(setenv("SSL_CERT_FILE", bundle, 1) == 0);
}

/* What a process gets that is confined before a file is renamed into place, and reads it then: 0 or
 * an errno. */
static int read_when_replaced(void)
{
	pid_t pid = fork();
	int status;

	check(pid >= 0);
	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || client_files_confine(NULL) < 0)
			_exit(NOT_CONFINED);
		if (open(bundle, O_RDONLY | O_CLOEXEC) < 0)
			_exit(NOT_CONFINED);
		raise(SIGSTOP);
		_exit(open(bundle, O_RDONLY | O_CLOEXEC) < 0 ? errno : 0);
	}
	check(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	put_file(other, "renamed into place");
	check(rename(other, bundle) == 0);
	check(kill(pid, SIGCONT) == 0 && waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : NOT_CONFINED;
}

/* A file that is renamed into place is closed to who was confined before, so that is noticed; what
 * is written in place is no change. */
TEST(what_is_renamed_into_place_is_a_change)
{
	int version = (int)syscall(444, NULL, 0, 1);
	struct client_files noted;

	make_folder();
	client_files_note(&noted);
	expect(!client_files_changed(&noted));
	put_file(bundle, "there was none");
	expect(client_files_changed(&noted));
	client_files_note(&noted);
	put_file(bundle, "written in place");
	expect(!client_files_changed(&noted));
	expect_eq(read_when_replaced(), version < 1 ? 0 : EACCES);
	expect(client_files_changed(&noted));
	client_files_note(&noted);
	expect(!client_files_changed(&noted));
	check(unlink(bundle) == 0);
	expect(client_files_changed(&noted));
	check(rmdir(folder) == 0);
}
