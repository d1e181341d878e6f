/* SPDX-License-Identifier: Apache-2.0 */
/* See engine.h. */
#include "ebpf/engine.h"

#include "ebpf/samples/event-intake.h"
#include "ebpf/samples/batch-rows.h"
#include "ebpf/unwinding/runtime-program.h"
#include "ebpf/targets/sampling-filter.h"
#include "ebpf/kernel/sample-table.h"
#include "ebpf/kernel/sample-logs.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

/* A process that was not sampled for so long is looked up afresh. */
#define KEEP_INTERVALS 4
/* Run time statistics are on in one of so many intervals. */
#define MEASURE_EVERY 8
/* Of everything together, kernel maps counted; and what of it is neither for tables nor for what waits. */
#define BUDGET_BYTES ((uint64_t)128 << 20)
#define OWN_BYTES    ((uint64_t)16 << 20)
/* On the largest machines, too. */
_Static_assert(BUDGET_BYTES - OWN_BYTES - NEWS_BYTES_MAX - SESSION_RING_MAX_BYTES - TABLES_MAX_BYTES >= 32 << 20, "files' tables have room");
/* An interval of which the ring has brought so much, logs being full, ends, whatever its time: some 40,000 samples with theirs. Until that
 * is seen the ring can fill once more; what the logs have comes on top, and the number that stands before each record. */
#define EARLY_WORDS (1u << 20)
_Static_assert((EARLY_WORDS + (SESSION_RING_MAX_BYTES + TABLES_MAX_BYTES / SAMPLER_BUFFERS) / sizeof(uint64_t)) / 9 * 10 <=
	       STACKS_MAX_WORDS, "no sample is lost");

struct engine {
	struct ebpf_options options;
	struct andiron_extension objects;
	struct engine_out out;
	struct session *session;
	struct walks *walks; /* on the session's memory */
	struct images *images;
	struct processes processes;
	struct matcher *matcher;
	struct stacks stacks[SAMPLER_BUFFERS];
	struct news news;
	struct rows rows;
	struct engine_stats stats;
	struct engine_books *books; /* of the interval being read */
	uint64_t producer, sequence;
	uint64_t run_ns, runs, missed; /* at the end of the last interval */
	uint64_t counted;              /* of the buffer being read */
	int64_t start_ns;              /* of the interval, CLOCK_REALTIME */
	uint32_t buffer;                 /* being read */
	bool finished;
};

static void say(struct engine *e, uint32_t level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void say(struct engine *e, uint32_t level, const char *format, ...)
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
	e->processes.proc = -1;
	e->images = images_new(&e->objects);
	e->matcher = matcher_new();
	e->news = (struct news){.options = &e->options, .matcher = e->matcher, .processes = &e->processes,
				.stacks = e->stacks, .reading = SAMPLER_BUFFERS};
	if (e->images && e->matcher)
		r = processes_init(&e->processes, e->images);
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
	news_clear(&e->news);
	walks_free(e->walks);
	session_close(e->session);
	processes_fini(&e->processes);
	matcher_free(e->matcher);
	images_free(e->images);
	for (size_t i = 0; i < SAMPLER_BUFFERS; i++)
		stacks_free(&e->stacks[i]);
	vec_free(&e->rows.list);
	ebpf_options_fini(&e->options);
	free(e);
}

/* Ends the interval for the matches that targets had in it. */
static void settle_processes(struct engine *e)
{
	vec_each(&e->processes.all, p) {
		(*p)->match = NULL;
		news_match(&e->news, *p);
	}
	matcher_settle(e->matcher);
}

/* Reads what it has mapped, if that is news. */
static void map_process(struct engine *e, struct process *p)
{
	process_map(&e->processes, p);
	walks_process(e->walks, p);
}

/* While files are read. */
static void meanwhile(void *context)
{
	news_look_meanwhile(&((struct engine *)context)->news);
}

static void configure(struct engine *e)
{
	session_configure(e->session, select_mode(&e->options, e->matcher),
			  e->options.comm_label || e->options.comm_frame,
			  e->options.kernel_frames);
}

static void unload(struct engine *e)
{
	news_clear(&e->news);
	walks_free(e->walks);
	e->news.walks = e->walks = NULL;
	session_close(e->session);
	e->news.session = e->session = NULL;
	for (size_t i = 0; i < SAMPLER_BUFFERS; i++)
		stacks_clear(&e->stacks[i]);
	/* The next store knows of nobody. */
	vec_each(&e->processes.all, p)
		(*p)->told = NULL;
}

/* For two seconds' snapshots. */
static size_t news_bytes(const struct session *s)
{
	size_t bytes = 4 * session_ring_bytes(s);

	return bytes < NEWS_BYTES_MAX ? bytes : NEWS_BYTES_MAX;
}

/* What the tables may take: of all that the agent may have, what its other maps, those that come yet, and its own memory leave. */
static uint64_t unwind_budget(const struct session_info *info, size_t news)
{
	uint64_t others = info->map_bytes + SAMPLER_DEFERRED_BYTES + OWN_BYTES + news;

	return others < BUDGET_BYTES ? BUDGET_BYTES - others : 0;
}

static bool add_runtimes(struct engine *e)
{
	const struct runtimes_kernel kernel = runtime_programs(e->session);
	const struct runtimes_out out = {e->out.context, e->out.log};
	struct runtimes *t = NULL;

	if (e->options.n_runtimes == 0)
		return true;
	t = runtimes_new(&kernel, e->options.runtimes, e->options.n_runtimes, &out);
	if (!t)
		return false;
	walks_add_runtimes(e->walks, t);
	return true;
}

static int load(struct engine *e, struct error *err)
{
	struct session_options options = {e->options.rate_hz, e->options.interval_ns,
					  e->options.follow};
	int r = session_open(&options, news_record, &e->news, &e->session, err);

	if (r != 0)
		return r;
	session_info(e->session, &e->stats.session);
	e->news.bytes_max = news_bytes(e->session);
	e->walks = walks_new(e->session, &e->objects, unwind_budget(&e->stats.session, e->news.bytes_max),
			     meanwhile, e);
	if (!e->walks || !add_runtimes(e)) {
		unload(e);
		return -ENOMEM;
	}
	e->news.session = e->session;
	e->news.walks = e->walks;
	configure(e);
	r = select_targets(e->session, e->matcher, &e->processes, e->options.follow, err);
	session_measure(e->session, true);
	/* The programs are new, and so are their figures. */
	e->missed = e->run_ns = e->runs = 0;
	e->start_ns = clock_real();
	if (r == 0)
		r = session_start(e->session, e->options.rate_hz, err);
	if (r != 0) {
		unload(e);
		return r;
	}
	session_defer_snapshots(e->session);
	if (e->options.n_runtimes > 0)
		session_load_continuation(e->session);
	session_info(e->session, &e->stats.session);
	e->news.defer_snapshots = e->stats.session.defer_snapshots;
	return 0;
}

int engine_start(struct engine *e, struct error *err)
{
	size_t n;

	matcher_all(e->matcher, &n);
	if (e->session || (e->options.lazy && n == 0 && e->options.targets_only))
		return 0;
	return load(e, err);
}

int engine_apply(struct engine *e, const struct andiron_targets *update)
{
	return matcher_apply(e->matcher, update);
}

/* Targets have changed. */
static void rematch(struct engine *e)
{
	vec_each(&e->processes.all, p) {
		news_match(&e->news, *p);
		select_judge(e->session, e->matcher, *p);
		matcher_use(e->matcher, (*p)->match);
	}
	matcher_prune(e->matcher);
	for (size_t i = 0; i < e->processes.all.n; i++) /* which reading files makes longer */
		if (e->processes.all.p[i]->match)
			map_process(e, e->processes.all.p[i]);
	news_deal(&e->news);
}

int engine_retarget(struct engine *e, struct error *err)
{
	int r = matcher_rebuild(e->matcher);

	if (r != 0)
		return r;
	if (!e->session)
		return engine_start(e, err);
	r = select_targets(e->session, e->matcher, &e->processes, e->options.follow, err);
	rematch(e);
	configure(e);
	return r;
}

int engine_fd(const struct engine *e)
{
	return e->session ? session_fd(e->session) : -1;
}

static bool is_full(const struct engine *e)
{
	return e->session && !e->finished && e->stacks[session_buffer(e->session)].words.n > EARLY_WORDS;
}

void engine_attend(struct engine *e)
{
	news_look(&e->news);
	news_deal(&e->news);
	if (!is_full(e))
		return;
	e->stats.n_early++;
	engine_collect(e);
}

static void add_row(struct engine *e, struct process *p, const struct sampler_stack *stack,
		    const uint64_t *pcs, uint64_t samples)
{
	struct row row = {.process = p, .match = p->match, .stack = stack, .pcs = pcs, .samples = samples};

	if (stack->id != 0) {
		row.stack = walks_find(&e->stacks[e->buffer], stack, &row.pcs);
		e->stats.n_uncompleted += row.stack == stack ? samples : 0;
	}
	if (row.stack->end < UNWIND_ENDS)
		e->stats.ends[row.stack->end] += samples;
	if (!vec_push(&e->rows.list, row)) {
		e->books->dropped_memory += samples;
		return;
	}
	e->books->rows += samples;
}

static void on_stack(void *context, const struct sampler_stack *stack, const uint64_t *pcs,
		     uint64_t samples)
{
	struct engine *e = context;
	struct process *p;

	check(e->books && e->buffer < SAMPLER_BUFFERS);
	if (stack->id & SAMPLER_STACK_COMPLETED)
		return;
	e->counted += samples;
	p = processes_get(&e->processes, &stack->key.process);
	if (!p) {
		e->books->dropped_memory += samples;
		return;
	}
	p->idle_intervals = 0;
	p->cgroup = stack->key.cgroup;
	unwind_touch(walks_store(e->walks), &p->key);
	if (!p->read || p->match_generation != matcher_generation(e->matcher))
		news_match(&e->news, p);
	if (!p->match) {
		/* Taken before anybody had judged its cgroup. */
		select_judge(e->session, e->matcher, p);
		e->books->taken -= samples;
		e->books->unselected += samples;
		return;
	}
	map_process(e, p);
	add_row(e, p, stack, pcs, samples);
}

static void on_gone(void *context, const struct process *p)
{
	struct engine *e = context;

	session_forget_process(e->session, &p->key);
	walks_gone(e->walks, p);
}

/* The rows as a batch; books what cannot become one. NULL if there is none. */
static const struct andiron_batch *make_batch(struct engine *e, int64_t end_ns)
{
	struct rows_options options = {
		.head = {e->start_ns, end_ns, e->producer, ++e->sequence, e->options.demangle},
		.period_ns = (uint64_t)NS_PER_SEC / e->stats.session.rate_hz,
		.pid_label = e->options.pid_label,
		.comm_label = e->options.comm_label,
		.comm_frame = e->options.comm_frame,
		.objects = &e->objects,
		.store = walks_store(e->walks),
		.runtimes = walks_runtimes(e->walks),
	};
	const struct andiron_batch *batch = NULL;
	int r = rows_to_batch(&e->rows, &options, &batch);

	if (r == 0)
		return batch;
	e->books->dropped_memory += e->books->rows;
	e->books->rows = 0;
	e->stats.batch_failures++;
	say(e, ANDIRON_LOG_ERROR, "an interval's profile could not be built: %s",
	    r == -E2BIG ? "it is over 64 MiB; shorten collect_interval" : "out of memory");
	return NULL;
}

static void add_books(struct engine_books *to, const struct engine_books *b)
{
	to->taken += b->taken;
	to->rows += b->rows;
	to->dropped_new_cpu += b->dropped_new_cpu;
	to->dropped_unfinished += b->dropped_unfinished;
	to->dropped_ring_full += b->dropped_ring_full;
	to->dropped_memory += b->dropped_memory;
	to->idle += b->idle;
	to->unselected += b->unselected;
	to->missed += b->missed;
}

/* The kernel's own figures, and when to take them next. */
static void measure(struct engine *e, struct engine_books *books)
{
	struct session_info *info = &e->stats.session;

	session_info(e->session, info);
	books->missed = info->missed - e->missed;
	e->missed = info->missed;
	if (info->runs > e->runs) {
		double ns = (double)(info->run_ns - e->run_ns);

		e->stats.ns_per_run = ns / (double)(info->runs - e->runs);
		if (books->taken > 0)
			e->stats.ns_per_sample = ns / (double)books->taken;
	}
	e->run_ns = info->run_ns;
	e->runs = info->runs;
	session_measure(e->session, ++e->stats.n_intervals % MEASURE_EVERY == 0);
}

/* Reads the retired buffer into rows and books. */
static void read_buffer(struct engine *e, struct engine_books *books)
{
	struct sampler_counters counters = session_counters(e->session, e->buffer);
	uint64_t lost = counters.ring_full + counters.new_cpu + counters.unfinished;
	struct stacks *stacks = &e->stacks[e->buffer];

	books->taken = counters.taken;
	books->idle = counters.idle;
	books->unselected = counters.unselected;
	books->dropped_ring_full = counters.ring_full;
	books->dropped_new_cpu = counters.new_cpu;
	books->dropped_unfinished = counters.unfinished;
	e->counted = books->dropped_memory = stacks->lost;
	walks_settle(e->walks, e->buffer, stacks);
	stacks_each(stacks, on_stack, e);
	if (counters.taken != e->counted + lost) {
		e->stats.mismatches++;
		say(e, ANDIRON_LOG_WARN,
		    "the books of an interval do not close: %llu samples taken, %llu counted, %llu dropped; "
		    "please report this",
		    (unsigned long long)counters.taken, (unsigned long long)e->counted,
		    (unsigned long long)lost);
	}
}

void engine_collect(struct engine *e)
{
	const struct andiron_batch *batch;
	struct engine_books books = {0};
	int64_t end_ns;
	int r;

	if (!e->session)
		return;
	end_ns = clock_real();
	r = session_swap(e->session);
	if (r < 0) {
		say(e, ANDIRON_LOG_ERROR, "cannot swap the buffers of the counts: %s", strerror(-r));
		return;
	}
	news_deal(&e->news);
	e->buffer = e->news.reading = (uint32_t)r;
	e->books = &books;
	e->rows.list.n = 0;
	read_buffer(e, &books);
	batch = make_batch(e, end_ns);
	measure(e, &books);
	add_books(&e->stats.total, &books);
	e->out.books(e->out.context, &books);
	if (batch) {
		e->out.batch(e->out.context, batch);
		batch_release(batch);
	}
	stacks_clear(&e->stacks[e->buffer]);
	e->rows.list.n = 0;
	e->books = NULL;
	e->news.reading = SAMPLER_BUFFERS;
	processes_age(&e->processes, KEEP_INTERVALS, on_gone, e);
	walks_tick(e->walks);
	news_rest(&e->news);
	settle_processes(e);
	news_deal(&e->news);
	e->start_ns = end_ns;
}

int engine_reconfigure(struct engine *e, struct ebpf_options *options, struct error *err)
{
	struct ebpf_options old = e->options;
	uint32_t mode_follow = old.follow;
	int r;

	if (!e->session) {
		ebpf_options_fini(&e->options);
		e->options = *options;
		r = matcher_set_default(e->matcher, !options->targets_only, options->default_target,
					options->n_default_target);
		return r == 0 ? engine_retarget(e, err) : r;
	}
	r = matcher_set_default(e->matcher, !options->targets_only, options->default_target,
				options->n_default_target);
	if (r != 0) {
		ebpf_options_fini(options);
		return r;
	}
	if (options->rate_hz != old.rate_hz || options->interval_ns > old.interval_ns ||
	    options->follow != mode_follow || !ebpf_options_same_runtimes(options, &old)) {
		/* The maps are sized, and the programs chosen, at load. */
		engine_finish(e);
		unload(e);
		e->finished = false;
	} else {
		engine_collect(e);
	}
	ebpf_options_fini(&e->options);
	e->options = *options;
	return engine_retarget(e, err);
}

void engine_finish(struct engine *e)
{
	if (!e->session || e->finished)
		return;
	check(!e->books);
	e->finished = true;
	session_stop(e->session);
	engine_collect(e);
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

int engine_tell(struct engine *e, tell_fn fn, void *context)
{
	return tell_targets(e->matcher, &e->processes, fn, context);
}

void engine_get_stats(const struct engine *e, struct engine_stats *ret)
{
	*ret = e->stats;
	ret->n_process_records = e->news.n_processes;
	ret->n_left_out = e->news.n_left_out;
	if (e->walks) {
		walks_get_stats(e->walks, &ret->walks);
		unwind_get_stats(walks_store(e->walks), &ret->unwind);
	}
	ret->n_processes = e->processes.all.n;
	tell_count(e->matcher, &e->processes, &ret->n_targets, &ret->n_matched);
}
