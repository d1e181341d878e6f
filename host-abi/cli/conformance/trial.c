/* SPDX-License-Identifier: Apache-2.0 */
/* One check in a child. fork, and not exec: the child has the options as they are. It ends by
 * _exit, so no terminator of the plugin runs, and what it has started is killed with its process
 * group. */
#include "cli/conformance/check.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "host/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define CHECK_MS   60000 /* for one step: the slowest takes some seconds */
#define CHECKS_MS  (10 * CHECK_MS) /* for all: a sampler is loaded some hundred times */
#define CHECK_LOOK 500

__attribute__((format(printf, 3, 0))) static void decide(struct trial *t, enum outcome outcome,
							 const char *format, va_list args)
{
	if (trial_is_over(t))
		return;
	vsnprintf(t->note->text, sizeof(t->note->text), format, args);
	t->note->outcome = outcome;
}

void trial_fail(struct trial *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	decide(t, OUTCOME_FAILED, format, args);
	va_end(args);
}

void trial_skip(struct trial *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	decide(t, OUTCOME_SKIPPED, format, args);
	va_end(args);
}

void trial_other_kind(struct trial *t)
{
	if (!trial_is_over(t))
		t->note->outcome = OUTCOME_OTHER_KIND;
}

void trial_figure(struct trial *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (!trial_is_over(t))
		vsnprintf(t->note->text, sizeof(t->note->text), format, args);
	va_end(args);
}

void trial_doing(struct trial *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(t->note->doing, sizeof(t->note->doing), format, args);
	va_end(args);
	t->note->n_steps++;
}

struct outcome_note *trial_note_new(void)
{
	void *p = mmap(NULL, sizeof(struct outcome_note), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* No core file, no output, no handler of a sanitizer: only how it ends counts. */
static void isolate(void)
{
	static const int deadly[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP};
	const struct rlimit none = {0, 0}, seconds = {CHECKS_MS / 1000, CHECKS_MS / 1000};
	int null = open("/dev/null", O_RDWR);

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_CPU, &seconds);
	for (size_t i = 0; i < sizeof(deadly) / sizeof(deadly[0]); i++)
		signal(deadly[i], SIG_DFL);
	for (int fd = 0; null >= 0 && fd <= 2; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
}

/* Loads the plugin and finds the component; false where the check cannot be made. */
static bool load(struct trial *t)
{
	struct error err = ERROR_NULL;

	if (t->check->subject == SUBJECT_FILE || t->check->subject == SUBJECT_LOADING)
		return true;
	trial_doing(t, "dlopen");
	if (registry_load(t->file, &t->plugin, &t->library, &err) < 0) {
		trial_fail(t, "%s", err.text);
		return false;
	}
	t->note->n_components = (uint32_t)t->plugin->n_components;
	if (t->check->subject != SUBJECT_COMPONENT)
		return true;
	if (t->index >= t->plugin->n_components)
		return false;
	t->component = t->plugin->components[t->index];
	snprintf(t->note->component, sizeof(t->note->component), "%s", t->component->name);
	return true;
}

static _Noreturn void run_in_child(struct trial t)
{
	isolate();
	if (load(&t))
		t.check->run(&t);
	if (!trial_is_over(&t))
		t.note->outcome = OUTCOME_PASSED;
	_exit(0);
}

/* As poll: 0 where it takes too long over one step, or over all. */
static int poll_steps(int pidfd, const struct outcome_note *note)
{
	struct pollfd poll_fd = {.fd = pidfd, .events = POLLIN};
	int64_t begun = clock_mono(), stepped = begun, now = begun;
	uint32_t seen = note->n_steps;
	int n = 0;

	while (n == 0 && now - stepped < CHECK_MS * NS_PER_MSEC &&
	       now - begun < CHECKS_MS * NS_PER_MSEC) {
		n = poll(&poll_fd, 1, CHECK_LOOK);
		now = clock_mono();
		if (note->n_steps != seen)
			stepped = now;
		seen = note->n_steps;
	}
	return n;
}

/* 0, -ETIMEDOUT (the child was killed), or the errno of what failed. */
static int await(pid_t child, const struct outcome_note *note, int *ret_status)
{
	_cleanup_(closep) int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	int n = pidfd < 0 ? -1 : poll_steps(pidfd, note);
	int r = n > 0 ? 0 : n == 0 ? -ETIMEDOUT : -errno;

	if (r < 0)
		kill(child, SIGKILL);
	kill(-child, SIGKILL);
	while (waitpid(child, ret_status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return r;
}

/* The plugin may have written there whatever it liked. */
static void make_printable(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 127)
			*text = ' ';
}

/* What the process did not come to say. */
static void explain(struct outcome_note *note, int r, int status)
{
	char doing[sizeof(note->doing)];

	memcpy(doing, note->doing, sizeof(doing));
	if (r == -ETIMEDOUT)
		snprintf(note->text, sizeof(note->text), "it did not return within %d s (%s)",
			 CHECK_MS / 1000, doing);
	else if (WIFSIGNALED(status))
		snprintf(note->text, sizeof(note->text), "it crashed (signal %d, %s) in: %s",
			 WTERMSIG(status), strsignal(WTERMSIG(status)), doing);
	else
		snprintf(note->text, sizeof(note->text),
			 "it ended the process (exit status %d) in: %s", WEXITSTATUS(status),
			 doing);
	note->outcome = OUTCOME_FAILED;
}

int trial_run(const struct trial *t)
{
	struct outcome_note *note = t->note;
	int status = 0, r;
	pid_t child;

	*note = (struct outcome_note){.outcome = OUTCOME_NONE};
	fflush(NULL);
	child = fork();
	if (child == 0)
		run_in_child(*t);
	if (child < 0)
		return -errno;
	r = await(child, note, &status);
	if (r < 0 && r != -ETIMEDOUT)
		return r;
	make_printable(note->component, sizeof(note->component));
	make_printable(note->doing, sizeof(note->doing));
	if (r < 0 || note->outcome == OUTCOME_NONE || note->outcome > OUTCOME_OTHER_KIND ||
	    WIFSIGNALED(status))
		explain(note, r, status);
	make_printable(note->text, sizeof(note->text));
	return 0;
}
