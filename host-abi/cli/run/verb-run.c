/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron run`: the agent. SIGTERM and SIGINT drain and stop, a second one skips the drain.
 * SIGHUP, or a change of the files if asked for, reads the configuration again: the running graph
 * changes only if the new one is valid and every component accepts it. */
#include "base/check.h"
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/malloc-tuning.h"
#include "host/report/log.h"
#include "cli/plugin-path.h"
#include "cli/doctor/precheck.h"
#include "cli/privileges/kept.h"
#include "cli/run/alloy-flags.h"
#include "cli/run/config-watch.h"
#include "cli/run/live-config.h"
#include "cli/session.h"
#include "proc/haste.h"
#include "proc/privileges.h"

#include <andiron/host.h>

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

struct run {
	struct texts plugin_dirs;
	struct alloy_flags alloy;
	const char *status, *ledger;
	const char *log_level, *log_format; /* NULL: not given */
	int64_t drain_ns;
	char **argv; /* from the verb on, for "run it as root" */
	char **paths;
	size_t n_paths;
	struct registry *registry;
	struct live_config live;
	bool watches;
	struct config_watch *watch; /* NULL: it does not */
	struct followed_files files;
	struct session *session;
	struct kept kept;
	bool stopping;
	struct log log; /* the command's own lines, in the host's form */
};

#define AGAIN_NS    (10 * NS_PER_SEC)
#define DESCRIPTORS 65536

/* --- Configuration --- */

static void look(void *context)
{
	struct run *run = context;
	int r;

	if (!config_watch_take(run->watch) || run->stopping)
		return;
	r = live_config_follow(&run->live, session_host(run->session));
	if (r == -EBUSY || r == -ETIMEDOUT)
		config_watch_again(run->watch, AGAIN_NS);
}

static void look_at_files(void *context)
{
	struct run *run = context;
	int r;

	if (!followed_files_changed(&run->files) || run->stopping)
		return;
	r = live_config_refresh(&run->live, session_host(run->session));
	if (r == -EBUSY || r == -ETIMEDOUT)
		followed_files_again(&run->files, AGAIN_NS);
}

/* Before the files are read, so that no change falls between. */
static int open_watch(struct run *run)
{
	struct error err = ERROR_NULL;
	int r;

	if (!run->watches)
		return 0;
	r = config_watch_new(run->paths, run->n_paths, &run->watch, &err);
	if (r < 0)
		fprintf(stderr, "andiron run: %s\n", err.text);
	return r;
}

static void say_how_it_watches(struct run *run)
{
	int blind = run->watch ? config_watch_blind(run->watch) : 0;

	if (blind)
		log_printf(&run->log, ANDIRON_LOG_WARN, RUN_LOG_NAME,
			   "the kernel does not say when the configuration changes (%s), so it is "
			   "read every 10 s%s",
			   strerror(blind),
			   blind == EMFILE || blind == ENOSPC
				   ? "; raise fs.inotify.max_user_instances and max_user_watches"
				   : "");
}

/* Somebody asked for it over HTTP, or at the status socket. */
static int reload(void *context, struct error *err)
{
	struct run *run = context;

	return run->stopping ? -ECANCELED
			     : live_config_reload(&run->live, session_host(run->session), err);
}

/* A component has supplied a value. */
static int refresh(void *context)
{
	struct run *run = context;

	return run->stopping ? -ECANCELED
			     : live_config_refresh(&run->live, session_host(run->session));
}

static void signalled(void *context, int number)
{
	struct run *run = context;
	struct error err = ERROR_NULL;

	if (number == SIGHUP) {
		live_config_reload(&run->live, session_host(run->session), &err);
		return;
	}
	if (!run->stopping)
		log_printf(&run->log, ANDIRON_LOG_INFO, RUN_LOG_NAME,
			   "stopping: delivering what is queued; a second signal stops at once");
	run->stopping = true;
	host_stop(session_host(run->session));
}

/* --- The run --- */

static int open_session(struct run *run, struct plan *plan, struct error *err)
{
	struct session_options options = {
		.verb = "run",
		.host =
			{
				.log_level = run->log.level,
				.log_format = run->log.format,
				.log_fd = run->log.fd,
				.drain_ns = run->drain_ns,
				.status_path = run->status,
				.kernel_symbols = run->kept.kernel_symbols,
			},
		.log = &run->log,
		.ledger_path = run->ledger,
		.reload = reload,
		.refresh = refresh,
		.signal = signalled,
		.context = run,
	};
	int r = session_new(&options, &run->session, err);

	if (r < 0) {
		plan_free(plan);
		return r;
	}
	r = session_load(run->session, plan, err);
	if (r == 0 && run->watch) {
		r = host_watch(session_host(run->session), config_watch_fd(run->watch), look, run);
		if (r < 0)
			return error_errno(err, r, "cannot watch the configuration");
	}
	if (r == 0) {
		r = host_watch(session_host(run->session), run->files.fd, look_at_files, run);
		if (r < 0)
			return error_errno(err, r, "cannot watch the files of the configuration");
	}
	if (r == 0)
		host_note_configuration(session_host(run->session), true);
	return r;
}

/* Gives up what the plan does not need, after a look whether it can sample with the rest. */
static bool prepare(struct run *run, const struct plan *plan)
{
	struct error err = ERROR_NULL;
	int r = kept_choose(&run->kept, plan, 0, &err);

	/* A reload reads the files again, which may be readable to root alone. */
	if (r == 0 && !live_config_readable(&run->live))
		r = kept_choose(&run->kept, plan, PRIVILEGE(CAP_DAC_READ_SEARCH), &err);
	if (r == 0 && session_samples(plan) &&
	    !precheck_announce("run", session_has_sampler(plan), run->argv))
		return false;
	if (r == 0)
		r = kept_settle(&run->kept, &err);
	if (r < 0) {
		fprintf(stderr, "andiron run: %s\n", err.text);
		return false;
	}
	if (run->kept.held & ~run->kept.mask)
		log_printf(&run->log, ANDIRON_LOG_INFO, RUN_LOG_NAME,
			   "capabilities kept: %s; all others are given up",
			   kept_names(run->kept.mask).text);
	return true;
}

static int make_plan(struct run *run, struct plan **ret)
{
	struct error err = ERROR_NULL;

	if (followed_files_init(&run->files, &err) < 0) {
		fprintf(stderr, "andiron run: %s\n", err.text);
		return EXIT_FAILED;
	}
	run->registry = plugin_path_open(&run->plugin_dirs, false);
	if (!run->registry || open_watch(run) < 0)
		return EXIT_FAILED;
	run->live = (struct live_config){
		.paths = run->paths,
		.n_paths = run->n_paths,
		.registry = &run->registry,
		.kept = &run->kept,
		.log = &run->log,
		.more = run->alloy.sources,
		.n_more = ALLOY_FLAGS_TEXTS,
		.log_level = run->log_level,
		.log_format = run->log_format,
		.files = &run->files,
	};
	return live_config_begin(&run->live, ret) < 0 ? EXIT_FAILED : EXIT_OK;
}

/* Services begin with 1,024 descriptors and may have more: the low number is for programs that use
 * select(2). Thousands of requests at once take one each. */
static void allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= DESCRIPTORS)
		return;
	limit.rlim_cur = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
	setrlimit(RLIMIT_NOFILE, &limit); /* else there are fewer requests at once */
}

static int run_agent(struct run *run)
{
	int nice = haste_begin(HASTE_GAIN_START), r;
	struct error err = ERROR_NULL;
	struct plan *plan = NULL;
	int code = make_plan(run, &plan);

	haste_end(nice);
	if (code != EXIT_OK)
		return code;
	allow_descriptors();
	alloy_flags_say(&run->alloy, &run->log);
	say_how_it_watches(run);
	if (!prepare(run, plan)) {
		plan_free(plan);
		return EXIT_FAILED;
	}
	r = open_session(run, plan, &err);
	if (r == 0) {
		r = session_run(run->session, &err);
		if (session_report(run->session) < 0 && r == 0)
			return EXIT_FAILED;
	}
	if (r < 0)
		fprintf(stderr, "andiron run: %s\n", *err.text ? err.text : strerror(-r));
	return r < 0 ? EXIT_FAILED : EXIT_OK;
}

static void run_fini(struct run *run)
{
	session_free(run->session);
	config_watch_free(run->watch);
	followed_files_fini(&run->files);
	live_config_fini(&run->live);
	registry_free(run->registry);
	vec_free(&run->plugin_dirs);
	alloy_flags_fini(&run->alloy);
}

/* Taken, and where it means nothing here, noted. */
static const struct flag flags[] = {
	PLUGIN_DIR_FLAG(struct run, plugin_dirs),
	{"watch", 0, FLAG_INTO(struct run, watches), NULL,
	 "read the configuration again when its files change"},
	{"status", 0, FLAG_INTO(struct run, status), "PATH",
	 "answer metrics and health on this unix socket"},
	{"ledger", 0, FLAG_INTO(struct run, ledger), "FILE",
	 "write the counts of samples as JSON at the end"},
	{"log-level", 0, FLAG_INTO(struct run, log_level), "LEVEL",
	 "least level to log: error, warn, info (default) or debug; instead of what the "
	 "configuration's block logging says",
	 .choices = log_levels},
	{"log-format", 0, FLAG_INTO(struct run, log_format), "FORMAT",
	 "form of the log: text (default), logfmt or json; likewise", .choices = log_formats},
	{"drain-deadline", 0, FLAG_INTO(struct run, drain_ns), "DURATION",
	 "how long stopping may take to deliver what is queued (default 10s)", .min = 1},
	ALLOY_FLAGS(struct run, alloy),
	{0},
};

static int run_verb(int argc, char **argv)
{
	struct run run = {.drain_ns = 10 * NS_PER_SEC, .argv = argv};
	struct error err = ERROR_NULL;
	int first, code = options_parse(&verb_run, &run, argc, argv, &first);

	if (code == OPTIONS_DONE && first == argc)
		code = options_wrong(&verb_run, "which configuration? Name a file or a directory");
	if (code == OPTIONS_DONE && alloy_flags_config(&run.alloy, &err) < 0)
		code = options_wrong(&verb_run, "%s", err.text);
	if (code == OPTIONS_DONE) {
		run.paths = argv + first;
		run.n_paths = (size_t)(argc - first);
		log_init(&run.log, STDERR_FILENO, ANDIRON_LOG_INFO, LOG_TEXT);
		heap_keep_small();
		code = run_agent(&run);
		log_fini(&run.log);
	}
	run_fini(&run);
	return code;
}

const struct command verb_run = {
	.verb = "run",
	.run = run_verb,
	.usage = "[OPTIONS] CONFIG…",
	.brief = "run the agent that a configuration describes",
	.summary =
		"Runs the components that the configuration describes. CONFIG is a file, or a "
		"directory of *.alloy files.\n"
		"SIGTERM or Ctrl-C delivers what is queued and stops; a second one stops at "
		"once. SIGHUP, or with --watch a change of the files, reads the configuration "
		"again; one with errors is refused, and the old one goes on. SIGHUP also takes "
		"plugin files up that were replaced. Flags of Alloy's `run` are accepted; the log "
		"says of each that has no effect here why.",
	.examples = "sudo andiron run --status /run/andiron.sock agent.alloy\n"
		    "curl --unix-socket /run/andiron.sock http://localhost/metrics\n",
	.flags = flags,
	.mixed = true,
};
