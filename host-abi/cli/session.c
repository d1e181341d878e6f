/* SPDX-License-Identifier: Apache-2.0 */
/* See session.h. The cost is this process's processor time between live and
 * the end over the time that has passed, so start-up (loading programs,
 * reading /proc) is not spread over a short run. The kernel's part is not in
 * it: BPF runs on the time of the thread that it interrupts, and the sampler measures it. */
#include "cli/session.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#define SAMPLER        "pyroscope.ebpf"
#define ENOUGH_SAMPLES 200
#define ECHO_NS        (NS_PER_SEC / 2)
#define METRIC_COST    "andiron_ebpf_bpf_ns_per_sample"

struct session {
	struct session_options options;
	struct host *host;
	int signal_fd;
	struct last_signal last_signal;
	char sampler[128];           /* id of the first node that samples, or "" */
	int64_t live_mono, live_cpu; /* 0: not live yet */
	double cost;                 /* of a core, in per cent; NAN if never live */
};

void session_free(struct session *s)
{
	if (!s)
		return;
	host_free(s->host);
	closep(&s->signal_fd);
	free(s);
}
DEFINE_CLEANUP(struct session *, session_free);

static int64_t cpu_ns(void)
{
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u) < 0)
		return 0;
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_SEC +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

static void became_live(void *context, const char *failed)
{
	struct session *s = context;

	check(s->live_mono == 0);
	s->live_mono = clock_mono();
	s->live_cpu = cpu_ns();
	if (s->options.live)
		s->options.live(s->options.context, failed);
}

static int reload(void *context, struct error *err)
{
	const struct session *s = context;

	return s->options.reload(s->options.context, err);
}

static int refresh(void *context)
{
	const struct session *s = context;

	return s->options.refresh(s->options.context);
}

bool signal_is_echo(struct last_signal *last, int number, int64_t now_ns)
{
	if (number != SIGHUP && number == last->number && now_ns - last->at_ns < ECHO_NS)
		return true;
	*last = (struct last_signal){number, now_ns};
	return false;
}

int session_next_signal(struct session *s)
{
	struct signalfd_siginfo info;

	while (read(s->signal_fd, &info, sizeof(info)) == sizeof(info))
		if (!signal_is_echo(&s->last_signal, (int)info.ssi_signo, clock_mono()))
			return (int)info.ssi_signo;
	return 0;
}

static void signal_came(void *context)
{
	struct session *s = context;
	int number;

	while ((number = session_next_signal(s)) != 0)
		s->options.signal(s->options.context, number);
}

static int take_signals(struct session *s)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signal_fd < 0 ? -errno : 0;
}

int session_new(const struct session_options *options, struct session **ret, struct error *err)
{
	_cleanup_(session_freep) struct session *s = calloc(1, sizeof(*s));
	int r;

	check(options->signal);
	if (!s)
		return error_set(err, -ENOMEM, "out of memory");
	s->signal_fd = -1;
	s->cost = (double)NAN;
	s->options = *options;
	s->options.host.worker = "/proc/self/exe"; /* also when the file was replaced */
	s->options.host.live = became_live;
	s->options.host.reload = options->reload ? reload : NULL;
	s->options.host.refresh = options->refresh ? refresh : NULL;
	s->options.host.context = s;
	r = take_signals(s);
	if (r < 0)
		return error_errno(err, r, "cannot take signals");
	r = host_new(&s->options.host, &s->host, err);
	if (r < 0)
		return r;
	r = host_watch(s->host, s->signal_fd, signal_came, s);
	if (r < 0)
		return error_errno(err, r, "cannot watch for signals");
	*ret = take_ptr(s);
	return 0;
}

struct host *session_host(struct session *s)
{
	return s->host;
}

int session_signal_fd(const struct session *s)
{
	return s->signal_fd;
}

static bool is_sampler(const struct registered_component *registered)
{
	return strcmp(registered->component->name, SAMPLER) == 0;
}

/* A component that needs this capability takes samples, or the kernel's events. */
static bool samples(const struct registered_component *registered)
{
	const char *const *capability = registered->component->capabilities;

	for (; capability && *capability; capability++)
		if (strcmp(*capability, "CAP_PERFMON") == 0)
			return true;
	return is_sampler(registered);
}

static bool any_node(const struct plan *plan, bool (*is)(const struct registered_component *))
{
	vec_each (&plan->nodes, node)
		if (is(node->registered))
			return true;
	vec_each (&plan->waiting, node)
		if (node->registered && is(node->registered))
			return true;
	return false;
}

bool session_samples(const struct plan *plan)
{
	return any_node(plan, samples);
}

bool session_has_sampler(const struct plan *plan)
{
	return any_node(plan, is_sampler);
}

int session_load(struct session *s, struct plan *plan, struct error *err)
{
	check(s->host && plan);
	s->sampler[0] = '\0';
	vec_each (&plan->nodes, node)
		if (!*s->sampler && is_sampler(node->registered))
			snprintf(s->sampler, sizeof(s->sampler), "%s", node->id);
	vec_each (&plan->waiting, node)
		if (!*s->sampler && node->registered && is_sampler(node->registered))
			snprintf(s->sampler, sizeof(s->sampler), "%s", node->id);
	return host_load(s->host, plan, err);
}

int session_run(struct session *s, struct error *err)
{
	int r = host_run(s->host, err);
	int64_t passed = clock_mono() - s->live_mono;

	if (s->live_mono && passed > 0)
		s->cost = 100.0 * (double)(cpu_ns() - s->live_cpu) / (double)passed;
	return r;
}

static int write_json(struct session *s)
{
	struct error err = ERROR_NULL;
	struct buf json = BUF_NULL;
	int r = host_ledger_json(s->host, &json);

	if (r == 0)
		r = file_replace(s->options.ledger_path, json.p, json.n, &err);
	if (r < 0)
		fprintf(stderr, "andiron %s: the ledger is not written: %s\n", s->options.verb,
			*err.text ? err.text : "out of memory");
	buf_free(&json);
	return r < 0 ? -EIO : 0;
}

/* What a sample has cost in the kernel; 0: it cannot be said. The kernel counts the time of all
 * ticks together, so this is the cost of a sample only where most ticks have taken one. */
static double cost_of_sample(struct session *s)
{
	const struct ledger_view *ledger = host_ledger(s->host);
	uint64_t skipped = 0;

	if (!*s->sampler || !ledger)
		return 0;
	for (size_t i = 0; i < ledger->n_skipped; i++)
		skipped += ledger->skipped[i].samples;
	if (ledger->taken < ENOUGH_SAMPLES || skipped > ledger->taken / 4)
		return 0;
	return host_metric(s->host, s->sampler, METRIC_COST);
}

int session_report(struct session *s)
{
	double per_sample = cost_of_sample(s);
	struct buf line = BUF_NULL;

	if (host_ledger_line(s->host, &line) == 0) {
		if (!isnan(s->cost))
			buf_printf(&line, "; own cost: %.2f %% of a core", s->cost);
		if (per_sample > 0)
			buf_printf(&line, ", %.0f ns of BPF per sample", per_sample);
		if (!line.failed && s->options.log && s->options.log->format != LOG_TEXT)
			log_printf(s->options.log, ANDIRON_LOG_INFO, "andiron", "%.*s",
				   STR_FMT(buf_str(&line)));
		else if (!line.failed)
			fprintf(stderr, "%.*s\n", STR_FMT(buf_str(&line)));
	}
	buf_free(&line);
	return s->options.ledger_path ? write_json(s) : 0;
}
