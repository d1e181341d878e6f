/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron targets`: the targets that discovery and relabeling make of this machine or
 * cluster, and the rule that dropped a target. It runs the discovery components of a
 * configuration without BPF until nothing changes any more, lists the targets, and ends. */
#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "cli/cli.h"
#include "host/config.h"
#include "cli/targets/discovery-plan.h"
#include "host/report/inspect.h"
#include "cli/plugin-path.h"
#include "cli/targets/target-listing.h"
#include "cli/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOOK_EVERY_NS (20 * NS_PER_SEC / 1000)
#define QUIET_NS      (300 * NS_PER_SEC / 1000) /* for so long nothing has moved */

struct targets_run {
	struct texts plugin_dirs, from;
	const char *path, *component;
	bool json, match;
	int64_t timeout_ns;

	struct registry *registry;
	struct config *config;
	struct session *session;
	struct discovery_plan plan;
	struct target_listing listing;
	int64_t deadline_ns; /* CLOCK_MONOTONIC */
	bool looked, interrupted;
	char *waiting; /* the component that had not settled at the deadline */
	struct buf trouble;
};

/* --- Looking --- */

static void add_row(void *context, int change, struct target_row *row)
{
	target_listing_add_row(context, row);
}

static void add_dropped(void *self, const struct andiron_dropped_target *target)
{
	target_listing_add_dropped(self, target);
}

/* False if a component is being called and must be asked again. */
static bool look(struct targets_run *run)
{
	struct host *host = session_host(run->session);
	const struct andiron_dropped_targets_sink sink = {
		.size = sizeof(sink), .self = &run->listing, .add = add_dropped};

	target_listing_free(&run->listing);
	run->listing = (struct target_listing){.failed = false};
	check(run->plan.components.n > 0);
	vec_each (&run->plan.components, c) {
		int r;

		target_listing_begin(&run->listing, c->id);
		if (c->given) {
			target_listing_add_file(&run->listing, c->given);
			continue;
		}
		look_targets(host, c->id, add_row, &run->listing);
		r = inspect_dropped_targets(host, c->id, &sink);
		if (r == -EBUSY)
			return false;
		run->listing.failed |= r == -ENOMEM;
	}
	return true;
}

/* Notes which component keeps discovery from settling, and its health. */
static void note_waiting(struct targets_run *run, const char *waiting)
{
	uint32_t state;

	run->waiting = str_dup(str_of(waiting ? waiting : "the graph"));
	if (waiting)
		look_health(session_host(run->session), waiting, &state, &run->trouble);
}

static void look_again(void *context)
{
	struct targets_run *run = context;
	const char *waiting = NULL;
	bool late = clock_mono() >= run->deadline_ns;

	if (run->looked)
		return;
	if (look_quiet_ns(session_host(run->session), &waiting) < QUIET_NS && !late)
		return;
	if (!look(run) && !late)
		return;
	run->looked = true;
	if (late)
		note_waiting(run, waiting);
	host_stop(session_host(run->session));
}

static void signalled(void *context, int number)
{
	struct targets_run *run = context;

	run->interrupted = true;
	host_stop(session_host(run->session));
}

/* --- The run --- */

static int open_session(struct targets_run *run, struct plan *plan, struct error *err)
{
	struct session_options options = {
		.verb = "targets",
		.host = {.log_level = ANDIRON_LOG_ERROR,
			 .log_fd = STDERR_FILENO,
			 .keep_targets = true,
			 .without_services = true},
		.signal = signalled,
		.context = run,
	};
	int r = session_new(&options, &run->session, err);

	if (r < 0) {
		plan_free(plan);
		return r;
	}
	r = session_load(run->session, plan, err);
	run->deadline_ns = clock_mono() + run->timeout_ns;
	if (r == 0)
		r = host_timer(session_host(run->session), 0, LOOK_EVERY_NS, look_again, run);
	return r;
}

static int show(struct targets_run *run)
{
	struct buf out = {.limit = (size_t)4 << 30};
	int r = 0;

	if (run->match)
		r = target_listing_match(&run->listing);
	if (r < 0)
		fprintf(stderr, "andiron targets: cannot read /proc: %s\n", strerror(-r));
	if (run->json)
		target_listing_json(&run->listing, run->component, &out);
	else
		target_listing_text(&run->listing, run->component, &out);
	if (run->listing.failed || out.failed) {
		fprintf(stderr, "andiron targets: out of memory\n");
		r = -ENOMEM;
	} else if (fwrite(out.p, 1, out.n, stdout) != out.n) {
		r = -EIO;
	}
	buf_free(&out);
	return r;
}

/* Of targets that expressions look into; a foreach alone makes nothing here. */
static int check_lists(const struct plan *plan, struct error *err)
{
	vec_each (&plan->nodes, node)
		if (str_ends(str_of(node->id), STR("[]")))
			return error_set(err, -EOPNOTSUPP,
					 "an expression looks into %.*s, which only `andiron run` "
					 "does",
					 (int)strlen(node->id) - 2, node->id);
	return 0;
}

static int read_plan(struct targets_run *run, struct plan **ret, struct error *err)
{
	int r;

	run->config = config_new();
	run->registry = plugin_path_open(&run->plugin_dirs, false);
	if (!run->config || !run->registry)
		return error_set(err, -ENOMEM, "out of memory");
	r = config_add_path(run->config, run->path, err);
	if (r < 0)
		return r;
	r = config_plan(run->config, run->registry, true, stderr, ret);
	if (r < 0)
		return r; /* what is wrong was printed */
	r = check_lists(*ret, err);
	if (r == 0)
		r = discovery_plan_cut(*ret, run->component, &run->from, &run->plan, err);
	if (r < 0)
		plan_free(*ret);
	return r;
}

static int run_targets(struct targets_run *run)
{
	struct error err = ERROR_NULL;
	struct plan *plan = NULL;
	int r = read_plan(run, &plan, &err);

	if (r == 0)
		r = open_session(run, plan, &err);
	if (r == 0)
		r = session_run(run->session, &err);
	if (r < 0 && *err.text)
		fprintf(stderr, "andiron targets: %s\n", err.text);
	if (run->interrupted || !run->looked)
		return EXIT_FAILED;
	if (run->waiting)
		fprintf(stderr,
			"andiron targets: not settled within %.3g s: %s%s%.*s; this is what was "
			"found so far\n",
			(double)run->timeout_ns / NS_PER_SEC, run->waiting,
			run->trouble.n ? ": " : "", STR_FMT(buf_str(&run->trouble)));
	return show(run) == 0 && r == 0 && !run->waiting ? EXIT_OK : EXIT_FAILED;
}

static void run_fini(struct targets_run *run)
{
	session_free(run->session);
	discovery_plan_fini(&run->plan);
	target_listing_free(&run->listing);
	config_free(run->config);
	registry_free(run->registry);
	buf_free(&run->trouble);
	free(run->waiting);
	vec_free(&run->plugin_dirs);
	vec_free(&run->from);
}

static int run_verb(int argc, char **argv)
{
	struct targets_run run = {.timeout_ns = 10 * NS_PER_SEC};
	int first, code = options_parse(&verb_targets, &run, argc, argv, &first);

	if (code == OPTIONS_DONE && first == argc)
		code = options_wrong(&verb_targets,
				     "which configuration? Name a file or a directory");
	if (code == OPTIONS_DONE && argc - first > 2)
		code = options_wrong(&verb_targets,
				     "one configuration and one component at a time");
	if (code == OPTIONS_DONE) {
		run.path = argv[first];
		run.component = argv[first + 1]; /* NULL behind the last */
		code = run_targets(&run);
	}
	run_fini(&run);
	return code;
}

static const struct flag flags[] = {
	{"json", 0, FLAG_INTO(struct targets_run, json), NULL, "print JSON"},
	{"from", 0, FLAG_INTO(struct targets_run, from), "[COMPONENT=]FILE",
	 "take targets from a JSON file in place of what COMPONENT would find; may be repeated"},
	{"match", 0, FLAG_INTO(struct targets_run, match), NULL,
	 "add the processes that belong to each target"},
	{"timeout", 0, FLAG_INTO(struct targets_run, timeout_ns), "DURATION",
	 "show what was found by then, if discovery has not settled (default 10s)", .min = 1},
	PLUGIN_DIR_FLAG(struct targets_run, plugin_dirs),
	{0},
};

const struct command verb_targets = {
	.verb = "targets",
	.run = run_verb,
	.usage = "[OPTIONS] CONFIG [COMPONENT]",
	.brief = "show what is discovered, and which rule dropped what",
	.summary =
		"Shows the targets of each discovery component of a configuration, or of one of "
		"them. For each target that a rule dropped it shows the rule, with file and "
		"line. Runs discovery and relabeling only, until they have settled. Needs no BPF, "
		"and root only where a component needs it.",
	.examples = "andiron targets agent.alloy\n"
		    "andiron targets agent.alloy discovery.relabel.pods --json\n"
		    "andiron targets agent.alloy --from pods.json --match\n",
	.flags = flags,
	.mixed = true,
};
