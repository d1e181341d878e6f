/* SPDX-License-Identifier: Apache-2.0 */
/* What the host tells about itself: ledger, metrics, health (host.h). */
#include "abi/value.h"
#include "base/json.h"
#include "base/clock.h"
#include "host/report/inspect.h"
#include "host/report/report.h"
#include "host/state.h"

#include <errno.h>
#include <math.h>
#include <time.h>

const struct ledger_view *host_ledger(struct host *host)
{
	static const struct ledger_view empty;
	const struct ledger_view *view = ledger_view(&host->ledger);

	return view ? view : &empty;
}

int host_ledger_json(struct host *host, struct buf *out)
{
	const struct ledger_view *view = ledger_view(&host->ledger);

	return view ? ledger_json(view, out) : -ENOMEM;
}

int host_ledger_line(struct host *host, struct buf *out)
{
	const struct ledger_view *view = ledger_view(&host->ledger);

	return view ? ledger_line(view, out) : -ENOMEM;
}

int host_metrics(struct host *host, struct buf *out)
{
	struct series_list all = {0};
	struct arena arena = ARENA_NULL;
	int r;

	vec_each (&host->instances, at)
		metrics_pull(*at, false);
	r = metrics_host(host, &arena, &all);
	vec_each (&host->metrics.components, c)
		vec_each (&c->series, s)
			if (r == 0 && !vec_push(&all, *s))
				r = -ENOMEM;
	if (r == 0)
		r = metrics_write(&all, out);
	vec_free(&all);
	arena_free(&arena);
	return r;
}

double host_metric(struct host *host, const char *component, const char *name)
{
	double sum = (double)NAN;

	vec_each (&host->instances, at)
		if (strcmp((*at)->name, component) == 0)
			metrics_pull(*at, false);
	vec_each (&host->metrics.components, c) {
		if (strcmp(c->component, component) != 0)
			continue;
		vec_each (&c->series, s)
			if (strcmp(s->name, name) == 0)
				sum = isnan(sum) ? s->value : sum + s->value;
	}
	return sum;
}

void report_put_time(struct buf *out, int64_t real_ns)
{
	time_t seconds = (time_t)(real_ns / NS_PER_SEC);
	struct tm tm;
	char text[32];

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	json_put_str(out, str_of(text));
}

struct health report_waiting(const struct host *host, const struct plan_waiting *waiting)
{
	struct health health = {
		.state = ANDIRON_HEALTH_UNHEALTHY,
		.since_ns = host->configuration.taken_ns,
	};

	snprintf(health.text, sizeof(health.text), "waits for a value of %s", waiting->waits_for);
	return health;
}

static void put_health(struct buf *out, const char *id, const struct health *health, bool *first)
{
	buf_str_append(out, *first ? STR("") : STR(", "));
	*first = false;
	buf_str_append(out, STR("{\"id\": "));
	json_put_str(out, str_of(id));
	buf_printf(out, ", \"health\": \"%s\", \"message\": ", health_name(health->state));
	json_put_str(out, str_of(health->text));
	buf_str_append(out, STR(", \"since\": "));
	report_put_time(out, health->since_ns);
	buf_putc(out, '}');
}

/* Healthy as a whole if nobody is worse than not yet known, or waits. */
static bool all_healthy(struct host *host)
{
	bool healthy = !host->plan || host->plan->waiting.n == 0;

	vec_each (&host->instances, at) {
		pthread_mutex_lock(&(*at)->lock);
		healthy = healthy && (*at)->health.state <= ANDIRON_HEALTH_HEALTHY;
		pthread_mutex_unlock(&(*at)->lock);
	}
	return healthy;
}

int host_health_json(struct host *host, struct buf *out)
{
	bool first = true;

	buf_printf(out, "{\"healthy\": %s, \"components\": [",
		   all_healthy(host) ? "true" : "false");
	vec_each (&host->instances, at) {
		struct health health;

		pthread_mutex_lock(&(*at)->lock);
		health = (*at)->health;
		pthread_mutex_unlock(&(*at)->lock);
		put_health(out, (*at)->name, &health, &first);
	}
	for (size_t n = 0; host->plan && n < host->plan->waiting.n; n++) {
		struct health health = report_waiting(host, &host->plan->waiting.p[n]);

		put_health(out, host->plan->waiting.p[n].id, &health, &first);
	}
	buf_str_append(out, STR("]}\n"));
	return out->failed ? -ENOMEM : 0;
}

/* An answer in the making; its component is written with its first target. */
struct listing {
	struct buf *out;
	const char *component;
	bool open;
};

static void put_target(void *self, const struct andiron_target_processes_row *t)
{
	struct listing *l = self;
	struct buf *out = l->out;

	if (!l->open) {
		buf_str_append(out, out->n > 1 ? STR(",\n ") : STR("\n "));
		json_put_str(out, str_of(l->component));
	}
	buf_str_append(out, l->open ? STR(",\n  {\"target\": {") : STR(": [\n  {\"target\": {"));
	l->open = true;
	for (uint64_t i = 0; i < t->n_labels; i++) {
		buf_str_append(out, i ? STR(", ") : STR(""));
		json_put_str(out, abi_str(t->labels[i].key));
		buf_str_append(out, STR(": "));
		json_put_str(out, abi_str(t->labels[i].value));
	}
	buf_str_append(out, STR("}, \"processes\": ["));
	for (uint64_t i = 0; i < t->n_processes; i++) {
		buf_printf(out, "%s{\"pid\": %u, \"name\": ", i ? ", " : "", t->processes[i].pid);
		json_put_str(out, abi_str(t->processes[i].name));
		if (t->processes[i].runtime.len) {
			buf_str_append(out, STR(", \"runtime\": "));
			json_put_str(out, abi_str(t->processes[i].runtime));
		}
		buf_putc(out, '}');
	}
	buf_putc(out, ']');
	if (t->why.len) {
		buf_str_append(out, STR(", \"why\": "));
		json_put_str(out, abi_str(t->why));
	}
	buf_putc(out, '}');
}

int host_targets_json(struct host *host, struct buf *out)
{
	int r = 0;

	buf_putc(out, '{');
	vec_each (&host->instances, at) {
		struct listing l = {.out = out, .component = (*at)->name};
		const struct andiron_target_processes_sink sink = {
			.size = sizeof(sink), .self = &l, .add = put_target};

		if (r == 0 && !(*at)->retiring)
			r = inspect_target_processes(host, l.component, &sink);
		buf_str_append(out, l.open ? STR("]") : STR(""));
	}
	buf_str_append(out, STR("}\n"));
	return r == 0 && out->failed ? -ENOMEM : r;
}
