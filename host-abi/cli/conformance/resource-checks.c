/* SPDX-License-Identifier: Apache-2.0 */
/* What a component takes and leaves: memory, descriptors, threads, stack, and the state of the
 * process. Libraries set themselves up in
 * the first rounds, so what grows but once is no fault. */
#include "cli/conformance/call-stack.h"
#include "cli/conformance/import-hook.h"
#include "cli/conformance/part-input.h"
#include "cli/conformance/process-state.h"

#include "base/clock.h"

#include <dlfcn.h>
#include <poll.h>

#define ROUNDS        1000
#define STRETCHES     12
#define RESTARTS      20
#define MAX_FAILURES  20000
#define STACK_ALLOWED 8192
#define HOST_STACK    512 /* of the host's functions that it calls */
#define QUIET_MS      20
#define MAX_TURNS     100
#define REPEATS       9
#define EACH_NS       (10 * NS_PER_SEC)
#define DRAIN_NS      INT64_C(1000000000)
#define SETTLE_MS     10
#define SETTLE_TURNS  2000 /* in all lives of one check */

/* --- The state of the process --- */

/* `before` may be NULL: another check compares. */
static bool compare(struct trial *t, const struct process_state *before, const char *when)
{
	struct process_state now;
	const char *what;

	if (!before)
		return true;
	process_state_read(&now);
	what = process_state_difference(before, &now);
	if (what)
		trial_fail(t, "%s has changed %s", when, what);
	return !what;
}

/* Loading alone; the check's process has not loaded it. */
static void check_load(struct trial *t)
{
	struct process_state before;
	struct process_usage used, now;

	process_state_read(&before);
	process_usage_read(&used);
	trial_doing(t, "dlopen");
	if (!dlopen(t->file, RTLD_NOW | RTLD_LOCAL)) {
		trial_skip(t, "a plugin that can be loaded");
		return;
	}
	compare(t, &before, "loading it");
	process_usage_read(&now);
	if (now.n_threads != used.n_threads)
		trial_fail(t, "loading it has started a thread");
	if (now.n_descriptors != used.n_descriptors)
		trial_fail(t, "loading it has left a descriptor open");
}

/* What the host does with an instance that has started. */
static void use(struct part *p, const struct process_state *before)
{
	static struct part_input input;

	if (!part_input_make(&input, p->t))
		return;
	part_serve(p, QUIET_MS);
	compare(p->t, before, "a call of its timers, watches and work");
	part_give_updates(p, &input, QUIET_MS);
	compare(p->t, before, "what it has done when it was given targets");
	part_give_batch(p, &input, QUIET_MS);
	compare(p->t, before, "what it has done when it was given a batch");
	part_metrics(p);
	compare(p->t, before, "`metrics`");
	if (trial_is_over(p->t))
		return;
	trial_doing(p->t, "drain");
	andiron_min_drain(p->min, DRAIN_NS);
	compare(p->t, before, "`drain`");
}

static void check_state(struct trial *t)
{
	struct process_state before;
	static struct part p;
	long n_nameless;

	if (!part_open(&p, t, HOST_PLAIN))
		return;
	process_state_read(&before);
	if (!part_create(&p, false) || !compare(t, &before, "`create`"))
		return;
	part_start(&p);
	compare(t, &before, "`start`");
	if (p.started)
		use(&p, &before);
	if (!process_threads_block_signals())
		trial_fail(t, "a thread that it has started has signals that are not blocked");
	n_nameless = process_nameless_threads();
	if (n_nameless)
		trial_figure(t,
			     "threads without a name of their own: %ld; pthread_setname_np helps "
			     "whoever looks for what takes CPU time",
			     n_nameless);
	part_end(&p);
	compare(t, &before, "`stop` or `destroy`");
}

/* Sockets are but told: libcurl makes those that it wakes itself with so, and no user of it can
 * have others. */
static void look_at_descriptors(struct trial *t)
{
	char what[200];

	for (int fd = STDERR_FILENO; (fd = process_passed_descriptor(fd, what, sizeof(what))) >= 0;)
		if (str_starts(str_of(what), STR("socket:")))
			trial_figure(t, "but for a socket, which may be a library's");
		else
			trial_fail(t, "a descriptor that it has opened stays open across exec: %s",
				   what);
}

static void check_descriptors(struct trial *t)
{
	static struct part p;

	process_keep_descriptors();
	if (!part_open(&p, t, HOST_PLAIN) || !part_create(&p, false))
		return;
	if (part_start(&p))
		use(&p, NULL);
	look_at_descriptors(t);
	part_end(&p);
}

/* --- Memory, descriptors and threads --- */

/* The process before the first life, and how often this check still looks whether it is as quiet
 * again: a thread that looks a name up outlives its component, and has memory until it ends. */
struct rest {
	struct process_usage usage;
	int turns;
};

static struct rest rest_begin(void)
{
	struct rest r = {.turns = SETTLE_TURNS};

	process_usage_read(&r.usage);
	return r;
}

static void settle(struct part *p, struct rest *r, struct process_usage *ret_now)
{
	process_usage_read(ret_now);
	while ((ret_now->n_threads > r->usage.n_threads ||
		ret_now->n_descriptors > r->usage.n_descriptors) &&
	       r->turns-- > 0) {
		poll(NULL, 0, SETTLE_MS);
		process_usage_read(ret_now);
	}
	/* What such a thread has asked for waits in the loop. */
	for (int i = 0; i < MAX_TURNS && andiron_min_turn(&p->loop, 0) > 0; i++)
		;
	process_usage_read(ret_now);
}

/* Without input it is not started. */
static bool round_trip(struct part *p, struct part_input *input)
{
	if (!part_create(p, false))
		return false;
	if (input && part_start(p)) {
		part_serve(p, 0);
		part_give_updates(p, input, 0);
		part_give_batch(p, input, 0);
	}
	part_stop(p);
	part_destroy(p);
	return !trial_is_over(p->t);
}

/* What so many rounds have left. */
static bool go_round(struct part *p, int rounds, struct part_input *input, struct rest *rest,
		     struct process_usage *ret_left)
{
	struct process_usage before, now;

	settle(p, rest, &before);
	for (int i = 0; i < rounds; i++)
		if (!round_trip(p, input))
			return false;
	settle(p, rest, &now);
	ret_left->n_descriptors = now.n_descriptors - before.n_descriptors;
	ret_left->n_threads = now.n_threads - before.n_threads;
	ret_left->n_bytes = now.n_bytes - before.n_bytes;
	ret_left->n_mapped = now.n_mapped - before.n_mapped;
	return true;
}

/* A leak grows in every stretch of rounds; what libraries keep for later, as libc keeps the stacks
 * of as many threads as there have been at once, grows only until it is enough. */
static void judge_rounds(struct part *p, int rounds, struct part_input *input)
{
	struct process_usage left = {0};
	struct rest rest = rest_begin();

	for (int i = 0; i < STRETCHES; i++) {
		if (!go_round(p, rounds, input, &rest, &left))
			return;
		if (left.n_descriptors <= 0 && left.n_threads <= 0 && left.n_bytes <= 0 &&
		    left.n_mapped <= 0 && i > 0)
			return;
	}
	trial_fail(p->t,
		   "%d rounds have left %ld descriptors, %ld threads, %ld bytes, and %ld more "
		   "bytes mapped",
		   rounds, left.n_descriptors, left.n_threads, left.n_bytes, left.n_mapped);
}

static void check_rounds(struct trial *t)
{
	static struct part p;

	if (part_open(&p, t, HOST_PLAIN))
		judge_rounds(&p, ROUNDS / 2, NULL);
}

static void check_restarts(struct trial *t)
{
	static struct part_input input;
	static struct part p;

	if (part_open(&p, t, HOST_PLAIN) && part_input_make(&input, t))
		judge_rounds(&p, RESTARTS / 2, &input);
}

/* --- Out of memory --- */

static void turn(struct part *p)
{
	for (int i = 0; i < MAX_TURNS && andiron_min_turn(&p->loop, 0) > 0; i++)
		;
}

/* As `use`, without a word of what it does: the allocation that fails is what counts. */
static void use_quietly(struct part *p, struct part_input *input)
{
	turn(p);
	for (int i = 0; i < PART_UPDATES; i++) {
		part_call_targets(p, &input->updates[i]);
		turn(p);
	}
	part_call_batch(p, input);
	turn(p);
}

/* One life in which allocation n fails: by how much more is allocated after it. */
static int64_t life_without(struct part *p, struct part_input *input, long n, struct rest *rest)
{
	struct process_usage before, after;

	settle(p, rest, &before);
	trial_doing(p->t, "a life in which allocation %ld fails", n);
	import_hook_fail(n);
	part_renew(p);
	if (p->min->component->create(p->min->host, (uint64_t)(uintptr_t)p->min,
				      p->arguments.values, &p->min->self, &p->min->error) >= 0) {
		if (p->min->component->start(p->min->self, &p->min->error) >= 0)
			use_quietly(p, input);
		p->min->component->stop(p->min->self);
		while (p->min->pending && andiron_min_turn(&p->loop, -1) > 0)
			;
		p->min->gone = 1;
		p->min->component->destroy(p->min->self);
	}
	p->min->self = NULL;
	settle(p, rest, &after);
	return after.n_bytes - before.n_bytes;
}

/* From one allocation that fails to the next. A life that takes long, and has many, is tried at
 * fewer of them: the more time has passed, the farther apart. */
static long step_after(int64_t began_ns)
{
	int64_t passed = clock_mono() - began_ns;

	return passed < EACH_NS ? 1 : 1 + (long)((passed - EACH_NS) / NS_PER_SEC);
}

/* What a life leaves counts where each one leaves it: libraries set themselves up once. */
static void fail_each(struct part *p, struct part_input *input, struct rest *rest)
{
	int64_t began = clock_mono();
	bool has_failed = true;
	long n, n_tried = 0;

	for (n = 0; n < MAX_FAILURES && has_failed && !trial_is_over(p->t);
	     n += step_after(began), n_tried++) {
		int64_t left = life_without(p, input, n, rest);

		has_failed = import_hook_failed();
		for (int again = 0; again < REPEATS && left > 0; again++)
			left = life_without(p, input, n, rest);
		if (left > 0)
			trial_fail(p->t, "where allocation %ld fails, %lld bytes stay allocated", n,
				   (long long)left);
	}
	import_hook_fail(-1);
	if (has_failed && n >= MAX_FAILURES)
		trial_fail(p->t, "its life has more than %d allocations", MAX_FAILURES);
	if (n_tried == n)
		trial_figure(p->t, "each of %ld allocations", n - 1);
	else
		trial_figure(p->t, "%ld of some %ld allocations", n_tried - 1, n);
}

static void check_memory(struct trial *t)
{
	static struct part p;
	static struct part_input input;
	struct rest rest;

	if (!part_open(&p, t, HOST_PLAIN) || !part_input_make(&input, t))
		return;
	rest = rest_begin();
	if (!round_trip(&p, &input))
		return;
	if (import_hook_install(t->library) < 0) {
		trial_skip(t, "a file whose imports can be found");
		return;
	}
	fail_each(&p, &input, &rest);
}

/* --- Stack --- */

struct stack_call {
	struct part *p;
	struct part_input *input;
	void (*fn)(struct part *p, struct part_input *input);
};

static void call(void *arg)
{
	const struct stack_call *c = arg;

	c->fn(c->p, c->input);
}

static void do_create(struct part *p, struct part_input *input)
{
	p->min->component->create(p->min->host, (uint64_t)(uintptr_t)p->min, p->arguments.values,
				  &p->min->self, &p->min->error);
}

static void do_start(struct part *p, struct part_input *input)
{
	p->started = p->min->component->start(p->min->self, &p->min->error) >= 0;
}

/* Where it has not started these are not called. */
static void do_targets(struct part *p, struct part_input *input)
{
	if (p->started)
		part_call_targets(p, &input->updates[0]);
}

static void do_batch(struct part *p, struct part_input *input)
{
	if (p->started)
		part_call_batch(p, input);
}

static void ignore_metric(void *self, const struct andiron_metric *m)
{
}

static void do_metrics(struct part *p, struct part_input *input)
{
	static const struct andiron_metric_sink sink = {.size = sizeof(sink),
							.add = ignore_metric};

	if (p->started && p->min->component->metrics)
		p->min->component->metrics(p->min->self, &sink);
}

static void do_drain(struct part *p, struct part_input *input)
{
	if (p->started && p->min->component->drain)
		p->min->component->drain(p->min->self, DRAIN_NS);
}

static void do_stop(struct part *p, struct part_input *input)
{
	p->min->component->stop(p->min->self);
}

static void do_destroy(struct part *p, struct part_input *input)
{
	p->min->component->destroy(p->min->self);
	p->min->self = NULL;
}

static void check_stack(struct trial *t)
{
	static const struct {
		const char *name;
		void (*fn)(struct part *p, struct part_input *input);
	} calls[] = {{"create", do_create},
		     {"start", do_start},
		     {"targets", do_targets},
		     {"batch", do_batch},
		     {"metrics", do_metrics},
		     {"drain", do_drain},
		     {"stop", do_stop},
		     {"destroy", do_destroy}};
	static struct part_input input;
	static struct part p;
	int64_t most = 0;
	const char *where = "";

	if (!part_open(&p, t, HOST_PLAIN) || !part_input_make(&input, t))
		return;
	p.min->on_targets = NULL; /* it takes more stack than a host's may */
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		int64_t used;

		trial_doing(t, "%s, on a stack that is watched", calls[i].name);
		used = call_stack_use(call, &(struct stack_call){&p, &input, calls[i].fn});
		if (!p.min->self && i == 0) {
			part_create(&p, false); /* it says why */
			return;
		}
		if (used > most) {
			most = used;
			where = calls[i].name;
		}
		if (p.min->self)
			part_serve(&p, QUIET_MS);
	}
	trial_figure(t, "%lld bytes in `%s`, 8192 are allowed", (long long)most, where);
	if (most > STACK_ALLOWED + HOST_STACK)
		trial_fail(t, "`%s` uses %lld bytes of stack, 8192 are allowed", where,
			   (long long)most);
}

#define LEFT_WHY "an agent runs for months, and reloads"

const struct check resource_checks[] = {
	{"load-untouched", "loading it starts no thread, opens nothing and changes nothing",
	 "programs load plugins to look at them", "do it in `start`", SUBJECT_LOADING, check_load},
	{"process-untouched",
	 "signals, locale, directory, environment, standard streams, limits, priority and "
	 "rounding stay as they are; its threads block signals",
	 "the process is not the plugin's, and other threads depend on all of these",
	 "use uselocale, openat, and masks around pthread_create", SUBJECT_COMPONENT, check_state},
	{"close-on-exec", "programs that others start do not inherit its descriptors",
	 "a file, a connection or a lock would stay open for as long as such a program runs",
	 "open with O_CLOEXEC, SOCK_CLOEXEC, or fopen \"re\"", SUBJECT_COMPONENT,
	 check_descriptors},
	{"create-1000", "1000 instances made and destroyed leave nothing", LEFT_WHY,
	 "free in `destroy` whatever `create` has made", SUBJECT_COMPONENT, check_rounds},
	{"restart-20", "20 instances started, given targets and batches, and stopped leave nothing",
	 LEFT_WHY,
	 "end in `stop` and `destroy` whatever `start` has begun", SUBJECT_COMPONENT,
	 check_restarts},
	{"out-of-memory", "whichever allocation fails, it returns, and leaves nothing",
	 "memory is short in small containers, and a crash there is a crash of the agent",
	 "look at the result of each malloc, return -ENOMEM, and free what was made before",
	 SUBJECT_COMPONENT, check_memory},
	{"stack-8k", "its calls use at most 8 KiB of stack",
	 "hosts call it on threads with small stacks, of Go or Java among others",
	 "put large buffers into the instance, or on the heap", SUBJECT_COMPONENT, check_stack},
	{0},
};
