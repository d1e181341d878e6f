/* SPDX-License-Identifier: Apache-2.0 */
/* See process-state.h. Threads and their masks are read from /proc, so those of libraries count. */
#include "cli/conformance/process-state.h"

#include "base/cleanup.h"
#include "base/hash.h"

#include <dirent.h>
#include <fcntl.h>
#include <float.h>
#include <locale.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Signals that nobody can block: 9 and 19, and the two that the C library keeps. */
#define UNBLOCKABLE (1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1) | 1ull << 31 | 1ull << 32)

/* From sums, and not by fegetround, which would need libm. */
static int arithmetic(void)
{
	volatile double one = 1, tiny = DBL_EPSILON / 256, least = DBL_MIN;

	return (one + tiny > one) | (one - tiny < one) << 1 | (-one - tiny < -one) << 2 |
	       (least / 2 > 0) << 3;
}

void process_state_read(struct process_state *ret)
{
	const char *locale = setlocale(LC_ALL, NULL);

	*ret = (struct process_state){.environment = 0};
	pthread_sigmask(SIG_SETMASK, NULL, &ret->mask);
	for (int i = 1; i < N_SIGNALS; i++) {
		struct sigaction action;

		if (sigaction(i, NULL, &action) == 0)
			ret->handlers[i] = action.sa_handler;
	}
	if (!getcwd(ret->directory, sizeof(ret->directory)))
		ret->directory[0] = '\0';
	snprintf(ret->locale, sizeof(ret->locale), "%s%s", locale ? locale : "",
		 uselocale((locale_t)0) == LC_GLOBAL_LOCALE ? "" : " of the thread");
	for (char **e = environ; e && *e; e++)
		ret->environment = hash_mix(ret->environment, hash_bytes(*e, strlen(*e)));
	ret->umask = umask(0);
	umask(ret->umask);
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		struct stat st = {0};

		fstat(fd, &st);
		ret->streams = hash_mix(hash_mix(ret->streams, st.st_dev), st.st_ino);
	}
	for (int i = 0; i < (int)RLIM_NLIMITS; i++)
		getrlimit((__rlimit_resource_t)i, &ret->limits[i]);
	ret->nice = getpriority(PRIO_PROCESS, 0);
	sched_getaffinity(0, sizeof(ret->cpus), &ret->cpus);
	ret->arithmetic = arithmetic();
}

const char *process_state_difference(const struct process_state *a, const struct process_state *b)
{
	for (int i = 1; i < N_SIGNALS; i++) {
		if (sigismember(&a->mask, i) != sigismember(&b->mask, i))
			return "the signal mask of the calling thread";
		if (a->handlers[i] != b->handlers[i])
			return "what a signal does (sigaction)";
	}
	if (strcmp(a->directory, b->directory) != 0)
		return "the working directory";
	if (strcmp(a->locale, b->locale) != 0)
		return "the locale";
	if (a->environment != b->environment)
		return "the environment";
	if (a->streams != b->streams)
		return "standard input, output or error";
	if (memcmp(a->limits, b->limits, sizeof(a->limits)) != 0)
		return "a limit (setrlimit)";
	if (a->nice != b->nice)
		return "the calling thread's priority";
	if (!CPU_EQUAL(&a->cpus, &b->cpus))
		return "the CPUs that the calling thread may run on";
	if (a->arithmetic != b->arithmetic)
		return "how the calling thread rounds (fesetround)";
	return a->umask == b->umask ? NULL : "the umask";
}

static long count_entries(const char *path)
{
	DIR *d = opendir(path);
	long n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static long mapped_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long pages = 0;

	if (f && fscanf(f, "%ld", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

/* Memory last: a thread that is not counted any more has freed its own. */
void process_usage_read(struct process_usage *ret)
{
	struct mallinfo2 info;

	ret->n_descriptors = count_entries("/proc/self/fd");
	ret->n_threads = count_entries("/proc/self/task");
	ret->n_mapped = mapped_bytes();
	info = mallinfo2();
	ret->n_bytes = (long)(info.uordblks + info.hblkhd);
}

bool process_has_zombie(void)
{
	siginfo_t info = {0};

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid;
}

static bool blocks_all(const char *task)
{
	char path[64], line[256];
	unsigned long long mask = UINT64_MAX;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/status", task);
	status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "SigBlk: %llx", &mask) == 1)
			break;
	if (status)
		fclose(status);
	return (mask | UNBLOCKABLE) == UINT64_MAX;
}

/* Counts the threads but the first of which it holds. */
static long count_threads(bool (*is_such)(const char *task))
{
	DIR *d = opendir("/proc/self/task");
	const struct dirent *e;
	char own[24];
	long n = 0;

	snprintf(own, sizeof(own), "%d", getpid());
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.' && strcmp(e->d_name, own) != 0)
			n += is_such(e->d_name);
	if (d)
		closedir(d);
	return n;
}

static bool blocks_too_few(const char *task)
{
	return !blocks_all(task);
}

bool process_threads_block_signals(void)
{
	return count_threads(blocks_too_few) == 0;
}

static void read_name(const char *task, char ret[32])
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", task);
	f = fopen(path, "re");
	if (!f || !fgets(ret, 32, f))
		ret[0] = '\0';
	if (f)
		fclose(f);
}

static bool is_nameless(const char *task)
{
	char name[32], own[32], first[24];

	snprintf(first, sizeof(first), "%d", getpid());
	read_name(first, own);
	read_name(task, name);
	return strcmp(name, own) == 0;
}

long process_nameless_threads(void)
{
	return count_threads(is_nameless);
}

static int passed_after(int fd)
{
	DIR *d = opendir("/proc/self/fd");
	const struct dirent *e;
	int first = -1;

	while (d && (e = readdir(d))) {
		int one = (int)strtol(e->d_name, NULL, 10), flags = fcntl(one, F_GETFD);

		if (one > fd && (first < 0 || one < first) && flags >= 0 && !(flags & FD_CLOEXEC))
			first = one;
	}
	if (d)
		closedir(d);
	return first;
}

void process_keep_descriptors(void)
{
	for (int fd = STDERR_FILENO; (fd = passed_after(fd)) >= 0;)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
}

int process_passed_descriptor(int fd, char *ret_what, size_t size)
{
	char path[64];
	ssize_t n;

	fd = passed_after(fd);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = fd < 0 ? 0 : readlink(path, ret_what, size - 1);
	ret_what[n > 0 ? n : 0] = '\0';
	return fd;
}
