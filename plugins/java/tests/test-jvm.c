/* SPDX-License-Identifier: Apache-2.0 */
/* A process is taken for a JVM only if it is one: SIGQUIT would end another. */
#include "java/attach/jvm.h"

#include "testing/test.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(a_program_is_no_jvm)
{
	struct error err = ERROR_NULL;
	struct jvm j;

	expect_eq(jvm_inspect((uint32_t)getpid(), &j, &err), -ENOEXEC);
	expect(strstr(err.text, "is not a JVM") != NULL);
}

TEST(what_has_ended_is_none)
{
	struct error err = ERROR_NULL;
	struct jvm j;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	expect_eq(waitpid(pid, NULL, 0), pid);
	expect_eq(jvm_inspect((uint32_t)pid, &j, &err), -ESRCH);
}

static void on_quit(int number)
{
}

/* The handler counts that is there now. */
TEST(the_signal_is_expected_while_there_is_a_handler)
{
	struct error err = ERROR_NULL;
	uint32_t pid = (uint32_t)getpid();

	expect_eq(jvm_expects_quit(pid, &err), 0);
	signal(SIGQUIT, on_quit);
	expect_eq(jvm_expects_quit(pid, &err), 1);
	signal(SIGQUIT, SIG_IGN);
	expect_eq(jvm_expects_quit(pid, &err), 0);
	expect_eq(jvm_expects_quit(0x7fffffff, &err), -ESRCH);
}
