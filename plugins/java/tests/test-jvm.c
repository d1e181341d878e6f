/* SPDX-License-Identifier: Apache-2.0 */
/* A process is taken for a JVM only if it is one: SIGQUIT would end another. */
#include "java/attach/jvm.h"

#include "testing/test.h"

#include <errno.h>
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
