/* SPDX-License-Identifier: Apache-2.0 */
/* See metrics.h. */
#include "metrics.h"

static const char samples_help[] = "Runs of the sampling program, by what became of the sample.";

static void add_samples(metric_fn fn, void *context, const char *outcome, uint64_t n)
{
	fn(context, &(struct metric){"andiron_ebpf_samples_total", samples_help, outcome, true,
				     (double)n});
}

static void add_books(const struct engine_books *b, metric_fn fn, void *context)
{
	add_samples(fn, context, "sent", b->rows);
	add_samples(fn, context, "idle", b->idle);
	add_samples(fn, context, "unselected", b->unselected);
	add_samples(fn, context, "missed", b->missed);
	add_samples(fn, context, "map_full", b->dropped_map_full);
	add_samples(fn, context, "new_cpu", b->dropped_new_cpu);
	add_samples(fn, context, "ring_full", b->dropped_ring_full);
	add_samples(fn, context, "no_memory", b->dropped_memory);
}

void metrics_each(const struct engine_stats *s, metric_fn fn, void *context)
{
	const struct metric all[] = {
		{"pyroscope_ebpf_active_targets",
		 "Targets with a pid or container id.",
		 NULL, false, (double)s->n_targets},
		{"andiron_ebpf_matched_targets",
		 "Targets to which a process that was sampled of late belongs.",
		 NULL, false, (double)s->n_matched},
		{"pyroscope_ebpf_profiling_sessions_total",
		 "Intervals collected.",
		 NULL, true, (double)s->n_intervals},
		{"pyroscope_ebpf_profiling_sessions_failing_total",
		 "Intervals whose profile could not be built.",
		 NULL, true, (double)s->batch_failures},
		{"andiron_ebpf_samples_taken_total",
		 "Samples taken by the kernel side.",
		 NULL, true, (double)s->total.taken},
		{"andiron_ebpf_book_mismatches_total",
		 "Intervals in which samples taken were not counts plus drops; always 0.",
		 NULL, true, (double)s->mismatches},
		{"andiron_ebpf_process_reports_total",
		 "Processes reported as new, or with new mappings, by the kernel side.",
		 NULL, true, (double)s->n_process_records},
		{"andiron_ebpf_processes",
		 "Processes known.",
		 NULL, false, (double)s->n_processes},
		{"andiron_ebpf_cpus",
		 "CPUs sampled.",
		 NULL, false, (double)s->session.n_cpus},
		{"andiron_ebpf_sample_rate_hertz",
		 "Samples per second and CPU.",
		 NULL, false, (double)s->session.rate_hz},
		{"andiron_ebpf_map_bytes",
		 "Memory of the BPF maps, as the kernel accounts it.",
		 NULL, false, (double)s->session.map_bytes},
		{"andiron_ebpf_verified_instructions",
		 "Instructions the kernel's verifier walked.",
		 NULL, false, (double)s->session.verified_insns},
		{"andiron_ebpf_bpf_ns_per_run",
		 "Mean time of a run of the sampling program, idle ones included, when last measured.",
		 NULL, false, s->ns_per_run},
		{"andiron_ebpf_bpf_ns_per_sample",
		 "Time of the sampling program per sample taken, when last measured.",
		 NULL, false, s->ns_per_sample},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		fn(context, &all[i]);
	add_books(&s->total, fn, context);
}
