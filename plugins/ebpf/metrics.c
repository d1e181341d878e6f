/* SPDX-License-Identifier: Apache-2.0 */
/* See metrics.h. */
#include "ebpf/metrics.h"

#include "abi/metrics.h"
#include "bpfwire/unwind-tables.h"

#define COUNTER(member) ABI_COUNTER(struct engine_stats, member)
#define GAUGE(member)   ABI_GAUGE(struct engine_stats, member)

/* clang-format off */
static const struct abi_metric_row rows[] = {
	{"andiron_ebpf_unwind_files", GAUGE(unwind.tables),
	 "Files with unwind tables."},
	{"andiron_ebpf_unwind_files_degraded", GAUGE(unwind.degraded),
	 "Files too large for the budget, in part or whole."},
	{"andiron_ebpf_unwind_files_aux_asked", GAUGE(unwind.aux_asked),
	 "Files whose tables say so because a stack that leads through them needed it."},
	{"andiron_ebpf_unwind_rows", GAUGE(unwind.rows),
	 "Rows of unwind tables."},
	{"andiron_ebpf_unwind_bytes", GAUGE(unwind.bytes),
	 "Bytes of these rows, all included."},
	{"andiron_ebpf_unwind_slab_bytes", GAUGE(unwind.slab_bytes),
	 "Kernel memory that holds them."},
	{"andiron_ebpf_unwind_rules", GAUGE(unwind.rules),
	 "Different rules in use."},
	{"andiron_ebpf_unwind_address_spaces", GAUGE(unwind.address_spaces),
	 "Processes whose mappings are known to the walker."},
	{"andiron_ebpf_unwind_address_spaces_replaced_total",
	 COUNTER(unwind.address_spaces_replaced),
	 "Processes that lost their slot there to others."},
	{"andiron_ebpf_unwind_evictions_total", COUNTER(unwind.evictions),
	 "Files whose tables made room for others."},
	{"andiron_ebpf_snapshots_total", COUNTER(unwinder.snapshots),
	 "Stacks that were copied to be walked later."},
	{"andiron_ebpf_snapshots_completed_total", COUNTER(unwinder.completed),
	 "Of these, walked to the thread's entry."},
	{"andiron_ebpf_snapshots_file_unwind_total", COUNTER(unwinder.by_file),
	 "Of these, by the files themselves, while tables were made of files."},
	{"andiron_ebpf_snapshots_deep_total", COUNTER(unwinder.deep),
	 "Of these, of stacks that came in parts."},
	{"andiron_ebpf_snapshots_other_total", COUNTER(unwinder.other),
	 "Of these, that another stack of their thread came with."},
	{"andiron_ebpf_snapshots_left_out_total", COUNTER(n_left_out),
	 "Copies that found no room to wait for the walk."},
	{"andiron_ebpf_snapshots_unknown_total", COUNTER(unwinder.unknown),
	 "Of these, of a process that was gone before its mappings were read."},
	{"andiron_ebpf_stacks_uncompleted_total", COUNTER(n_uncompleted),
	 "Samples whose stack was to be completed later, and was not: its copy was lost, too "
	 "late, or of no use."},
	{"andiron_ebpf_pages_touched_total", COUNTER(unwinder.touched),
	 "Pages asked for because a stack needed them."},
	{"andiron_ebpf_runtime_claims_total", COUNTER(unwinder.runtimes.claims),
	 "Times that a language runtime was asked what code of a process is its own."},
	{"andiron_ebpf_runtime_claim_cpu_ns_total", COUNTER(unwinder.runtimes.claim_cpu_ns),
	 "CPU time of the sampler's thread for that."},
	{"andiron_ebpf_runtime_claims_no_room_total", COUNTER(unwinder.runtimes.no_room),
	 "Of these, that found no room: frames of such processes have no names."},
	{"pyroscope_ebpf_active_targets", GAUGE(n_targets),
	 "Targets with a pid or container id."},
	{"andiron_ebpf_matched_targets", GAUGE(n_matched),
	 "Targets to which a process that was sampled recently belongs."},
	{"pyroscope_ebpf_profiling_sessions_total", COUNTER(n_intervals),
	 "Intervals collected."},
	{"andiron_ebpf_intervals_early_total", COUNTER(n_early),
	 "Intervals that ended before collect_interval was over, since their samples filled "
	 "the memory for them."},
	{"pyroscope_ebpf_profiling_sessions_failing_total", COUNTER(batch_failures),
	 "Intervals whose profile could not be built."},
	{"andiron_ebpf_samples_taken_total", COUNTER(total.taken),
	 "Samples taken by the kernel side."},
	{"andiron_ebpf_count_mismatches_total", COUNTER(mismatches),
	 "Intervals in which samples taken were not samples read plus drops; always 0."},
	{"andiron_ebpf_process_reports_total", COUNTER(n_process_records),
	 "Processes reported as new, or with new mappings, by the kernel side."},
	{"andiron_ebpf_processes", GAUGE(n_processes),
	 "Processes known."},
	{"andiron_ebpf_cpus", GAUGE(session.n_cpus),
	 "CPUs sampled."},
	{"andiron_ebpf_sample_rate_hertz", GAUGE(session.rate_hz),
	 "Samples per second and CPU."},
	{"andiron_ebpf_map_bytes", GAUGE(session.map_bytes),
	 "Memory of the BPF maps, as the kernel accounts it."},
	{"andiron_ebpf_verified_instructions", GAUGE(session.verified_insns),
	 "Instructions the kernel's verifier walked."},
	{"andiron_ebpf_bpf_ns_per_run", GAUGE(ns_per_run),
	 "Mean time of a run of the sampling program, idle ones included, when last measured."},
	{"andiron_ebpf_bpf_ns_per_sample", GAUGE(ns_per_sample),
	 "Time of the sampling program per sample taken, when last measured."},
};

static const char *const ends[UNWIND_ENDS] = {
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
/* clang-format on */

void metrics_add(const struct engine_stats *s, const struct andiron_metric_sink *sink)
{
	static const char *const outcomes[] = {"sent",       "idle",      "unselected", "missed",
					       "unfinished", "ring_full", "no_memory"};
	const uint64_t n_outcomes[] = {s->total.rows,
				       s->total.idle,
				       s->total.unselected,
				       s->total.missed,
				       s->total.dropped_unfinished,
				       s->total.dropped_ring_full,
				       s->total.dropped_memory};

	_Static_assert(sizeof(outcomes) / sizeof(*outcomes) ==
			       sizeof(n_outcomes) / sizeof(*n_outcomes),
		       "a word each");
	abi_metrics(sink, rows, sizeof(rows) / sizeof(rows[0]), s);
	abi_metric(sink,
		   &(struct abi_metric){
			   "andiron_ebpf_unwind_files_aux",
			   "Files whose tables say where preserved registers are saved, because a "
			   "rule needs them.",
			   (double)(s->unwind.aux - s->unwind.aux_asked), true});
	abi_metric_family(sink,
			  (struct abi_metric){
				  "andiron_ebpf_samples_total",
				  "Runs of the sampling program, by what became of the sample."},
			  "outcome", outcomes, n_outcomes, sizeof(outcomes) / sizeof(*outcomes));
	abi_metric_family(sink,
			  (struct abi_metric){
				  "andiron_ebpf_stacks_total",
				  "Samples by how the walk over their user stack ended."},
			  "end", ends, s->ends, UNWIND_ENDS);
}
