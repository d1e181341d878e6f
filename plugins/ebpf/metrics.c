/* SPDX-License-Identifier: Apache-2.0 */
/* See metrics.h. */
#include "metrics.h"

#include "abi/value.h"

static void add(const struct andiron_metric_sink *sink, const char *name, const char *help,
		uint32_t kind, double value)
{
	struct andiron_metric metric = {.name = name, .help = help, .kind = kind, .value = value};

	sink->add(sink->self, &metric);
}

static void add_samples(const struct andiron_metric_sink *sink, const char *outcome, uint64_t n)
{
	struct andiron_kv label = {abi_str_of(STR("outcome")), abi_str_of(str_of(outcome))};
	struct andiron_metric metric = {
		.name = "andiron_ebpf_samples_total",
		.help = "Runs of the sampling program, by what became of the sample.",
		.kind = ANDIRON_METRIC_COUNTER,
		.n_labels = 1,
		.labels = &label,
		.value = (double)n,
	};

	sink->add(sink->self, &metric);
}

static void add_books(const struct engine_books *b, const struct andiron_metric_sink *sink)
{
	add_samples(sink, "sent", b->rows);
	add_samples(sink, "idle", b->idle);
	add_samples(sink, "unselected", b->unselected);
	add_samples(sink, "missed", b->missed);
	add_samples(sink, "map_full", b->dropped_map_full);
	add_samples(sink, "map_busy", b->dropped_map_busy);
	add_samples(sink, "ring_full", b->dropped_ring_full);
	add_samples(sink, "no_memory", b->dropped_memory);
}

void metrics_add(const struct engine_stats *s, const struct andiron_metric_sink *sink)
{
	add(sink, "pyroscope_ebpf_active_targets", "Targets with a pid or container id.",
	    ANDIRON_METRIC_GAUGE, (double)s->n_targets);
	add(sink, "andiron_ebpf_matched_targets",
	    "Targets to which a process that was sampled of late belongs.", ANDIRON_METRIC_GAUGE,
	    (double)s->n_matched);
	add(sink, "pyroscope_ebpf_profiling_sessions_total", "Intervals collected.",
	    ANDIRON_METRIC_COUNTER, (double)s->n_intervals);
	add(sink, "pyroscope_ebpf_profiling_sessions_failing_total",
	    "Intervals whose profile could not be built.", ANDIRON_METRIC_COUNTER,
	    (double)s->batch_failures);
	add_books(&s->total, sink);
	add(sink, "andiron_ebpf_samples_taken_total", "Samples taken by the kernel side.",
	    ANDIRON_METRIC_COUNTER, (double)s->total.taken);
	add(sink, "andiron_ebpf_book_mismatches_total",
	    "Intervals in which samples taken were not counts plus drops; always 0.",
	    ANDIRON_METRIC_COUNTER, (double)s->mismatches);
	add(sink, "andiron_ebpf_process_reports_total",
	    "Processes reported as new, or with new mappings, by the kernel side.",
	    ANDIRON_METRIC_COUNTER, (double)s->n_process_records);
	add(sink, "andiron_ebpf_processes", "Processes known.", ANDIRON_METRIC_GAUGE,
	    (double)s->n_processes);
	add(sink, "andiron_ebpf_cpus", "CPUs sampled.", ANDIRON_METRIC_GAUGE,
	    (double)s->session.n_cpus);
	add(sink, "andiron_ebpf_sample_rate_hertz", "Samples per second and CPU.",
	    ANDIRON_METRIC_GAUGE, (double)s->session.rate_hz);
	add(sink, "andiron_ebpf_map_bytes", "Memory of the BPF maps, as the kernel accounts it.",
	    ANDIRON_METRIC_GAUGE, (double)s->session.map_bytes);
	add(sink, "andiron_ebpf_verified_instructions", "Instructions the kernel's verifier walked.",
	    ANDIRON_METRIC_GAUGE, (double)s->session.verified_insns);
	add(sink, "andiron_ebpf_bpf_ns_per_run",
	    "Mean time of a run of the sampling program, idle ones included, when last measured.",
	    ANDIRON_METRIC_GAUGE, s->ns_per_run);
	add(sink, "andiron_ebpf_bpf_ns_per_sample",
	    "Time of the sampling program per sample taken, when last measured.",
	    ANDIRON_METRIC_GAUGE, s->ns_per_sample);
}
