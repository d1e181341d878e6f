/* SPDX-License-Identifier: Apache-2.0 */
/* See metrics.h. */
#include "ebpf/metrics.h"

#include "bpfwire/unwind-tables.h"

static const char samples_help[] = "Runs of the sampling program, by what became of the sample.";

static void add_samples(metric_fn fn, void *context, const char *outcome, uint64_t n)
{
	fn(context, &(struct metric){"andiron_ebpf_samples_total", samples_help, "outcome", outcome, true,
				     (double)n});
}

static void add_books(const struct engine_books *b, metric_fn fn, void *context)
{
	add_samples(fn, context, "sent", b->rows);
	add_samples(fn, context, "idle", b->idle);
	add_samples(fn, context, "unselected", b->unselected);
	add_samples(fn, context, "missed", b->missed);
	add_samples(fn, context, "new_cpu", b->dropped_new_cpu);
	add_samples(fn, context, "unfinished", b->dropped_unfinished);
	add_samples(fn, context, "ring_full", b->dropped_ring_full);
	add_samples(fn, context, "no_memory", b->dropped_memory);
}

static void add_ends(const struct engine_stats *s, metric_fn fn, void *context)
{
	static const char *const names[UNWIND_ENDS] = {
		[UNWIND_END_COMPLETE] = "complete",
		[UNWIND_END_TRUNCATED] = "truncated",
		[UNWIND_END_NO_INFO] = "no_unwind_info",
		[UNWIND_END_NO_PAGE] = "page_not_present",
		[UNWIND_END_NO_MAPPING] = "not_mapped",
		[UNWIND_END_REGISTER] = "register_lost",
		[UNWIND_END_BROKEN] = "broken_stack",
		[UNWIND_END_NEW] = "new_process",
		[UNWIND_END_COMPAT] = "32_bit",
		[UNWIND_END_SWITCHES] = "runtime_switches",
		[UNWIND_END_RUNTIME] = "runtime",
		[UNWIND_END_CUT] = "stack_cut_off",
		[UNWIND_END_NOTHING] = "no_user_stack",
	};

	for (uint32_t i = 0; i < UNWIND_ENDS; i++)
		if (names[i])
			fn(context, &(struct metric){"andiron_ebpf_stacks_total",
						     "Samples by how the walk over their user stack ended.",
						     "end", names[i], true, (double)s->ends[i]});
}

/* How stacks are walked: the tables, and what could not be walked where it was taken. */
static void add_unwinding(const struct engine_stats *s, metric_fn fn, void *context)
{
	const struct unwind_stats *u = &s->unwind;
	const struct metric all[] = {
		{"andiron_ebpf_unwind_files", "Files with unwind tables.", NULL, NULL, false,
		 (double)u->tables},
		{"andiron_ebpf_unwind_files_degraded", "Files too large for the budget, in part or whole.",
		 NULL, NULL, false, (double)u->degraded},
		{"andiron_ebpf_unwind_files_aux",
		 "Files whose tables say where preserved registers are saved, because a rule needs them.", NULL,
		 NULL, false, (double)(u->aux - u->aux_asked)},
		{"andiron_ebpf_unwind_files_aux_asked",
		 "Files whose tables say so because a stack that leads through them needed it.", NULL, NULL,
		 false, (double)u->aux_asked},
		{"andiron_ebpf_unwind_rows", "Rows of unwind tables.", NULL, NULL, false, (double)u->rows},
		{"andiron_ebpf_unwind_bytes", "Bytes of these rows, all included.", NULL, NULL, false,
		 (double)u->bytes},
		{"andiron_ebpf_unwind_slab_bytes", "Kernel memory that holds them.", NULL, NULL, false,
		 (double)u->slab_bytes},
		{"andiron_ebpf_unwind_rules", "Different rules in use.", NULL, NULL, false, (double)u->rules},
		{"andiron_ebpf_unwind_spaces", "Processes whose mappings are known to the walker.", NULL, NULL,
		 false, (double)u->spaces},
		{"andiron_ebpf_unwind_spaces_replaced_total", "Processes that lost their place there to others.",
		 NULL, NULL, true, (double)u->spaces_replaced},
		{"andiron_ebpf_unwind_evictions_total", "Files whose tables made room for others.", NULL, NULL,
		 true, (double)u->evictions},
		{"andiron_ebpf_snapshots_total", "Stacks that were copied to be walked later.", NULL, NULL, true,
		 (double)s->walks.snapshots},
		{"andiron_ebpf_snapshots_completed_total", "Of these, walked to the thread's entry.", NULL, NULL,
		 true, (double)s->walks.completed},
		{"andiron_ebpf_snapshots_early_total", "Of these, by the files themselves, while tables were made of files.", NULL, NULL,
		 true, (double)s->walks.early},
		{"andiron_ebpf_snapshots_deep_total", "Of these, of stacks that came in parts.", NULL, NULL, true,
		 (double)s->walks.deep},
		{"andiron_ebpf_snapshots_other_total", "Of these, that another stack of their thread came with.", NULL, NULL, true,
		 (double)s->walks.other},
		{"andiron_ebpf_snapshots_left_out_total", "Copies that found no room to wait for the walk.", NULL, NULL, true,
		 (double)s->n_left_out},
		{"andiron_ebpf_snapshots_unknown_total",
		 "Of these, of a process that was gone before its mappings were read.", NULL, NULL, true,
		 (double)s->walks.unknown},
		{"andiron_ebpf_stacks_uncompleted_total",
		 "Samples whose stack was to be completed later, and was not: its copy was lost, too late, or of no use.", NULL,
		 NULL, true, (double)s->n_uncompleted},
		{"andiron_ebpf_pages_touched_total", "Pages asked for because a stack needed them.", NULL, NULL,
		 true, (double)s->walks.touched},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		fn(context, &all[i]);
	add_ends(s, fn, context);
}

void metrics_each(const struct engine_stats *s, metric_fn fn, void *context)
{
	const struct metric all[] = {
		{"pyroscope_ebpf_active_targets",
		 "Targets with a pid or container id.",
		 NULL, NULL, false, (double)s->n_targets},
		{"andiron_ebpf_matched_targets",
		 "Targets to which a process that was sampled of late belongs.",
		 NULL, NULL, false, (double)s->n_matched},
		{"pyroscope_ebpf_profiling_sessions_total",
		 "Intervals collected.",
		 NULL, NULL, true, (double)s->n_intervals},
		{"andiron_ebpf_intervals_early_total",
		 "Intervals that ended before collect_interval was over, since their samples filled the memory for them.",
		 NULL, NULL, true, (double)s->n_early},
		{"pyroscope_ebpf_profiling_sessions_failing_total",
		 "Intervals whose profile could not be built.",
		 NULL, NULL, true, (double)s->batch_failures},
		{"andiron_ebpf_samples_taken_total",
		 "Samples taken by the kernel side.",
		 NULL, NULL, true, (double)s->total.taken},
		{"andiron_ebpf_book_mismatches_total",
		 "Intervals in which samples taken were not samples read plus drops; always 0.",
		 NULL, NULL, true, (double)s->mismatches},
		{"andiron_ebpf_process_reports_total",
		 "Processes reported as new, or with new mappings, by the kernel side.",
		 NULL, NULL, true, (double)s->n_process_records},
		{"andiron_ebpf_processes",
		 "Processes known.",
		 NULL, NULL, false, (double)s->n_processes},
		{"andiron_ebpf_cpus",
		 "CPUs sampled.",
		 NULL, NULL, false, (double)s->session.n_cpus},
		{"andiron_ebpf_sample_rate_hertz",
		 "Samples per second and CPU.",
		 NULL, NULL, false, (double)s->session.rate_hz},
		{"andiron_ebpf_map_bytes",
		 "Memory of the BPF maps, as the kernel accounts it.",
		 NULL, NULL, false, (double)s->session.map_bytes},
		{"andiron_ebpf_verified_instructions",
		 "Instructions the kernel's verifier walked.",
		 NULL, NULL, false, (double)s->session.verified_insns},
		{"andiron_ebpf_bpf_ns_per_run",
		 "Mean time of a run of the sampling program, idle ones included, when last measured.",
		 NULL, NULL, false, s->ns_per_run},
		{"andiron_ebpf_bpf_ns_per_sample",
		 "Time of the sampling program per sample taken, when last measured.",
		 NULL, NULL, false, s->ns_per_sample},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		fn(context, &all[i]);
	add_books(&s->total, fn, context);
	add_unwinding(s, fn, context);
}
