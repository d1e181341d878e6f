/* SPDX-License-Identifier: Apache-2.0 */
/* What each kind of component is for: targets in, targets out; batches in, batches out or
 * delivered; samples taken; extensions. Everything that goes in is counted when it is retained and
 * released, and is of newer headers: the structs are longer, and there is a column that nobody
 * knows. */
#include "cli/conformance/part.h"

#include "abi/batch-build.h"
#include "abi/target-list.h"
#include "base/clock.h"
#include "host/registry/describe-check.h"

#include <unistd.h>

#define N_SAMPLES 97u
#define WAIT_NS   (2 * INT64_C(1000000000))
#define DRAIN_NS  INT64_C(1000000000)
#define QUIET_MS  50
#define GIVEN     "validate-plugin"
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

/* An update as a newer producer sends it, whose references are counted. */
struct counted_update {
	struct andiron_targets known;
	uint64_t unknown[4];
	const struct andiron_targets *real;
	long n_held;
};

static void retain_update(void *owner)
{
	((struct counted_update *)owner)->n_held++;
}

static void release_update(void *owner)
{
	((struct counted_update *)owner)->n_held--;
}

static const char *port_of(const struct andiron_component *c)
{
	const struct andiron_option *o;

	for (uint32_t i = 0; (o = option_at(c->options, i)); i++)
		if (o->type == ANDIRON_TYPE_TARGETS)
			return o->name;
	return "targets";
}

/* Hands over what has changed in the list since the last time. */
static void give_changes(struct part *p, struct target_list *list, struct counted_update *u)
{
	if (target_list_flush(list, &u->real) < 0 || !u->real)
		return;
	u->known = *u->real;
	u->known.size = offsetof(struct counted_update, real);
	memset(u->unknown, 0xff, sizeof(u->unknown));
	u->known.owner = u;
	u->known.retain = retain_update;
	u->known.release = release_update;
	trial_doing(p->t, "targets");
	p->min->component->targets(p->min->self, port_of(p->min->component), &u->known);
	part_serve(p, NULL, QUIET_MS);
}

#define N_UPDATES 4

/* Three rows; one goes and one changes; one comes again; all go. */
static void change_list(struct target_list *list, int step)
{
	char pid[16];
	struct target_label labels[] = {{STR("__process_pid__"), STR_NULL},
					{STR("service_name"), STR(GIVEN)},
					{STR("step"), STR("0")}};

	snprintf(pid, sizeof(pid), "%d", getpid());
	labels[0].value = str_of(pid);
	for (uint64_t row = 1; step == 0 && row <= 3; row++)
		target_list_set(list, row, row, labels, 3);
	labels[2].value = STR("1");
	if (step == 1) {
		target_list_remove(list, 2);
		target_list_set(list, 3, 3, labels, 2);
	}
	if (step == 2)
		target_list_set(list, 2, 1, labels, 3);
	if (step == 3)
		target_list_clear(list);
}

/* What came of a row that was given: a component may have others. */
static void count_given(void *context, int change, struct target_row *row)
{
	size_t *n = context;

	for (uint32_t i = 0; i < row->n_labels; i++)
		if (str_is(row->labels[i].value, GIVEN)) {
			++*n;
			return;
		}
}

static void check_consumer(struct trial *t)
{
	static struct counted_update updates[N_UPDATES];
	static struct part p;
	struct target_list *list = target_list_new(1);
	size_t n_left = 0;

	if (!t->component->targets) {
		trial_other_kind(t);
		return;
	}
	if (!list || !begin(&p, t))
		return;
	for (int i = 0; i < N_UPDATES && !trial_is_over(t); i++) {
		change_list(list, i);
		give_changes(&p, list, &updates[i]);
	}
	target_table_each(p.targets, count_given, &n_left);
	if (exports(t->component, ANDIRON_EXPORT_TARGETS) && p.n_updates == 0)
		trial_fail(t, "it was given targets, and has sent none");
	if (n_left > 0)
		trial_fail(t,
			   "all targets that it was given are gone, and %zu of those that it "
			   "has sent are there",
			   n_left);
	part_end(&p);
	for (int i = 0; i < N_UPDATES; i++)
		if (updates[i].n_held != 0)
			trial_fail(t, "after `destroy` it holds an update %ld times",
				   updates[i].n_held);
}

/* --- Batches --- */

struct counted_batch {
	struct andiron_batch known;
	uint64_t unknown[4];
	const struct andiron_batch *real;
	struct andiron_column columns[ANDIRON_COL_ENCODED + 1];
	long n_held;
};

static void retain_batch(void *owner)
{
	((struct counted_batch *)owner)->n_held++;
}

static void release_batch(void *owner)
{
	((struct counted_batch *)owner)->n_held--;
}

static void add_stack(struct batch_builder *b, struct andiron_row *row)
{
	struct andiron_location location = {.kind = ANDIRON_FRAME_NATIVE, .address = 0x1000};
	struct andiron_function function = {0};
	struct andiron_line line = {.line = 12};
	uint32_t frames[2];

	function.name = batch_add_string(b, STR("work"));
	function.file = batch_add_string(b, STR("example.c"));
	line.function = batch_add_function(b, &function);
	frames[0] = batch_add_named(b, &location, &line, 1);
	location.address = 0x2000;
	function.name = batch_add_string(b, STR("main"));
	line.function = batch_add_function(b, &function);
	frames[1] = batch_add_named(b, &location, &line, 1);
	row->stack = batch_add_stack(b, frames, 2);
}

static bool make_batch(struct counted_batch *ret)
{
	struct batch_builder *b = batch_builder_new();
	struct andiron_profile_type type = {.period = 1000000000 / N_SAMPLES};
	struct andiron_row row = {.value = 1000000000, .samples = N_SAMPLES};
	const int64_t now = clock_real();
	const struct batch_head head = {
		.start_ns = now - 1000000000, .end_ns = now, .producer = 1, .sequence = 1};
	uint32_t label;

	if (!b)
		return false;
	add_stack(b, &row);
	type.name = batch_add_string(b, STR("process_cpu"));
	type.type = type.period_type = batch_add_string(b, STR("cpu"));
	type.unit = type.period_unit = batch_add_string(b, STR("nanoseconds"));
	row.type = batch_add_type(b, &type);
	label = batch_add_str_attribute(b, STR("service_name"), STR(GIVEN));
	batch_group_begin(b, &label, 1);
	batch_add_row(b, &row);
	if (batch_finish(b, &head, &ret->real) < 0 ||
	    ret->real->n_columns >= sizeof(ret->columns) / sizeof(ret->columns[0]))
		return false;
	ret->known = *ret->real;
	ret->known.size = offsetof(struct counted_batch, real);
	memset(ret->unknown, 0xff, sizeof(ret->unknown));
	memcpy(ret->columns, ret->real->columns, ret->real->n_columns * sizeof(ret->columns[0]));
	ret->columns[ret->known.n_columns] = ret->columns[0];
	ret->columns[ret->known.n_columns++].id = 9999;
	ret->known.columns = ret->columns;
	ret->known.owner = ret;
	ret->known.retain = retain_batch;
	ret->known.release = release_batch;
	return true;
}

/* The equation of host.h, for what one writer was given. */
static void judge_writer(struct part *p)
{
	const uint64_t *l = p->min->ledger;
	uint64_t sum = l[ANDIRON_LEDGER_DELIVERED] + l[ANDIRON_LEDGER_DROPPED] +
		       l[ANDIRON_LEDGER_IN_FLIGHT] + l[ANDIRON_LEDGER_SPOOLED] +
		       l[ANDIRON_LEDGER_UNCERTAIN];

	if (sum != N_SAMPLES)
		trial_fail(p->t,
			   "it was given %u samples, and its ledger has %llu delivered, %llu "
			   "dropped, %llu in flight, %llu spooled, %llu uncertain",
			   N_SAMPLES, (unsigned long long)l[ANDIRON_LEDGER_DELIVERED],
			   (unsigned long long)l[ANDIRON_LEDGER_DROPPED],
			   (unsigned long long)l[ANDIRON_LEDGER_IN_FLIGHT],
			   (unsigned long long)l[ANDIRON_LEDGER_SPOOLED],
			   (unsigned long long)l[ANDIRON_LEDGER_UNCERTAIN]);
	else if (l[ANDIRON_LEDGER_DELIVERED] != N_SAMPLES)
		trial_skip(p->t,
			   "somebody who takes it; %llu samples are accounted for, %llu "
			   "delivered: %s",
			   (unsigned long long)sum, (unsigned long long)l[ANDIRON_LEDGER_DELIVERED],
			   complaint(p));
}

static void judge_forwarder(struct part *p)
{
	uint64_t dropped = p->min->ledger[ANDIRON_LEDGER_DROPPED];

	if (p->n_samples + dropped != N_SAMPLES)
		trial_fail(p->t,
			   "it was given %u samples, has sent %llu on, and has counted %llu "
			   "as dropped",
			   N_SAMPLES, (unsigned long long)p->n_samples,
			   (unsigned long long)dropped);
}

static void check_batches(struct trial *t)
{
	static struct counted_batch batch;
	static struct part p;

	if (!t->component->batch) {
		trial_other_kind(t);
		return;
	}
	if (!make_batch(&batch) || !begin(&p, t))
		return;
	trial_doing(t, "batch");
	t->component->batch(p.min->self, &batch.known);
	part_serve(&p, NULL, QUIET_MS);
	trial_doing(t, "drain");
	if (andiron_min_drain(p.min, DRAIN_NS) == -ETIMEDOUT)
		trial_fail(t, "it has not said `drained` a second after the deadline of `drain`");
	part_stop(&p);
	if (t->component->flags & ANDIRON_COMPONENT_WRITER)
		judge_writer(&p);
	else
		judge_forwarder(&p);
	part_destroy(&p);
	if (batch.n_held != 0)
		trial_fail(t, "after `destroy` it holds the batch %ld times", batch.n_held);
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
	static struct counted_update update;
	static struct part p;
	struct target_list *list = target_list_new(1);
	const uint64_t *l;

	if (t->component->batch || !sends_batches(t->component)) {
		trial_other_kind(t);
		return;
	}
	if (!list || !begin(&p, t))
		return;
	l = p.min->ledger;
	change_list(list, 0);
	if (t->component->targets)
		give_changes(&p, list, &update);
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
