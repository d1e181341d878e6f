/* SPDX-License-Identifier: Apache-2.0 */
/* See recording.h. The order is what keeps promises: fork the command, plan, start sampling, and
 * only when it is live let the command go. Whatever fails before that has run nothing of the
 * command. */
#include "cli/record/recording.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/plugin-path.h"
#include "cli/doctor/precheck.h"
#include "cli/privileges/kept.h"
#include "cli/report/runtime-hints.h"
#include "proc/haste.h"
#include "proc/privileges.h"

#include <andiron/host.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FEW_SAMPLES 200
#define WIDTH       40                  /* of the bar */
#define DRAW_NS     (100 * NS_PER_MSEC) /* how often it is drawn */
/* For naming and writing what was taken, of which there is nothing else. A busy machine may need a
 * minute; who will not wait has a second Ctrl-C. */
#define DRAIN_NS (120 * NS_PER_SEC)

static struct host *host_of(const struct recording *r)
{
	check(r->session);
	return session_host(r->session);
}

/* --- What is shown meanwhile: a bar on a terminal, one line else; on standard error, since
 * standard output may be the recorded command's --- */

static void progress_begin(struct progress *p, int64_t duration_ns, const char *what)
{
	*p = (struct progress){isatty(STDERR_FILENO) == 1, clock_mono(), duration_ns};
	if (p->terminal)
		return;
	if (duration_ns > 0)
		fprintf(stderr, "recording %s for %.3g s\n", what,
			(double)duration_ns / (double)NS_PER_SEC);
	else
		fprintf(stderr, "recording %s until it ends\n", what);
}

static void progress_draw(const struct progress *p)
{
	int64_t passed = clock_mono() - p->started_ns;
	double seconds = (double)passed / (double)NS_PER_SEC;
	int filled;

	if (!p->terminal)
		return;
	if (p->duration_ns <= 0) {
		fprintf(stderr, "\rrecording %.1f s, Ctrl-C ends it", seconds);
		return;
	}
	filled = passed >= p->duration_ns ? WIDTH : (int)(passed * WIDTH / p->duration_ns);
	fprintf(stderr, "\rrecording [%.*s%.*s] %.1f of %.3g s", filled,
		"########################################", WIDTH - filled,
		"                                        ", seconds,
		(double)p->duration_ns / (double)NS_PER_SEC);
}

static void progress_end(const struct progress *p)
{
	if (p->terminal && p->started_ns)
		fprintf(stderr, "\r\033[K");
}

/* --- While it runs --- */

/* Ends the sampling once, whatever comes first; host_stop again would cut off the delivery of what
 * was taken. */
static void stop(void *context)
{
	struct recording *r = context;

	if (!r->stopping)
		host_stop(host_of(r));
	r->stopping = true;
}

static void draw(void *context)
{
	const struct recording *r = context;

	progress_draw(&r->progress);
}

/* Ctrl-C reaches the command from the terminal; what was sent to us alone is passed on. */
static void signalled(void *context, int number)
{
	struct recording *r = context;

	if (number != SIGINT && r->child.pid > 0)
		kill(r->child.pid, number);
	if (r->signalled) /* the second one: whoever sends it will not wait */
		host_stop(host_of(r));
	r->signalled = true;
	stop(r);
}

/* When the command, or the last process of -p, has ended. */
static void processes_ended(void *context)
{
	struct recording *r = context;

	check(r->ends.fd >= 0);
	if (ends_take(&r->ends) == 0)
		stop(r);
}

static void became_live(void *context, const char *failed)
{
	struct recording *r = context;
	const struct record_request *q = &r->request;

	if (failed) {
		fprintf(stderr, "andiron record: %s could not start; the log above says why\n",
			failed);
		r->failed = true;
		stop(r);
		return;
	}
	if (r->stopping)
		return;
	check(!r->live);
	r->live = true;
	r->before = machine_time();
	progress_begin(&r->progress, q->duration_ns,
		       q->command      ? q->command[0]
		       : q->everything ? "the whole machine"
				       : "processes");
	if (q->duration_ns > 0)
		host_timer(host_of(r), q->duration_ns, 0, stop, r);
	if (r->progress.terminal)
		host_timer(host_of(r), DRAW_NS, DRAW_NS, draw, r);
	if (r->child.pid > 0)
		child_let_go(&r->child);
}

/* --- Before --- */

static int add_end(void *context, pid_t pid, struct error *err)
{
	struct recording *r = context;
	int code = ends_add(&r->ends, pid);

	return code < 0 ? error_errno(err, code, "cannot watch process %d", pid) : 0;
}

static int watch_ends(struct recording *r, struct error *err)
{
	int code = record_each_pid(&r->request, add_end, r, err);

	if (code == 0 && r->child.pid > 0)
		code = add_end(r, r->child.pid, err);
	if (code == 0 && r->ends.fd >= 0)
		code = host_watch(host_of(r), r->ends.fd, processes_ended, r);
	return code;
}

static int plan_recording(struct recording *r, struct plan **ret, struct error *err)
{
	struct buf text = BUF_NULL;
	int code = record_config(&r->request, r->child.pid, &text, err);

	check(!r->config);
	r->config = config_new();
	if (code == 0)
		code = r->config ? config_add_text(r->config, "record", buf_str(&text)) : -ENOMEM;
	if (code == 0)
		code = config_plan(r->config, r->registry, true, stderr, ret);
	if (code < 0 && !err->code)
		error_set(err, code,
			  code == -ENOMEM ? "out of memory" : "this cannot be recorded here");
	buf_free(&text);
	return code;
}

/* Files go where the caller's shell stands, whoever's folder that is, and become the caller's; a
 * signal is passed on to a command that runs as the caller. */
#define OWN_PRIVILEGES                                                                             \
	(PRIVILEGE(CAP_DAC_OVERRIDE) | PRIVILEGE(CAP_FOWNER) | PRIVILEGE(CAP_CHOWN) |              \
	 PRIVILEGE(CAP_KILL))

/* The command was forked before, with all that the caller has. */
static int give_up_privileges(const struct plan *plan, int *ret_kernel_symbols, struct error *err)
{
	struct kept kept;
	int code = kept_choose(&kept, plan, OWN_PRIVILEGES, err);

	if (code == 0)
		code = kept_settle(&kept, err);
	if (code == 0)
		*ret_kernel_symbols = kept.kernel_symbols;
	return code;
}

/* In haste, since what is recorded waits. */
static int make_plan(struct recording *r, struct plan **ret, struct error *err)
{
	int nice = haste_begin(HASTE_GAIN_START), code = -ENOMEM;

	r->registry = plugin_path_open(&r->plugin_dirs, false);
	if (r->registry)
		code = plan_recording(r, ret, err);
	haste_end(nice);
	return code;
}

static int open_session(struct recording *r, struct error *err)
{
	struct session_options options = {
		.verb = "record",
		.host =
			{
				.log_level = r->verbose ? ANDIRON_LOG_INFO : ANDIRON_LOG_WARN,
				.log_fd = STDERR_FILENO,
				.drain_ns = DRAIN_NS,
			},
		.ledger_path = r->ledger,
		.live = became_live,
		.signal = signalled,
		.context = r,
	};
	struct plan *plan = NULL;
	int code = make_plan(r, &plan, err);

	if (code < 0)
		return code;
	code = give_up_privileges(plan, &options.host.kernel_symbols, err);
	if (code == 0)
		code = session_new(&options, &r->session, err);
	if (code < 0) {
		plan_free(plan);
		return code;
	}
	code = session_load(r->session, plan, err);
	return code < 0 ? code : watch_ends(r, err);
}

static void remember_files(struct recording *r)
{
	r->old_files = calloc(r->request.outputs.n, sizeof(*r->old_files));
	for (size_t i = 0; r->old_files && i < r->request.outputs.n; i++)
		if (stat(r->request.outputs.p[i], &r->old_files[i]) < 0)
			r->old_files[i] = (struct stat){0};
}

/* --- After --- */

static bool was_written(const struct recording *r, size_t i)
{
	const struct stat *old = r->old_files ? &r->old_files[i] : NULL;
	struct stat st;

	if (stat(r->request.outputs.p[i], &st) < 0)
		return false;
	return !old || st.st_ino != old->st_ino || st.st_mtim.tv_sec != old->st_mtim.tv_sec ||
	       st.st_mtim.tv_nsec != old->st_mtim.tv_nsec;
}

static int show_files(struct recording *r)
{
	int code = 0;

	for (size_t i = 0; i < r->request.outputs.n; i++) {
		const char *path = r->request.outputs.p[i];

		if (was_written(r, i)) {
			caller_own(&r->caller, path);
			fprintf(stderr, "wrote %s\n", path);
		} else {
			fprintf(stderr, "andiron record: %s was not written\n", path);
			code = -EIO;
		}
	}
	return code;
}

static void suggest_more(const struct recording *r, uint64_t n_samples)
{
	double busy = machine_busy(&r->before, &r->after);

	if (n_samples >= FEW_SAMPLES)
		return;
	fprintf(stderr,
		"only %llu samples: all CPUs together were %.1f %% busy, and idle time is not "
		"sampled.\n",
		(unsigned long long)n_samples, busy);
	if (r->request.command)
		fprintf(stderr,
			"  for more: andiron record -F 997 -- COMMAND, on a longer run of it\n");
	else if (r->request.everything)
		fprintf(stderr, "  for more: andiron record -F 499 -d 60s, or record a command: "
				"andiron record -- COMMAND\n");
	else
		fprintf(stderr,
			"  for more: andiron record -F 499 -d 60s -p …, while the process works\n");
}

/* The first pprof file that is written; NULL without one. */
static const char *pprof_output(const struct recording *r)
{
	vec_each (&r->request.outputs, path)
		if (str_ends(str_of(*path), STR(".pb.gz")))
			return *path;
	return r->request.aside;
}

/* A pprof file is written where nobody named one: for standard output, and for what is said of
 * runtimes. 0, or -errno and text where there is no place for it. */
static int write_aside(struct recording *r, struct error *err)
{
	static const char folder[] = "/tmp/andiron-XXXXXX";

	if (pprof_output(r))
		return 0;
	memcpy(r->aside, folder, sizeof(folder));
	if (!mkdtemp(r->aside)) {
		r->aside[0] = '\0'; /* then nothing is said of runtimes */
		return r->request.to_stdout ? error_errno(err, -errno, "cannot write into /tmp")
					    : 0;
	}
	snprintf(r->aside_file, sizeof(r->aside_file), "%s/aside.pb.gz", r->aside);
	r->request.aside = r->aside_file;
	return 0;
}

/* Copies the pprof file to standard output. */
static int show_stdout(struct recording *r)
{
	_cleanup_(closep) int fd = open(pprof_output(r), O_RDONLY | O_CLOEXEC);
	char part[65536];
	ssize_t n = -1;

	while (fd >= 0 && (n = read(fd, part, sizeof(part))) > 0)
		for (ssize_t at = 0, written; at < n; at += written) {
			written = write(STDOUT_FILENO, part + at, (size_t)(n - at));
			if (written < 0 && errno != EINTR) {
				fprintf(stderr,
					"andiron record: cannot write to standard output: %s\n",
					strerror(errno));
				return -EIO;
			}
			written = written < 0 ? 0 : written;
		}
	if (n == 0)
		return 0;
	fprintf(stderr, "andiron record: nothing was written to standard output\n");
	return -EIO;
}

static void remove_aside(const struct recording *r)
{
	if (!r->aside[0])
		return;
	unlink(r->aside_file);
	rmdir(r->aside);
}

/* Says what hides behind a runtime. */
static void suggest_names(const struct recording *r)
{
	const char *path = pprof_output(r), *hint;
	struct profile *p = NULL;

	if (!path || profile_read(path, &p, NULL) < 0)
		return;
	hint = runtimes_hint(p);
	if (hint)
		fputs(hint, stderr);
	profile_free(p);
}

/* For who typed no more than `record`; who names files, as scripts do, knows what for. */
static void suggest_next(const struct recording *r)
{
	if (r->request.chose_outputs)
		fprintf(stderr, "next: andiron report profile.pb.gz\n");
}

/* Until the command has ended; a signal to us alone is passed on. */
static void await_command(struct recording *r)
{
	struct pollfd fds[] = {
		{.fd = r->ends.fd, .events = POLLIN},
		{.fd = session_signal_fd(r->session), .events = POLLIN},
	};

	if (child_reap(&r->child))
		return;
	fprintf(stderr, "waiting for %s to end, since its exit code is kept; Ctrl-C ends it\n",
		r->request.command[0]);
	while (!child_reap(&r->child)) {
		int number;

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return;
		number = session_next_signal(r->session);
		if (number != 0 && number != SIGINT)
			kill(r->child.pid, number);
	}
}

static int own_failure(const struct recording *r)
{
	return r->request.command ? EXIT_CANNOT : EXIT_FAILED;
}

/* The exit code of a recording that went live. */
static int finish(struct recording *r)
{
	int exec_error = r->request.command ? child_exec_error(&r->child) : 0;
	const struct ledger_view *books;
	int code = 0;

	r->after = machine_time();
	progress_end(&r->progress);
	if (exec_error) {
		fprintf(stderr, "andiron record: cannot run %s: %s\n", r->request.command[0],
			strerror(exec_error));
		return child_code_of(exec_error);
	}
	if (show_files(r) < 0 || (r->request.to_stdout && show_stdout(r) < 0))
		code = own_failure(r);
	if (session_report(r->session) < 0)
		code = own_failure(r);
	else if (r->ledger)
		caller_own(&r->caller, r->ledger);
	books = host_ledger(host_of(r));
	suggest_more(r, books ? books->taken : 0);
	suggest_names(r);
	suggest_next(r);
	if (r->request.command)
		await_command(r);
	return code ? code : r->request.command ? r->child.exit_code : EXIT_OK;
}

/* Whether there is something to show. A start that takes long samples before all of it is live. */
static bool has_recorded(const struct recording *r)
{
	const struct ledger_view *books = r->session ? host_ledger(host_of(r)) : NULL;

	return r->live || (!r->failed && !r->request.command && books && books->taken > 0);
}

/* Forks the command; else the exit code. */
static int start_command(struct recording *r)
{
	struct error err = ERROR_NULL;
	int code =
		child_start(&r->child, r->request.command, r->request.to_stdout, &r->caller, &err);

	if (code == 0)
		return EXIT_OK;
	fprintf(stderr, "andiron record: %s\n", err.text);
	return code == -ENOENT || code == -EACCES || code == -ENOTDIR ? child_code_of(-code)
								      : EXIT_CANNOT;
}

int recording_run(struct recording *r, char **again)
{
	struct error err = ERROR_NULL;
	int code;

	if (!precheck_announce("record", true, again))
		return own_failure(r);
	if (r->request.command && (code = start_command(r)) != EXIT_OK)
		return code;
	remember_files(r);
	code = write_aside(r, &err);
	if (code == 0)
		code = open_session(r, &err);
	if (code == 0)
		code = session_run(r->session, &err);
	if (code < 0 && !r->failed)
		fprintf(stderr, "andiron record: %s\n", *err.text ? err.text : strerror(-code));
	else if (!has_recorded(r) && r->signalled)
		fprintf(stderr,
			"andiron record: interrupted before sampling began, nothing is written\n");
	return has_recorded(r) ? finish(r) : own_failure(r);
}

void recording_fini(struct recording *r)
{
	child_fini(&r->child);
	remove_aside(r);
	session_free(r->session);
	config_free(r->config);
	registry_free(r->registry);
	ends_fini(&r->ends);
	vec_free(&r->request.outputs);
	vec_free(&r->request.pids);
	vec_free(&r->plugin_dirs);
	free(r->old_files);
}
