/* SPDX-License-Identifier: Apache-2.0 */
/* See engine.h. */
#include "ebpf/engine-state.h"

#include "ebpf/samples/event-intake.h"
#include "ebpf/samples/batch-rows.h"
#include "ebpf/targets/sampling-filter.h"
#include "ebpf/samples/sample-table.h"
#include "ebpf/kernel/sample-logs.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

/* A process that was not sampled for so long is looked up afresh. */
#define KEEP_INTERVALS 4
/* Where waits are sampled, since the longest ones weigh most. */
#define KEEP_WAITING   40
#define LOOK_NS        (10 * NS_PER_MSEC)
/* Run time statistics are on in one of so many intervals. */
#define MEASURE_EVERY 8
/* An interval of which the ring has brought so much, logs being full, ends, whatever its time: some
 * 40,000 samples with theirs. Until that is seen the ring can fill once more; what the logs have
 * comes on top, and the number that stands before each record. */
#define EARLY_WORDS (1u << 20)
#define MORE_BYTES  (SESSION_RING_MAX_BYTES + SAMPLE_LOGS_MAX_BYTES / SAMPLER_BUFFERS)
_Static_assert((EARLY_WORDS + MORE_BYTES / 8) / 9 * 10 <= SAMPLE_TABLE_MAX_WORDS, "samples fit");

void engine_say(struct engine *e, uint32_t level, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	e->out.log(e->out.context, level, text);
}

int engine_new(uint64_t producer, struct ebpf_options *options,
	       const struct andiron_extension *objects, const struct engine_out *out,
	       struct engine **ret)
{
	struct engine *e = calloc(1, sizeof(*e));
	int r = -ENOMEM;

	if (!e) {
		ebpf_options_fini(options);
		return -ENOMEM;
	}
	e->producer = producer;
	e->options = *options;
	e->objects = *objects;
	e->out = *out;
	e->processes.proc = e->processes.cgroups.root = -1;
	e->files = mapped_files_new(&e->objects);
	e->matcher = matcher_new();
	e->intake = (struct intake){.options = &e->options,
				    .matcher = e->matcher,
				    .processes = &e->processes,
				    .stacks = e->stacks};
	if (e->files && e->matcher)
		r = processes_init(&e->processes, e->files);
	if (r == 0)
		r = matcher_set_default(e->matcher, !e->options.targets_only,
					e->options.default_target, e->options.n_default_target);
	if (r == 0)
		r = matcher_rebuild(e->matcher);
	if (r != 0) {
		engine_free(e);
		return r;
	}
	*ret = e;
	return 0;
}

void engine_free(struct engine *e)
{
	if (!e)
		return;
	intake_clear(&e->intake);
	unwinder_free(e->unwinder);
	session_close(e->session);
	processes_fini(&e->processes);
	matcher_free(e->matcher);
	mapped_files_free(e->files);
	for (size_t i = 0; i < SAMPLER_BUFFERS; i++)
		sample_table_free(&e->stacks[i]);
	vec_free(&e->rows.list);
	ebpf_options_fini(&e->options);
	free(e);
}

/* Ends the interval for the matches that targets had in it. */
static void settle_processes(struct engine *e)
{
	vec_each (&e->processes.all, p) {
		(*p)->match = NULL;
		intake_match(&e->intake, *p);
	}
	matcher_settle(e->matcher);
}

/* Reads its mappings, if they have changed. */
static void map_process(struct engine *e, struct process *p)
{
	process_map(&e->processes, p);
	e->unmapped |= !unwinder_process(e->unwinder, p);
}

/* Processes whose files were being read when their mappings were known. */
static void map_unmapped(struct engine *e)
{
	e->unmapped = false;
	vec_each (&e->processes.all, p)
		if ((*p)->match)
			e->unmapped |= !unwinder_process(e->unwinder, *p);
}

/* Processes what waits. While files are read the ring is: for 10 ms at a time, since records may
 * come as fast as they are read. */
static void process_intake(struct engine *e)
{
	while (e->session &&
	       (!intake_process(&e->intake) || unwinder_reading(e->unwinder) || e->unmapped)) {
		if (unwinder_reading(e->unwinder))
			unwinder_wait(e->unwinder, session_fd(e->session));
		else
			map_unmapped(e);
		intake_prepare(&e->intake, clock_mono() + LOOK_NS);
	}
}

int engine_set_filter(struct engine *e, struct error *err)
{
	int r = sampling_filter_set(e->session, e->matcher, &e->processes, e->options.follow, err);

	session_configure(e->session,
			  &(struct session_samples){
				  .mode = sampling_filter_mode(&e->options, e->matcher),
				  .with_comm = e->options.comm_label || e->options.comm_frame,
				  .with_tid = e->options.thread_label,
				  .with_kernel = e->options.kernel_frames,
				  .off_cpu = e->options.off_cpu,
			  });
	return r;
}

int engine_apply(struct engine *e, const struct andiron_targets *update)
{
	return matcher_apply(e->matcher, update);
}

/* Targets have changed. */
static void rematch(struct engine *e)
{
	vec_each (&e->processes.all, p) {
		intake_match(&e->intake, *p);
		sampling_filter_judge(e->session, e->matcher, *p);
		matcher_use(e->matcher, (*p)->match);
	}
	matcher_prune(e->matcher);
	vec_each (&e->processes.all, p)
		if ((*p)->match)
			map_process(e, *p);
	process_intake(e);
}

int engine_retarget(struct engine *e, struct error *err)
{
	int r = matcher_rebuild(e->matcher);

	if (r != 0)
		return r;
	if (!e->session)
		return engine_start(e, err);
	r = engine_set_filter(e, err);
	rematch(e);
	return r;
}

int engine_fd(const struct engine *e)
{
	return e->session ? session_fd(e->session) : -1;
}

bool engine_must_attend(const struct engine *e)
{
	return e->session && session_must_drain(e->session);
}

int64_t engine_due(const struct engine *e)
{
	return e->session && !e->finished ? intake_due(&e->intake) : INT64_MAX;
}

static bool is_full(const struct engine *e)
{
	return e->session && !e->finished &&
	       e->stacks[session_buffer(e->session)].words.n > EARLY_WORDS;
}

void engine_attend(struct engine *e)
{
	intake_prepare(&e->intake, INT64_MAX);
	process_intake(e);
	if (engine_due(e) <= clock_mono()) {
		e->unmapped |= !intake_look(&e->intake, clock_mono());
		process_intake(e);
	}
	if (!is_full(e))
		return;
	e->stats.n_early++;
	engine_collect(e);
}

static void add_row(struct engine *e, struct process *p, const struct sampler_stack *stack,
		    const uint64_t *pcs, uint64_t samples)
{
	struct row row = {
		.process = p, .match = p->match, .stack = stack, .pcs = pcs, .samples = samples};

	if (stack->id != 0 && !sampler_is_wait(stack)) {
		row.stack = unwinder_find(&e->stacks[e->buffer], stack, &row.pcs);
		/* A copy of a process that was gone before its mappings were read is of no use. */
		if (row.stack == stack || row.stack->end == UNWIND_END_NEW)
			e->stats.n_uncompleted += samples;
	}
	if (row.stack->end < UNWIND_ENDS)
		e->stats.ends[row.stack->end] += samples;
	if (!vec_push(&e->rows.list, row)) {
		e->counts->dropped_memory += samples;
		return;
	}
	e->counts->rows += samples;
}

static void on_stack(void *context, const struct sampler_stack *stack, const uint64_t *pcs,
		     uint64_t samples)
{
	struct engine *e = context;
	struct process *p;

	check(e->counts && e->buffer < SAMPLER_BUFFERS);
	if (stack->id & SAMPLER_STACK_COMPLETED && !sampler_is_wait(stack))
		return;
	e->counted += samples;
	p = processes_get(&e->processes, &stack->key.process);
	if (!p) {
		e->counts->dropped_memory += samples;
		return;
	}
	p->idle_intervals = 0;
	process_enter_cgroup(p, stack->key.cgroup);
	unwind_touch(unwinder_store(e->unwinder), &p->key);
	if (!p->read || p->match_generation != matcher_generation(e->matcher))
		intake_match(&e->intake, p);
	if (!p->match) {
		/* Taken before anybody had judged its cgroup. */
		sampling_filter_judge(e->session, e->matcher, p);
		e->counts->taken -= samples;
		e->counts->unselected += samples;
		return;
	}
	/* What was read since the interval's end says all of what was sampled before. */
	if (p->mapped_ns < e->swapped_ns)
		map_process(e, p);
	else
		e->unmapped |= !unwinder_process(e->unwinder, p);
	e->waits += sampler_is_wait(stack) ? samples : 0;
	add_row(e, p, stack, pcs, samples);
}

static void on_gone(void *context, const struct process *p)
{
	struct engine *e = context;

	check(e->session && e->unwinder);
	session_forget_process(e->session, &p->key);
	unwinder_gone(e->unwinder, p);
}

/* The rows as a batch; counts what cannot become one. NULL if there is none. */
static const struct andiron_batch *make_batch(struct engine *e, int64_t end_ns)
{
	struct rows_options options = {
		.head = {e->start_ns, end_ns, e->producer, ++e->sequence, e->options.demangle},
		.period_ns = (uint64_t)NS_PER_SEC / e->stats.session.rate_hz,
		.pid_label = e->options.pid_label,
		.comm_label = e->options.comm_label,
		.comm_frame = e->options.comm_frame,
		.objects = &e->objects,
		.store = unwinder_store(e->unwinder),
		.runtimes = unwinder_runtimes(e->unwinder),
	};
	const struct andiron_batch *batch = NULL;
	int r = rows_to_batch(&e->rows, &options, &batch);

	if (r == 0)
		return batch;
	e->counts->dropped_memory += e->counts->rows;
	e->counts->rows = 0;
	e->stats.batch_failures++;
	engine_say(e, ANDIRON_LOG_ERROR, "an interval's profile could not be built: %s",
		   r == -E2BIG ? "it is over 64 MiB; shorten collect_interval" : "out of memory");
	return NULL;
}

static void add_counts(struct engine_counts *to, const struct engine_counts *b)
{
	to->taken += b->taken;
	to->rows += b->rows;
	to->dropped_unfinished += b->dropped_unfinished;
	to->dropped_ring_full += b->dropped_ring_full;
	to->dropped_memory += b->dropped_memory;
	to->idle += b->idle;
	to->unselected += b->unselected;
	to->missed += b->missed;
}

/* The kernel's own figures, and when to take them next. */
static void measure(struct engine *e, struct engine_counts *counts)
{
	struct session_info *info = &e->stats.session;

	session_info(e->session, info);
	counts->missed = info->missed - e->missed;
	e->missed = info->missed;
	if (info->runs > e->runs) {
		double ns = (double)(info->run_ns - e->run_ns);

		e->stats.ns_per_run = ns / (double)(info->runs - e->runs);
		if (counts->taken > e->waits)
			e->stats.ns_per_sample = ns / (double)(counts->taken - e->waits);
	}
	e->run_ns = info->run_ns;
	e->runs = info->runs;
	session_measure(e->session, ++e->stats.n_intervals % MEASURE_EVERY == 0);
}

/* Reads the retired buffer into rows and counts. */
static void read_buffer(struct engine *e, struct engine_counts *counts)
{
	struct sampler_counters counters = session_counters(e->session, e->buffer);
	uint64_t lost = counters.ring_full + counters.unfinished;
	struct sample_table *stacks = &e->stacks[e->buffer];

	counts->taken = counters.taken;
	counts->idle = counters.idle;
	counts->unselected = counters.unselected;
	counts->dropped_ring_full = counters.ring_full;
	counts->dropped_unfinished = counters.unfinished;
	e->counted = counts->dropped_memory = stacks->lost;
	e->waits = 0;
	unwinder_settle(e->unwinder, e->buffer, stacks);
	sample_table_each(stacks, on_stack, e);
	if (counters.taken != e->counted + lost) {
		e->stats.mismatches++;
		engine_say(e, ANDIRON_LOG_WARN,
			   "the counts of an interval do not add up: %llu samples "
			   "taken, %llu counted, %llu dropped; please report this",
			   (unsigned long long)counters.taken, (unsigned long long)e->counted,
			   (unsigned long long)lost);
	}
}

void engine_collect(struct engine *e)
{
	const struct andiron_batch *batch;
	struct engine_counts counts = {0};
	int64_t end_ns;
	int r;

	check(!e->counts);
	if (!e->session)
		return;
	end_ns = clock_real();
	r = session_swap(e->session);
	e->swapped_ns = clock_mono();
	if (r < 0) {
		engine_say(e, ANDIRON_LOG_ERROR, "cannot swap the buffers of the counts: %s",
			   strerror(-r));
		return; /* what they hold is there for the next call */
	}
	process_intake(e);
	e->buffer = (uint32_t)r;
	e->counts = &counts;
	e->rows.list.n = 0;
	read_buffer(e, &counts);
	batch = make_batch(e, end_ns);
	measure(e, &counts);
	add_counts(&e->stats.total, &counts);
	e->out.counts(e->out.context, &counts);
	if (batch) {
		e->out.batch(e->out.context, batch);
		batch_release(batch);
	}
	sample_table_clear(&e->stacks[e->buffer]);
	e->rows.list.n = 0;
	e->counts = NULL;
	processes_age(&e->processes, e->options.off_cpu ? KEEP_WAITING : KEEP_INTERVALS, on_gone,
		      e);
	unwinder_tick(e->unwinder);
	stack_copies_rest(&e->intake.copies);
	settle_processes(e);
	process_intake(e);
	e->start_ns = end_ns;
}

void engine_finish(struct engine *e)
{
	if (!e->session || e->finished)
		return;
	e->finished = true;
	session_stop(e->session);
	engine_collect(e);
}

void engine_drop_unread(struct engine *e)
{
	uint64_t n = e->session ? session_taken(e->session) : 0;
	const struct engine_counts lost = {.taken = n, .dropped_memory = n};

	if (n == 0)
		return;
	add_counts(&e->stats.total, &lost);
	e->out.counts(e->out.context, &lost);
}

uint64_t engine_give_up(struct engine *e)
{
	if (!e->session || e->finished)
		return 0;
	e->finished = true;
	session_stop(e->session);
	return session_taken(e->session);
}

uint64_t engine_coming(const struct engine *e)
{
	return e->session ? session_taken(e->session) : 0;
}

int64_t engine_interval(const struct engine *e)
{
	return e->options.interval_ns;
}

const char *engine_notes(const struct engine *e)
{
	return e->options.notes;
}

int engine_report_targets(struct engine *e, target_report_fn fn, void *context)
{
	return target_report_each(e->matcher, &e->processes,
				  e->unwinder ? unwinder_runtimes(e->unwinder) : NULL, fn, context);
}

void engine_count(struct engine *e)
{
	struct engine_stats *s = &e->stats;

	s->unwind = (struct unwind_stats){0};
	if (e->unwinder)
		unwind_get_stats(unwinder_store(e->unwinder), &s->unwind);
	target_report_count(e->matcher, &e->processes, &s->n_targets, &s->n_matched);
}

void engine_get_stats(const struct engine *e, struct engine_stats *ret)
{
	*ret = e->stats;
	ret->n_process_records = e->intake.n_processes;
	ret->n_left_out = e->intake.n_left_out;
	if (e->unwinder)
		unwinder_get_stats(e->unwinder, &ret->unwinder);
	ret->n_processes = e->processes.all.n;
}
