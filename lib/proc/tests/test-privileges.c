/* SPDX-License-Identifier: Apache-2.0 */
/* Giving up privileges is for good, so a child does it and says by its exit status what came of it.
 * With root's capabilities there is much to give up; without, what must hold holds all the same. */
#include "proc/privileges.h"

#include "base/check.h"
#include "testing/test.h"

#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOME (PRIVILEGE(CAP_BPF) | PRIVILEGE(CAP_CHECKPOINT_RESTORE))

static int in_child(int (*act)(void))
{
	pid_t pid = fork();
	int status;

	check(pid >= 0);
	if (pid == 0)
		_exit(act());
	check(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* A name and its number say the same, and a name that nobody has is refused. */
TEST(names_are_by_number)
{
	expect_eq(privilege_number("CAP_SYSLOG"), CAP_SYSLOG);
	expect_eq(privilege_number("CAP_CHOWN"), CAP_CHOWN);
	for (int i = 0; i <= CAP_CHECKPOINT_RESTORE; i++)
		expect_eq(privilege_number(privilege_name(i)), i);
	expect_eq(privilege_number("CAP_MOONLIGHT"), -1);
	expect_eq(privilege_number("BPF"), -1);
	expect(strcmp(privilege_name(63), "an unknown one") == 0);
	expect(strcmp(privilege_name(-1), "an unknown one") == 0);
}

static int keep_some(void)
{
	uint64_t before = privileges_held();

	/* As it is called: with what is not kept out of use already. */
	if (privileges_use(SOME) != 0 || privileges_keep(SOME) != 0)
		return 1;
	if (privileges_held() != (before & SOME))
		return 2;
	/* What is gone cannot be raised: that would be the same as holding it. */
	if (privileges_use(UINT64_MAX) != 0 || privileges_held() != (before & SOME))
		return 3;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return 4;
	if (before & PRIVILEGE(CAP_SETPCAP) && prctl(PR_CAPBSET_READ, CAP_CHOWN, 0, 0, 0) != 0)
		return 5;
	for (int c = 0; c <= CAP_CHECKPOINT_RESTORE; c++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, c, 0, 0) == 1)
			return 6;
	return privileges_keep(0) == 0 && privileges_held() == 0 ? 0 : 7;
}

/* Only what was asked for is left, of that only what was there, and nothing brings more. */
TEST(what_is_not_kept_is_gone)
{
	expect_eq(in_child(keep_some), 0);
}

static int use_none(void)
{
	uint64_t held = privileges_held();

	if (privileges_use(0) != 0 || privileges_held() != held)
		return 1;
	return privileges_use(UINT64_MAX) == 0 && privileges_held() == held ? 0 : 2;
}

/* Putting out of use is not giving up. */
TEST(what_is_out_of_use_is_still_held)
{
	expect_eq(in_child(use_none), 0);
}

static void *wait_for_end(void *end)
{
	char byte;

	return read(*(const int *)end, &byte, 1) == 0 ? NULL : end;
}

static int keep_beside_a_thread(void)
{
	uint64_t before = privileges_held();
	pthread_t thread;
	int fds[2], r;

	if (pipe(fds) < 0 || pthread_create(&thread, NULL, wait_for_end, &fds[0]) != 0)
		return 1;
	r = privileges_keep(0);
	close(fds[1]);
	pthread_join(thread, NULL);
	return r == -EBUSY && privileges_held() == before ? 0 : 2;
}

/* A thread that is there already would keep everything: then nothing is done, and it is said. */
TEST(other_threads_are_a_refusal)
{
	expect_eq(in_child(keep_beside_a_thread), 0);
}
