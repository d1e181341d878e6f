/* SPDX-License-Identifier: Apache-2.0 */
/* What a component does with batches that are not its own, and with many of them. */
#include "cli/conformance/part-batch.h"
#include "cli/conformance/part.h"
#include "cli/conformance/process-state.h"

#include <limits.h>

#define QUIET_MS   50
#define EACH_MS    1
#define BATCHES    50 /* in a stretch */
#define STRETCHES  8
#define LEAST_LEAK (BATCHES * 16L) /* what malloc takes at least for each */
#define DONE_NS    (2 * INT64_C(1000000000))

static bool begin(struct part *p, struct trial *t)
{
	if (!t->component->batch) {
		trial_other_kind(t);
		return false;
	}
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

	if (!begin(&p, t))
		return;
	frozen = part_batch_make(&batch) ? part_batch_freeze(&batch, t) : NULL;
	if (!frozen) {
		trial_skip(t, "memory");
		return;
	}
	trial_doing(t, "batch");
	t->component->batch(p.min->self, frozen);
	part_serve(&p, NULL, QUIET_MS);
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

/* Whether it has done with all of them after a while. */
static bool give_many(struct part *p, const struct part_batch *batch)
{
	const int64_t end = andiron_min_now() + DONE_NS;

	for (int i = 0; i < BATCHES; i++) {
		trial_doing(p->t, "batch");
		p->t->component->batch(p->min->self, &batch->known);
		part_serve(p, NULL, 0);
	}
	while (!(has_let_go(p) && batch->n_held == 0) && andiron_min_now() < end)
		andiron_min_turn(&p->loop, EACH_MS);
	part_serve(p, NULL, EACH_MS);
	return has_let_go(p) && batch->n_held == 0;
}

/* A leak grows in every stretch; what is made ready once does not. */
static void check_many(struct trial *t)
{
	static struct part_batch batch;
	static struct part p;
	struct process_usage before, now;
	long least = LONG_MAX;

	if (!begin(&p, t))
		return;
	if (!part_batch_make(&batch)) {
		trial_skip(t, "memory");
		return;
	}
	for (int i = 0; i < STRETCHES && least >= LEAST_LEAK; i++) {
		process_usage_read(&before);
		if (!give_many(&p, &batch)) {
			trial_figure(t, "it keeps what it is given, so its memory was not judged");
			part_end(&p);
			return;
		}
		process_usage_read(&now);
		if (now.n_bytes - before.n_bytes < least)
			least = now.n_bytes - before.n_bytes;
	}
	if (least >= LEAST_LEAK)
		trial_fail(t, "each %d batches have left %ld bytes or more", BATCHES, least);
	part_end(&p);
}

const struct check batch_checks[] = {
	{"batch-untouched", "a batch that it is given stays as it is",
	 "others read the same batch at the same time", "copy what is to be changed",
	 SUBJECT_COMPONENT, check_untouched},
	{"batches-400", "memory does not grow with the number of batches",
	 "an agent runs for months, and has a batch every few seconds",
	 "free what `batch` has made when the batch is done with", SUBJECT_COMPONENT, check_many},
	{0},
};
