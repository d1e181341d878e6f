/* SPDX-License-Identifier: Apache-2.0 */
/* The host's own series: the ledger, queues, health and the process. Names begin with andiron_;
 * those of Alloy that dashboards and alerts look for are there under their own. */
#include "base/clock.h"
#include "base/file.h"
#include "host/registry/generation.h"
#include "host/report/metrics.h"
#include "host/state.h"
#include "host/report/escape.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#define STAT_START 22 /* the field of /proc/PID/stat, counted from 1 */

struct adding {
	struct arena *arena;
	struct series_list *list;
	bool failed;
};

/* Labels: pairs of key and value, NULL behind the last; or NULL for none. */
static void add(struct adding *a, uint32_t kind, const char *name, const char *help, double value,
		const char *const *labels)
{
	struct series s = {name, help, kind, NULL, value};
	struct buf out = BUF_NULL;

	for (int i = 0; labels && labels[i]; i += 2) {
		buf_printf(&out, "%c%s=", i ? ',' : '{', labels[i]);
		text_label(&out, str_of(labels[i + 1]));
	}
	if (out.n)
		buf_putc(&out, '}');
	s.labels = arena_str(a->arena, buf_str(&out)).p;
	if (out.failed || !s.labels || !vec_push(a->list, s))
		a->failed = true;
	buf_free(&out);
}

#define COUNTER     ANDIRON_METRIC_COUNTER
#define GAUGE       ANDIRON_METRIC_GAUGE
#define LABELS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* A series of ours, and the same under Alloy's name. */
static void add_twice(struct adding *a, uint32_t kind, const char *name, const char *alloy,
		      const char *help, double value)
{
	add(a, kind, name, help, value, NULL);
	add(a, kind, alloy, help, value, NULL);
}

static void add_writer(struct adding *a, const struct ledger_writer *w)
{
	const char *const writer[] = {"writer", w->component, NULL};

	add(a, COUNTER, "andiron_samples_delivered_total", "Samples that arrived.",
	    (double)w->delivered, writer);
	add(a, COUNTER, "andiron_samples_carried_total", "Samples replayed from an earlier run.",
	    (double)w->carried, writer);
	add(a, GAUGE, "andiron_samples_spooled", "Samples kept on disk for later.",
	    (double)w->spooled, writer);
	add(a, GAUGE, "andiron_samples_uncertain", "Samples sent without an answer.",
	    (double)w->uncertain, writer);
	add(a, GAUGE, "andiron_samples_in_flight", "Samples on their way to the writer.",
	    (double)w->in_flight, writer);
	for (size_t i = 0; i < w->n_reasons; i++) {
		char *reason = arena_printf(a->arena, "%s:%s", w->reasons[i].component,
					    w->reasons[i].reason);

		if (reason)
			add(a, COUNTER, "andiron_samples_dropped_total",
			    "Samples that did not reach the writer, and why.",
			    (double)w->reasons[i].samples,
			    LABELS("writer", w->component, "reason", reason));
		a->failed = a->failed || !reason;
	}
}

static void add_ledger(struct adding *a, struct host *host)
{
	const struct ledger_view *view = ledger_view(&host->ledger);

	if (!view) {
		a->failed = true;
		return;
	}
	add(a, COUNTER, "andiron_samples_taken_total", "Samples taken.", (double)view->taken,
	    NULL);
	for (size_t i = 0; i < view->n_skipped; i++)
		add(a, COUNTER, "andiron_samples_skipped_total",
		    "Samples that were not to be taken, and why.", (double)view->skipped[i].samples,
		    LABELS("reason", view->skipped[i].reason));
	for (size_t i = 0; i < view->n_writers; i++)
		add_writer(a, &view->writers[i]);
	add(a, GAUGE, "andiron_ledger_balanced", "1 if every sample is accounted for.",
	    ledger_balanced(&host->ledger, NULL, NULL), NULL);
}

/* What comes to a component and goes on from it. */
static void add_flow(struct adding *a, struct instance *i)
{
	const char *const component[4] = {"component_id", i->name};

	if (i->component->batch) {
		add(a, GAUGE, "andiron_queue_bytes", "Bytes of batches that wait.",
		    (double)queue_bytes(i), component);
		add(a, COUNTER, "andiron_samples_received_total",
		    "Samples that were handed to the component.", (double)atomic_load(&i->received),
		    component);
	}
	if (i->receivers.n)
		add(a, COUNTER, "andiron_samples_sent_total",
		    "Samples that the component sent on, to each of its receivers.",
		    (double)atomic_load(&i->sent), component);
}

static void add_components(struct adding *a, struct host *host)
{
	double n[ANDIRON_HEALTH_EXITED + 1] = {0};

	vec_each (&host->instances, at) {
		uint32_t state;

		pthread_mutex_lock(&(*at)->lock);
		state = (*at)->health.state;
		pthread_mutex_unlock(&(*at)->lock);
		n[state]++;
		add(a, GAUGE, "andiron_component_healthy", "1 if the component is healthy.",
		    state == ANDIRON_HEALTH_HEALTHY, LABELS("component_id", (*at)->name));
		add_flow(a, *at);
	}
	for (size_t i = 0; host->plan && i < host->plan->waiting.n; i++) {
		n[ANDIRON_HEALTH_UNHEALTHY]++;
		add(a, GAUGE, "andiron_component_healthy", "1 if the component is healthy.", 0,
		    LABELS("component_id", host->plan->waiting.p[i].id));
	}
	for (uint32_t s = 0; s <= ANDIRON_HEALTH_EXITED; s++)
		add(a, GAUGE, "alloy_component_controller_running_components",
		    "Components by health.", n[s], LABELS("health_type", health_name(s)));
}

static void add_plugin(struct adding *a, const struct host *host, const struct plugin_generation *g)
{
	const char *number = arena_printf(a->arena, "%u", g->number);
	size_t n = 0;

	vec_each (&host->instances, at)
		n += (*at)->generation == g;
	if (number)
		add(a, GAUGE, "andiron_plugin_components",
		    "Components of a plugin file that run. One that is put in its place is the "
		    "next generation.",
		    (double)n,
		    LABELS("plugin", g->plugin->name, "version", g->plugin->version, "generation",
			   number, "build_id", g->build_id, "path", g->path));
	a->failed = a->failed || !number;
}

/* A line for each file, however many components are of it. */
static void add_plugins(struct adding *a, struct host *host)
{
	VEC(const struct plugin_generation *) said = {0};

	vec_each (&host->instances, at) {
		bool is_new = (*at)->generation != NULL;

		vec_each (&said, g)
			is_new = is_new && *g != (*at)->generation;
		if (!is_new)
			continue;
		if (!vec_push(&said, (*at)->generation)) {
			a->failed = true;
			break;
		}
		add_plugin(a, host, (*at)->generation);
	}
	vec_free(&said);
}

static void add_objects(struct adding *a, struct host *host)
{
	struct objects_count count = objects_count(host->objects);

	add(a, GAUGE, "andiron_objects", "Mapped files that are known.", (double)count.n_objects,
	    NULL);
	add(a, GAUGE, "andiron_objects_open", "Descriptors of mapped files.", (double)count.n_open,
	    NULL);
}

static void add_configuration(struct adding *a, struct host *host)
{
	if (host->configuration.taken_ns == 0)
		return;
	add(a, GAUGE, "alloy_config_last_load_successful",
	    "1 if the configuration that was tried last is the one that runs.",
	    !host->configuration.refused, NULL);
	add(a, GAUGE, "andiron_configuration_waiting",
	    "1 while a changed configuration waits for a value.", host->configuration.waits,
	    NULL);
	add(a, GAUGE, "alloy_config_last_load_success_timestamp_seconds",
	    "When the configuration that runs was taken.",
	    (double)host->configuration.taken_ns / (double)NS_PER_SEC, NULL);
	add_twice(a, COUNTER, "andiron_configurations_refused_total",
		  "alloy_config_load_failures_total",
		  "Changed configurations that were not taken; the log says why.",
		  (double)host->configuration.n_refused);
}

/* Seconds since 1970 at which the process began; 0: it cannot be said. */
static double process_start(void)
{
	struct buf text = BUF_NULL;
	uint64_t ticks = 0;
	int64_t age_ns;

	if (file_read(AT_FDCWD, "/proc/self/stat", &text, 4096) == 0) {
		struct str rest = buf_str(&text);

		while (str_find(rest, ')') < rest.n) /* the program's name may hold anything */
			str_cut(&rest, ')');
		for (int field = 2; field < STAT_START; field++)
			str_cut(&rest, ' ');
		if (!str_u64(str_cut(&rest, ' '), &ticks))
			ticks = 0;
	}
	buf_free(&text);
	if (ticks == 0)
		return 0;
	age_ns = clock_ns(CLOCK_BOOTTIME) -
		 (int64_t)(ticks * (NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK)));
	return (double)(clock_real() - age_ns) / (double)NS_PER_SEC;
}

static void add_process(struct adding *a, struct host *host)
{
	struct buf text = BUF_NULL;
	struct str rest;
	uint64_t pages = 0, resident = 0;
	double page = (double)sysconf(_SC_PAGESIZE);

	add_twice(a, COUNTER, "andiron_process_cpu_seconds_total",
		  "alloy_resources_process_cpu_seconds_total", "CPU time of the process.",
		  (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) / (double)NS_PER_SEC);
	if (file_read(AT_FDCWD, "/proc/self/statm", &text, 256) == 0) {
		rest = buf_str(&text);
		if (str_u64(str_cut(&rest, ' '), &pages) && str_u64(str_cut(&rest, ' '), &resident))
			add_twice(a, GAUGE, "andiron_process_resident_memory_bytes",
				  "alloy_resources_process_resident_memory_bytes",
				  "Resident memory.", (double)resident * page);
		add(a, GAUGE, "alloy_resources_process_virtual_memory_bytes", "Address space.",
		    (double)pages * page, NULL);
	}
	buf_free(&text);
	add(a, GAUGE, "alloy_resources_process_start_time_seconds", "When the process began.",
	    process_start(), NULL);
	add(a, GAUGE, "andiron_build_info", "The version that runs.", 1,
	    LABELS("version", ANDIRON_VERSION));
	add(a, GAUGE, "alloy_build_info", "The version of andiron that runs.", 1,
	    LABELS("version", ANDIRON_VERSION));
}

int metrics_host(struct host *host, struct arena *arena, struct series_list *list)
{
	struct adding a = {.arena = arena, .list = list};

	add_ledger(&a, host);
	add_components(&a, host);
	add_plugins(&a, host);
	add_objects(&a, host);
	add_configuration(&a, host);
	add_process(&a, host);
	return a.failed ? -ENOMEM : 0;
}
