/* SPDX-License-Identifier: Apache-2.0 */
/* The test runner's main, and the allocator that fails on demand. Programs are linked with --wrap
 * for malloc and its kin, so only calls from our own objects pass through here, and the sanitizers
 * still see all of them. */
#include "testing/test.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIPPED       77
#define SECONDS_LIMIT 120

extern const struct test_case *const __start_andiron_tests[];
extern const struct test_case *const __stop_andiron_tests[];

static long allocations_left = -1; /* -1: none fails */
static bool allocation_failed;

static bool allocation_fails(void)
{
	if (allocations_left < 0)
		return false;
	if (allocations_left-- > 0)
		return false;
	allocations_left = -1;
	allocation_failed = true;
	errno = ENOMEM;
	return true;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t count, size_t n);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t count, size_t n);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);

void *__wrap_malloc(size_t n)
{
	return allocation_fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t count, size_t n)
{
	return allocation_fails() ? NULL : __real_calloc(count, n);
}

void *__wrap_realloc(void *p, size_t n)
{
	return allocation_fails() ? NULL : __real_realloc(p, n);
}

char *__wrap_strdup(const char *s)
{
	size_t n = strlen(s) + 1;
	char *copy = __wrap_malloc(n);

	return copy ? memcpy(copy, s, n) : NULL;
}

void test_each_failing_allocation(int (*body)(void *context), void *context)
{
	for (long n = 0;; n++) {
		int r;

		allocations_left = n;
		allocation_failed = false;
		r = body(context);
		allocations_left = -1;
		if (!allocation_failed) {
			expect_eq(r, 0);
			return;
		}
		if (r > 0)
			test_fail(__FILE__, __LINE__, "allocation %ld failed and gave %d", n, r);
	}
}

void test_fail(const char *file, int line, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "# %s:%d: ", file, line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	fflush(NULL);
	_exit(1);
}

void test_skip(const char *reason)
{
	printf("# skip: %s\n", reason);
	fflush(NULL);
	_exit(SKIPPED);
}

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* Whether there are as many descriptors as before, or soon will be: a thread that a library left
 * behind (a resolver's, which cannot be cancelled) closes its own when it ends. */
static bool closes_to(int before)
{
	for (int waits = 0; waits < 1000; waits++) {
		if (count_fds() == before)
			return true;
		poll(NULL, 0, 10);
	}
	return false;
}

/* What is open, for whoever looks for the one that was left. */
static void list_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	const struct dirent *entry;
	char target[256];

	while (d && (entry = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), entry->d_name, target, sizeof(target) - 1);

		if (n > 0)
			fprintf(stderr, "# %s: %.*s\n", entry->d_name, (int)n, target);
	}
	if (d)
		closedir(d);
}

static _Noreturn void run_in_child(const struct test_case *t)
{
	int before = count_fds();

	alarm(SECONDS_LIMIT);
	t->run();
	if (!closes_to(before)) {
		list_fds();
		test_fail(t->name, 0, "left %d descriptors open", count_fds() - before);
	}
	exit(0); /* not _exit: the leak check runs at exit */
}

static int run(const struct test_case *t)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		run_in_child(t);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	long n = __stop_andiron_tests - __start_andiron_tests;
	int failed = 0;

	if (argc == 1)
		printf("1..%ld\n", n);
	for (long i = 0; i < n; i++) {
		const struct test_case *t = __start_andiron_tests[i];
		int r;

		if (argc > 1) {
			if (strcmp(argv[1], t->name) == 0)
				t->run();
			continue;
		}
		r = run(t);
		failed += r != 0 && r != SKIPPED;
		printf("%s %ld %s%s\n", r == 0 || r == SKIPPED ? "ok" : "not ok", i + 1, t->name,
		       r == SKIPPED ? " # SKIP" : "");
		if (r > 128)
			printf("# %s died of signal %d\n", t->name, r - 128);
	}
	return failed > 0;
}
