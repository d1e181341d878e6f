/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron top`: which functions are on CPU now. It samples as `record` does, and a table shows the
 * last seconds again and again. Drawing is on the host's loop: nothing else of this process needs
 * it. */
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/doctor/precheck.h"
#include "cli/plugin-path.h"
#include "cli/privileges/kept.h"
#include "cli/record/request.h"
#include "cli/session.h"
#include "cli/top/screen.h"
#include "host/config.h"

#include <andiron/host.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LONGEST  (INT64_C(3600) * NS_PER_SEC)
#define PATIENCE 5 /* looks, for the first samples */

struct top_view {
	/* The caller's to fill in. */
	struct record_request request; /* of it: pids and rate_hz */
	struct texts plugin_dirs;
	int64_t interval_ns, window_ns;
	uint64_t rows, count;
	/* Its own. */
	struct live_profile *profile;
	struct live_view view;
	struct screen screen;
	struct registry *registry;
	struct config *config;
	struct session *session;
	uint64_t looks, drawn;
	bool live, failed, leaving;
};

/* Nothing is written that could be lost: who leaves does not wait for what is on its way. */
static void leave(struct top_view *t)
{
	if (!t->leaving) {
		host_stop(session_host(t->session));
		host_stop(session_host(t->session));
	}
	t->leaving = true;
}

static void draw(struct top_view *t)
{
	if (screen_draw(&t->screen, &t->view) == -EIO)
		leave(t);
}

static void look(void *context)
{
	struct top_view *t = context;
	struct live_view fresh;

	if (t->leaving || t->screen.paused)
		return;
	t->looks++;
	if (live_profile_look(t->profile, &fresh) == 0) {
		live_view_fini(&t->view);
		t->view = fresh;
	} else {
		live_view_fini(&fresh);
	}
	/* What was sampled first is named meanwhile. An idle process has nothing, ever. */
	if (!t->screen.terminal && !t->view.covered_ns && t->looks < PATIENCE)
		return;
	draw(t);
	if (++t->drawn == t->count)
		leave(t);
}

static void typed(void *context)
{
	struct top_view *t = context;
	char keys[64];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

	if (n <= 0 && errno != EAGAIN)
		return leave(t); /* the terminal is gone */
	if (n > 0 && screen_type(&t->screen, keys, (size_t)n))
		leave(t);
	else
		draw(t);
}

static void signalled(void *context, int number)
{
	leave(context);
}

static void became_live(void *context, const char *failed)
{
	struct top_view *t = context;

	if (failed) {
		fprintf(stderr, "andiron top: %s could not start; the log above says why\n",
			failed);
		t->failed = true;
		return leave(t);
	}
	t->live = true;
	screen_open(&t->screen, t->rows);
	host_timer(session_host(t->session), t->interval_ns, t->interval_ns, look, t);
	if (t->screen.terminal)
		host_watch(session_host(t->session), STDIN_FILENO, typed, t);
	if (t->screen.terminal)
		draw(t);
}

static int add_target(void *context, pid_t pid, struct error *err)
{
	return buf_printf(context, "\n    {\"__process_pid__\" = \"%d\"},", pid);
}

static int write_config(struct top_view *t, struct buf *out, struct error *err)
{
	int r = 0;

	buf_printf(out,
		   "pyroscope.ebpf \"top\" {\n"
		   "  forward_to       = [top.screen.top.receiver]\n"
		   "  sample_rate      = %llu\n"
		   "  collect_interval = \"%lldms\"\n"
		   "  demangle         = \"full\"\n"
		   "  pid_label        = true\n"
		   "  targets_only     = %s\n"
		   "  targets          = [",
		   (unsigned long long)t->request.rate_hz,
		   (long long)(t->interval_ns / NS_PER_MSEC), t->request.pids.n ? "true" : "false");
	r = record_each_pid(&t->request, add_target, out, err);
	buf_printf(out, "]\n}\n\ntop.screen \"top\" {\n}\n");
	return r < 0 ? r : out->failed ? error_set(err, -ENOMEM, "out of memory") : 0;
}

static int plan_view(struct top_view *t, struct plan **ret, struct error *err)
{
	static const struct andiron_plugin *const given[] = {&live_profile_plugin, NULL};
	struct buf text = BUF_NULL;
	int r = write_config(t, &text, err);

	t->registry = plugin_path_open_with(&t->plugin_dirs, given);
	t->config = config_new();
	t->profile = live_profile_new(t->window_ns);
	if (r == 0 && (!t->registry || !t->config || !t->profile))
		r = error_set(err, -ENOMEM, "out of memory");
	if (r == 0)
		r = config_add_text(t->config, "top", buf_str(&text));
	if (r == 0 && config_plan(t->config, t->registry, true, stderr, ret) < 0)
		r = error_set(err, -EINVAL, "this machine cannot be sampled with these plugins");
	buf_free(&text);
	return r;
}

static int open_session(struct top_view *t, struct error *err)
{
	/* A warning among the rows would only be in the way. */
	struct session_options options = {
		.verb = "top",
		.host = {.log_level = ANDIRON_LOG_ERROR, .log_fd = STDERR_FILENO},
		.live = became_live,
		.signal = signalled,
		.context = t,
	};
	struct plan *plan = NULL;
	struct kept kept;
	int r = plan_view(t, &plan, err);

	if (r < 0)
		return r;
	r = kept_choose(&kept, plan, 0, err);
	if (r == 0)
		r = kept_settle(&kept, err);
	if (r == 0) {
		options.host.kernel_symbols = kept.kernel_symbols;
		r = session_new(&options, &t->session, err);
	}
	if (r < 0) {
		plan_free(plan);
		return r;
	}
	return session_load(t->session, plan, err);
}

static int show(struct top_view *t, char **again)
{
	struct error err = ERROR_NULL;
	int r;

	if (!precheck_announce("top", true, again))
		return EXIT_FAILED;
	r = open_session(t, &err);
	if (r == 0)
		r = session_run(t->session, &err);
	screen_close(&t->screen);
	if (r < 0 && !t->failed)
		fprintf(stderr, "andiron top: %s\n", *err.text ? err.text : strerror(-r));
	return r == 0 && t->live ? EXIT_OK : EXIT_FAILED;
}

static int check_wish(struct top_view *t)
{
	struct error err = ERROR_NULL;
	size_t n = 0;

	if (record_each_pid(&t->request, record_check_pid, &n, &err) < 0)
		return options_wrong(&verb_top, "%s", err.text);
	if (t->window_ns < t->interval_ns)
		return options_wrong(&verb_top, "--window is at least one --interval");
	return OPTIONS_DONE;
}

static int run(int argc, char **argv)
{
	struct top_view t = {
		.request = {.rate_hz = 97},
		.interval_ns = 2 * NS_PER_SEC,
		.window_ns = 10 * NS_PER_SEC,
		.rows = 20,
	};
	int first, code = options_parse(&verb_top, &t, argc, argv, &first);

	if (code == OPTIONS_DONE && first < argc)
		code = options_wrong(&verb_top, "what is \"%s\"? Processes are chosen by -p PID",
				     argv[first]);
	if (code == OPTIONS_DONE)
		code = check_wish(&t);
	if (code == OPTIONS_DONE)
		code = show(&t, argv);
	live_view_fini(&t.view);
	if (t.profile)
		live_profile_end(t.profile);
	session_free(t.session);
	live_profile_free(t.profile);
	config_free(t.config);
	registry_free(t.registry);
	vec_free(&t.request.pids);
	vec_free(&t.plugin_dirs);
	return code;
}

static const struct flag flags[] = {
	{"pid", 'p', FLAG_INTO(struct top_view, request.pids), "PID,…",
	 "these processes only; may be repeated"},
	{"frequency", 'F', FLAG_INTO(struct top_view, request.rate_hz), "HZ",
	 "samples per second and CPU (default 97)", .min = 1, .max = 999},
	{"interval", 'i', FLAG_INTO(struct top_view, interval_ns), "DURATION",
	 "how often the table is drawn anew (default 2s)", .min = NS_PER_SEC, .max = LONGEST},
	{"window", 'w', FLAG_INTO(struct top_view, window_ns), "DURATION",
	 "how far the table looks back (default 10s)", .min = NS_PER_SEC, .max = LONGEST},
	{"number", 'n', FLAG_INTO(struct top_view, rows), "N",
	 "rows of each table where output is no terminal (default 20)", .min = 1, .max = 100000},
	{"count", 'c', FLAG_INTO(struct top_view, count), "N",
	 "end after so many tables (default: never)", .min = 1, .max = INT64_MAX},
	PLUGIN_DIR_FLAG(struct top_view, plugin_dirs),
	{0},
};

const struct command verb_top = {
	.verb = "top",
	.run = run,
	.usage = "[OPTIONS]",
	.brief = "show which functions are on CPU now",
	.summary =
		"Samples the machine, or some processes, and shows the functions of the last "
		"seconds in a table that is drawn anew every two seconds. Figures are per cent of "
		"one core: of self in the function's own code, of total with all that it called.\n"
		"Keys: / searches in names and files (Enter keeps it, Esc shows all), s sorts by "
		"total or self, p shows programs or functions, space pauses, arrows and page keys "
		"scroll, q leaves.\n"
		"Where input or output is no terminal, tables follow each other as plain text.",
	.examples = "sudo andiron top\n"
		    "sudo andiron top -p 4711\n"
		    "sudo andiron top -c 1 -w 5s -i 5s | head\n",
	.flags = flags,
};
