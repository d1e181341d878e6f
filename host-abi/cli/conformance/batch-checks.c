/* SPDX-License-Identifier: Apache-2.0 */
/* What a component does with batches that are not its own, and with many of them, and of updates of
 * targets. */
#include "cli/conformance/part-input.h"
#include "cli/conformance/process-state.h"

#include <limits.h>

#define QUIET_MS   50
#define EACH_MS    1
#define STRETCH    52 /* batches or updates: all targets are gone at its end */
#define STRETCHES  8
#define LEAST_LEAK (STRETCH * 16L) /* what malloc takes at least for each */
#define DONE_NS    (2 * INT64_C(1000000000))

static bool begin(struct part *p, struct trial *t)
{
	if (!part_open(p, t, HOST_PLAIN) || !part_create(p, false))
		return false;
	if (!part_start(p))
		trial_skip(t, "%s: %s",
			   part_capability(p) ? part_capability(p) : "what `start` asks for",
			   *p->min->error.text ? p->min->error.text : "an extension");
	return !trial_is_over(t);
}

static void check_untouched(struct trial *t)
{
	static struct part_batch batch;
	static struct part p;
	const struct andiron_batch *frozen;

	if (!t->component->batch) {
		trial_other_kind(t);
		return;
	}
	if (!begin(&p, t))
		return;
	frozen = part_batch_make(&batch) ? part_batch_freeze(&batch, t) : NULL;
	if (!frozen) {
		trial_skip(t, "memory");
		return;
	}
	trial_doing(t, "batch");
	t->component->batch(p.min->self, frozen);
	part_serve(&p, QUIET_MS);
	trial_doing(t, "drain");
	andiron_min_drain(p.min, DONE_NS);
	part_end(&p);
}

/* Whether it has nothing in its hands: all was delivered, sent on, or dropped. */
static bool has_let_go(const struct part *p)
{
	const uint64_t *l = p->min->ledger;

	return !l[ANDIRON_LEDGER_IN_FLIGHT] && !l[ANDIRON_LEDGER_SPOOLED] &&
	       !l[ANDIRON_LEDGER_UNCERTAIN];
}

/* Whether it has done with all of a stretch after a while. */
static bool give_batches(struct part *p, struct part_input *input)
{
	const int64_t end = andiron_min_now() + DONE_NS;

	for (int i = 0; i < STRETCH; i++)
		part_give_batch(p, input, 0);
	while (!(has_let_go(p) && input->batch.n_held == 0) && andiron_min_now() < end)
		andiron_min_turn(&p->loop, EACH_MS);
	part_serve(p, EACH_MS);
	return has_let_go(p) && input->batch.n_held == 0;
}

/* At the end of a stretch there are no targets. What is held of old updates is judged by memory. */
static bool give_updates(struct part *p, struct part_input *input)
{
	static struct part_update updates[STRETCHES * STRETCH];
	static uint64_t n;

	for (int i = 0; i < STRETCH; i++, n++) {
		part_input_update(input, n, &updates[n]);
		part_give_update(p, &updates[n], 0);
	}
	part_serve(p, EACH_MS);
	return true;
}

static long less(long least, long before, long now)
{
	return now - before < least ? now - before : least;
}

static bool is_leak(const struct process_usage *least)
{
	return least->n_bytes >= LEAST_LEAK || least->n_descriptors > 0 || least->n_threads > 0 ||
	       least->n_mapped > 0;
}

/* A leak grows in every stretch; what is made ready once does not. */
static void judge_many(struct trial *t, const char *what,
		       bool (*give)(struct part *p, struct part_input *input))
{
	static struct part_input input;
	static struct part p;
	struct process_usage before, now, least = {LONG_MAX, LONG_MAX, LONG_MAX, LONG_MAX};

	if (!part_input_make(&input, t) || !begin(&p, t))
		return;
	for (int i = 0; i < STRETCHES && is_leak(&least); i++) {
		process_usage_read(&before);
		if (!give(&p, &input)) {
			trial_figure(t, "it keeps what it is given, so what it leaves was not "
					"judged");
			part_end(&p);
			return;
		}
		process_usage_read(&now);
		least.n_descriptors =
			less(least.n_descriptors, before.n_descriptors, now.n_descriptors);
		least.n_threads = less(least.n_threads, before.n_threads, now.n_threads);
		least.n_bytes = less(least.n_bytes, before.n_bytes, now.n_bytes);
		least.n_mapped = less(least.n_mapped, before.n_mapped, now.n_mapped);
	}
	if (is_leak(&least))
		trial_fail(t,
			   "each %d %s have left %ld descriptors, %ld threads, %ld bytes, and %ld "
			   "more bytes mapped, or more of them",
			   STRETCH, what, least.n_descriptors, least.n_threads, least.n_bytes,
			   least.n_mapped);
	part_end(&p);
}

static void check_batches(struct trial *t)
{
	if (t->component->batch)
		judge_many(t, "batches", give_batches);
	else
		trial_other_kind(t);
}

static void check_updates(struct trial *t)
{
	if (t->component->targets)
		judge_many(t, "updates of targets", give_updates);
	else
		trial_other_kind(t);
}

const struct check batch_checks[] = {
	{"batch-untouched", "a batch that it is given stays as it is",
	 "others read the same batch at the same time", "copy what is to be changed",
	 SUBJECT_COMPONENT, check_untouched},
	{"batches-400",
	 "memory, descriptors and threads do not grow with the number of batches",
	 "an agent runs for months, and has a batch every few seconds",
	 "free what `batch` has made when the batch is done with", SUBJECT_COMPONENT,
	 check_batches},
	{"updates-400",
	 "memory, descriptors and threads do not grow with updates of targets",
	 "an agent runs for months, and targets come and go",
	 "free what belongs to a row when it is replaced or removed", SUBJECT_COMPONENT,
	 check_updates},
	{0},
};
