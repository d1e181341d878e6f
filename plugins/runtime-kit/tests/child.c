/* SPDX-License-Identifier: Apache-2.0 */
/* Children of a test, forked while it has no other thread. */
#include "child.h"

#include "testing/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Waits until the threads of readers that were freed have ended. */
static void expect_alone(void)
{
	struct stat tasks;

	do
		expect_eq(stat("/proc/self/task", &tasks), 0);
	while (tasks.st_nlink > 3 && poll(NULL, 0, 1) == 0);
}

pid_t child_start(void (*body)(int out), struct ready *ret)
{
	int ends[2];
	pid_t pid;

	expect_alone();
	expect_eq(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		body(ends[1]);
		_exit(0);
	}
	close(ends[1]);
	if (read(ends[0], ret, sizeof(*ret)) != (ssize_t)sizeof(*ret))
		ret->error = ECHILD;
	close(ends[0]);
	return pid;
}

void child_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

void child_say(int out, const void *at, int error)
{
	struct ready r = {(uintptr_t)at, error};

	if (write(out, &r, sizeof(r)) != (ssize_t)sizeof(r))
		_exit(1);
	pause();
}

/* /proc/PID/stat's field 22, in ns. */
struct andiron_runtime_process process_of(pid_t pid)
{
	struct andiron_runtime_process ret = {.pid = (uint32_t)pid};
	char path[32], text[1024];
	FILE *f;
	char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	expect(f && fgets(text, sizeof(text), f));
	fclose(f);
	at = strrchr(text, ')');
	for (int i = 2; i < 22; i++)
		at = strchr(at + 1, ' ');
	ret.start_ns = strtoull(at, NULL, 10) * (1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK));
	return ret;
}

struct target_memory *memory_of(struct target_reader *r, pid_t pid)
{
	struct andiron_runtime_process process = process_of(pid);
	struct target_memory *m;
	int error = target_memory_open(r, &process, &m);

	if (error == -EACCES)
		test_skip("needs the right to read a child's memory");
	expect_eq(error, 0);
	return m;
}

void child_have_page(int out)
{
	char *p = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(p + PAGE, PAGE, PROT_READ | PROT_WRITE);
	/* Only what is not mapped cannot be read. */
	munmap(p, PAGE);
	munmap(p + 2 * PAGE, PAGE);
	memset(p + PAGE, 'x', PAGE);
	memcpy(p + PAGE, "hello", 6);
	child_say(out, p + PAGE, 0);
}
