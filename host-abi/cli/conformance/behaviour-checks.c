/* SPDX-License-Identifier: Apache-2.0 */
/* What each kind of component is for: targets in, targets out; batches in, batches out or
 * delivered; samples taken; extensions. Everything that goes in is counted when it is retained and
 * released, and is of newer headers: the structs are longer, and there is a column that nobody
 * knows. */
#include "cli/conformance/part-input.h"

#include "abi/target-list.h"
#include "host/registry/describe-check.h"

#include <unistd.h>

#define WAIT_NS   (2 * INT64_C(1000000000))
#define DRAIN_NS  INT64_C(1000000000)
#define QUIET_MS  50
#define STEP_MS   20

static bool exports(const struct andiron_component *c, uint32_t type)
{
	for (uint64_t i = 0; i < c->n_exports; i++)
		if (c->exports[i].type == type)
			return true;
	return false;
}

/* Serves it until `is_done`, for at most two seconds. With a step of 0 this process is busy all the
 * time, so that there is something to sample. */
static bool wait_for(struct part *p, bool (*is_done)(const struct part *p), int32_t step_ms)
{
	const int64_t end = andiron_min_now() + WAIT_NS;

	trial_doing(p->t, "its timers, watches and work");
	while (!is_done(p) && !trial_is_over(p->t) && andiron_min_now() < end)
		andiron_min_turn(&p->loop, step_ms);
	return is_done(p);
}

/* What it says of itself, for "needs …". */
static const char *complaint(const struct part *p)
{
	return *p->min->health_text ? p->min->health_text : "something that it does not name";
}

static bool begin(struct part *p, struct trial *t)
{
	if (!part_open(p, t, HOST_PLAIN))
		return false;
	p->judges_output = true;
	if (!part_create(p, false))
		return false;
	if (!part_start(p))
		trial_skip(t, "%s: %s",
			   part_capability(p) ? part_capability(p) : "what `start` asks for",
			   *p->min->error.text ? p->min->error.text : "an extension");
	return !trial_is_over(t);
}

/* --- Targets --- */

static bool has_sent_targets(const struct part *p)
{
	return p->n_updates > 0;
}

static void check_source(struct trial *t)
{
	static struct part p;

	if (t->component->targets || !exports(t->component, ANDIRON_EXPORT_TARGETS)) {
		trial_other_kind(t);
		return;
	}
	if (!begin(&p, t))
		return;
	if (!wait_for(&p, has_sent_targets, STEP_MS))
		trial_skip(t, "%s", complaint(&p));
	trial_figure(t, "%llu updates", (unsigned long long)p.n_updates);
	part_end(&p);
}

static void judge_references(struct trial *t, const char *what, long n_held)
{
	if (n_held > 0)
		trial_fail(t, "after `destroy` it holds %s %ld times", what, n_held);
	if (n_held < 0)
		trial_fail(t, "it has released %s %ld times more than it has retained it", what,
			   -n_held);
}

/* What came of a row that was given: a component may have others. */
static void count_given(void *context, int change, struct target_row *row)
{
	size_t *n = context;

	for (uint32_t i = 0; i < row->n_labels; i++)
		if (str_is(row->labels[i].value, PART_SERVICE)) {
			++*n;
			return;
		}
}

static void check_consumer(struct trial *t)
{
	static struct part_input input;
	static struct part p;
	size_t n_left = 0;

	if (!t->component->targets) {
		trial_other_kind(t);
		return;
	}
	if (!part_input_make(&input, t) || !begin(&p, t))
		return;
	part_give_updates(&p, &input, QUIET_MS);
	target_table_each(p.targets, count_given, &n_left);
	if (exports(t->component, ANDIRON_EXPORT_TARGETS) && p.n_updates == 0)
		trial_fail(t, "it was given targets, and has sent none");
	if (n_left > 0)
		trial_fail(t,
			   "all targets that it was given are gone, and %zu of those that it "
			   "has sent are there",
			   n_left);
	part_end(&p);
	for (int i = 0; i < PART_UPDATES; i++)
		judge_references(t, "an update", input.updates[i].n_held);
}

/* --- Batches --- */

/* The equation of host.h, for what one writer was given. */
static void judge_writer(struct part *p)
{
	const uint64_t *l = p->min->ledger;
	uint64_t sum = l[ANDIRON_LEDGER_DELIVERED] + l[ANDIRON_LEDGER_DROPPED] +
		       l[ANDIRON_LEDGER_IN_FLIGHT] + l[ANDIRON_LEDGER_SPOOLED] +
		       l[ANDIRON_LEDGER_UNCERTAIN];

	if (sum != PART_SAMPLES)
		trial_fail(p->t,
			   "it was given %u samples, and its ledger has %llu delivered, %llu "
			   "dropped, %llu in flight, %llu spooled, %llu uncertain",
			   PART_SAMPLES, (unsigned long long)l[ANDIRON_LEDGER_DELIVERED],
			   (unsigned long long)l[ANDIRON_LEDGER_DROPPED],
			   (unsigned long long)l[ANDIRON_LEDGER_IN_FLIGHT],
			   (unsigned long long)l[ANDIRON_LEDGER_SPOOLED],
			   (unsigned long long)l[ANDIRON_LEDGER_UNCERTAIN]);
	else if (l[ANDIRON_LEDGER_DELIVERED] != PART_SAMPLES)
		trial_skip(p->t,
			   "somebody who takes it; %llu samples are accounted for, %llu "
			   "delivered: %s",
			   (unsigned long long)sum, (unsigned long long)l[ANDIRON_LEDGER_DELIVERED],
			   complaint(p));
}

static void judge_forwarder(struct part *p)
{
	uint64_t dropped = p->min->ledger[ANDIRON_LEDGER_DROPPED];

	if (p->n_samples + dropped != PART_SAMPLES)
		trial_fail(p->t,
			   "it was given %u samples, has sent %llu on, and has counted %llu "
			   "as dropped",
			   PART_SAMPLES, (unsigned long long)p->n_samples,
			   (unsigned long long)dropped);
}

static void check_batches(struct trial *t)
{
	static struct part_input input;
	static struct part p;

	if (!t->component->batch) {
		trial_other_kind(t);
		return;
	}
	if (!part_input_make(&input, t) || !begin(&p, t))
		return;
	part_give_batch(&p, &input, QUIET_MS);
	trial_doing(t, "drain");
	if (andiron_min_drain(p.min, DRAIN_NS) == -ETIMEDOUT)
		trial_fail(t, "it has not said `drained` a second after the deadline of `drain`");
	part_stop(&p);
	if (t->component->flags & ANDIRON_COMPONENT_WRITER)
		judge_writer(&p);
	else
		judge_forwarder(&p);
	part_destroy(&p);
	judge_references(t, "the batch", input.batch.n_held);
}

/* --- Samples --- */

static bool has_sent_batch(const struct part *p)
{
	return p->n_batches > 0;
}

static bool sends_batches(const struct andiron_component *c)
{
	const struct andiron_option *o;

	for (uint32_t i = 0; (o = option_at(c->options, i)); i++)
		if (o->type == ANDIRON_TYPE_RECEIVERS)
			return true;
	return false;
}

static void check_sampler(struct trial *t)
{
	static struct part_input input;
	static struct part p;
	const uint64_t *l;

	if (t->component->batch || !sends_batches(t->component)) {
		trial_other_kind(t);
		return;
	}
	if (!part_input_make(&input, t) || !begin(&p, t))
		return;
	l = p.min->ledger;
	part_give_update(&p, &input.updates[0], QUIET_MS);
	wait_for(&p, has_sent_batch, 0);
	trial_doing(t, "drain");
	if (andiron_min_drain(p.min, DRAIN_NS) == -ETIMEDOUT)
		trial_fail(t, "it has not said `drained` a second after the deadline of `drain`");
	part_stop(&p);
	if (p.n_batches == 0)
		trial_skip(t, "more than two seconds, or: %s", complaint(&p));
	if (l[ANDIRON_LEDGER_TAKEN] != p.n_samples + l[ANDIRON_LEDGER_DROPPED])
		trial_fail(t,
			   "it has counted %llu samples as taken, and %llu as dropped, and has "
			   "sent %llu",
			   (unsigned long long)l[ANDIRON_LEDGER_TAKEN],
			   (unsigned long long)l[ANDIRON_LEDGER_DROPPED],
			   (unsigned long long)p.n_samples);
	part_destroy(&p);
	trial_figure(t, "%llu samples in %llu batches", (unsigned long long)p.n_samples,
		     (unsigned long long)p.n_batches);
}

/* --- Extensions --- */

static void check_extensions(struct trial *t)
{
	static struct part p;
	const char *const *id = t->component->offers;

	if (!id || !*id) {
		trial_other_kind(t);
		return;
	}
	if (!part_open(&p, t, HOST_PLAIN) || !part_create(&p, false))
		return;
	for (; *id; id++) {
		const void *table;

		trial_doing(t, "extension %.60s", *id);
		table = t->component->extension(p.min->self, *id);
		if (!table)
			trial_fail(t, "it offers %.100s, and has no table for it", *id);
		else if (table != t->component->extension(p.min->self, *id))
			trial_fail(t, "its table for %.100s is another one when it is asked again",
				   *id);
	}
	part_end(&p);
}

const struct check behaviour_checks[] = {
	{"finds-targets", "what discovers sends targets that hold the rules of target.h",
	 "everything behind it is configured by them",
	 "correct the update; andiron/target.h has the rules", SUBJECT_COMPONENT, check_source},
	{"takes-targets", "what takes targets follows them, and holds none when it is gone",
	 "a target that is forgotten is profiled for ever, under a wrong name",
	 "apply added, replaced and removed rows, and release what was retained", SUBJECT_COMPONENT,
	 check_consumer},
	{"takes-batches", "each sample that goes in is delivered, sent on, or counted",
	 "the ledger says what was lost, and is trusted",
	 "call ledger_add for every sample, and "
	 "release what was retained",
	 SUBJECT_COMPONENT, check_batches},
	{"takes-samples",
	 "a sampler sends batches that hold the rules of batch.h, and counts all it takes",
	 "the ledger begins with it", "call ledger_add TAKEN for the samples of each batch, once",
	 SUBJECT_COMPONENT, check_sampler},
	{"offers-extensions", "there is a table for each extension that it offers",
	 "others call it without asking twice", "return the table in `extension`, or offer less",
	 SUBJECT_COMPONENT, check_extensions},
	{0},
};
