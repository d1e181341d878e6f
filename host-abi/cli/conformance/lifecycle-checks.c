/* SPDX-License-Identifier: Apache-2.0 */
/* The orders of calls that component.h allows, and the hosts that host.h allows. `start` twice, and
 * `destroy` of what runs, are no such orders: a host that does that has no promise. An order is
 * written as letters:
 *
 *     c create   s start   v serve what it asks for   i input: targets and a batch   u update
 *     m metrics   D drain   x stop   d destroy */
#include "cli/conformance/part-input.h"
#include "cli/conformance/process-state.h"

#define QUIET_MS 30
#define DRAIN_NS INT64_C(1000000000)

static void step_update(struct part *p)
{
	int32_t r;

	if (!p->min->component->update)
		return;
	trial_doing(p->t, "update");
	p->min->error.text[0] = '\0';
	r = p->min->component->update(p->min->self, p->arguments.values, &p->min->error);
	if (r < 0 && !*p->min->error.text)
		trial_fail(p->t,
			   "`update` refused the arguments that it has (%s), and did not say "
			   "why",
			   strerror(-r));
}

static void step_drain(struct part *p)
{
	trial_doing(p->t, "drain");
	if (andiron_min_drain(p->min, DRAIN_NS) == -ETIMEDOUT)
		trial_fail(p->t,
			   "it has not said `drained` a second after the deadline of `drain`");
}

static void step_input(struct part *p)
{
	static struct part_input input;

	if (!part_input_make(&input, p->t))
		return;
	part_give_updates(p, &input, QUIET_MS);
	part_give_batch(p, &input, QUIET_MS);
}

static void step(struct part *p, char letter)
{
	switch (letter) {
	case 's':
		if (!part_start(p))
			trial_figure(p->t, "`start` failed, as it may: %.300s", p->min->error.text);
		break;
	case 'v':
		if (p->started)
			part_serve(p, QUIET_MS);
		break;
	case 'i':
		if (p->started)
			step_input(p);
		break;
	case 'u':
		if (p->started)
			step_update(p);
		break;
	case 'm':
		part_metrics(p);
		break;
	case 'D':
		if (p->started)
			step_drain(p);
		break;
	case 'x':
		part_stop(p);
		break;
	case 'd':
		part_destroy(p);
		break;
	default:
		break;
	}
}

static void run_order(struct trial *t, enum host_kind host, const char *order)
{
	static struct part p;

	if (!part_open(&p, t, host))
		return;
	for (; *order && !trial_is_over(t); order++) {
		if (*order == 'c' && !part_create(&p, host == HOST_REFUSING))
			break;
		step(&p, *order);
	}
	part_end(&p);
}

static void check_unstarted(struct trial *t)
{
	run_order(t, HOST_PLAIN, "cdcmxd");
}

static void check_stop_unstarted(struct trial *t)
{
	run_order(t, HOST_PLAIN, "cxxd");
}

static void check_whole(struct trial *t)
{
	run_order(t, HOST_PLAIN, "csvmDxdcsvxd");
}

static void check_stop_twice(struct trial *t)
{
	run_order(t, HOST_PLAIN, "csvxxmd");
}

static void check_update(struct trial *t)
{
	run_order(t, HOST_PLAIN, "csuvuxd");
}

static void check_newer_host(struct trial *t)
{
	run_order(t, HOST_NEWER, "csvumDxd");
}

static void check_refusing_host(struct trial *t)
{
	run_order(t, HOST_REFUSING, "csvmDxd");
}

static void check_input(struct trial *t)
{
	if (t->component->targets || t->component->batch)
		run_order(t, HOST_PLAIN, "csimDxd");
	else
		trial_other_kind(t);
}

static void check_drained(struct trial *t)
{
	static struct part p;

	if (!t->component->drain) {
		trial_other_kind(t);
		return;
	}
	if (!part_open(&p, t, HOST_PLAIN) || !part_create(&p, false))
		return;
	if (part_start(&p)) {
		part_serve(&p, QUIET_MS);
		step_drain(&p);
		part_serve(&p, QUIET_MS);
	}
	part_stop(&p);
	part_destroy(&p);
	if (p.n_drained > 1)
		trial_fail(t, "it was drained once, and has said so %u times", p.n_drained);
	part_end(&p);
}

static void check_children(struct trial *t)
{
	static struct part p;

	if (!part_open(&p, t, HOST_PLAIN) || !part_create(&p, false))
		return;
	if (part_start(&p))
		part_serve(&p, QUIET_MS);
	part_stop(&p);
	part_destroy(&p);
	if (process_has_zombie())
		trial_fail(t, "a process that it has started has ended, and it has not waited for "
			      "it");
	part_end(&p);
}

/* `validate` has a host of two functions. */
static void check_validate(struct trial *t)
{
	static const struct andiron_value empty = {.kind = ANDIRON_VALUE_MAP};
	static struct andiron_host host;
	static struct andiron_report report;
	static struct part p;
	int32_t r;

	if (!part_open(&p, t, HOST_PLAIN) || !t->component->validate)
		return;
	host.size = offsetof(struct andiron_host, request_targets);
	host.error_add = andiron_min_host()->error_add;
	host.report_add = andiron_min_host()->report_add;
	trial_doing(t, "validate, on a host that has error_add and report_add only");
	r = t->component->validate(&host, p.arguments.values, &report);
	if (r < 0)
		trial_fail(t,
			   "`validate` returns %d; findings are told by report_add, and it "
			   "returns 0",
			   r);
	if (report.n_errors)
		trial_fail(t, "it refuses on a small host what it took on a whole one: %.300s",
			   report.text);
	if (p.arguments.values->n_items == 0)
		t->component->validate(&host, &empty, &report);
	part_end(&p);
}

/* Each instance has a state of its own. */
static void check_two(struct trial *t)
{
	static struct part one, two;

	if (t->component->flags & (ANDIRON_COMPONENT_SERVICE | ANDIRON_COMPONENT_NO_LABEL)) {
		trial_other_kind(t);
		return;
	}
	if (!part_open(&one, t, HOST_PLAIN) || !part_open(&two, t, HOST_PLAIN) ||
	    !part_create(&one, false) || !part_create(&two, false))
		return;
	if (one.min->self == two.min->self)
		trial_fail(t, "two instances are one: `create` has given the same address twice");
	part_start(&one);
	part_start(&two);
	part_serve(&one, QUIET_MS);
	part_end(&one);
	if (two.started)
		part_serve(&two, QUIET_MS);
	part_end(&two);
}

#define HOST_WHY "hosts are older, newer and smaller than the one that it was tried with"

const struct check lifecycle_checks[] = {
	{"validate-small-host", "`validate` needs a host of two functions only", HOST_WHY,
	 "call nothing but error_add and report_add in `validate`", SUBJECT_COMPONENT,
	 check_validate},
	{"destroy-unstarted", "an instance that never started can be destroyed",
	 "where one component fails, a host destroys the others before they have started",
	 "let `destroy` ask for each thing whether it was made", SUBJECT_COMPONENT,
	 check_unstarted},
	{"stop-unstarted", "an instance that never started can be stopped",
	 "any state may go to `stop`", "let `stop` ask for each thing whether it runs",
	 SUBJECT_COMPONENT, check_stop_unstarted},
	{"start-stop", "it starts, drains and stops, and an instance after it does",
	 "a reload makes and ends instances while the program runs",
	 "keep no state outside the instance, say `drained`, and remove every watch and timer in "
	 "`stop`",
	 SUBJECT_COMPONENT, check_whole},
	{"survives-input", "it comes back from each call that gives it targets or a batch",
	 "what it is for is to be given them",
	 "read within `size` and the counts, keep nothing without `retain`, and do not wait",
	 SUBJECT_COMPONENT, check_input},
	{"drained-once", "it says `drained` once for each `drain`",
	 "a second one is taken for the answer to a later `drain`",
	 "remember in the instance that it was said", SUBJECT_COMPONENT, check_drained},
	{"no-zombies", "a life leaves no process that nobody has waited for",
	 "each one takes a number of the few that a container has",
	 "use the host's `spawn`, or wait for it in `stop`", SUBJECT_COMPONENT, check_children},
	{"stop-twice", "stopping twice is stopping once", "`stop` is idempotent (component.h)",
	 "set what `stop` has ended to nothing", SUBJECT_COMPONENT, check_stop_twice},
	{"update-same", "an update to the same arguments is taken, or refused with a reason",
	 "a reload updates whatever stands in the file", "say why by error_add", SUBJECT_COMPONENT,
	 check_update},
	{"two-instances", "two instances live side by side", "a configuration may have several",
	 "keep everything in the instance, and have no global variables", SUBJECT_COMPONENT,
	 check_two},
	{"newer-host", "a host with a longer table and without optional members will do", HOST_WHY,
	 "ask ANDIRON_HAS before each member behind `extension`, and never compare `size`",
	 SUBJECT_COMPONENT, check_newer_host},
	{"refusing-host",
	 "a host that refuses watches, timers, calls, work and extensions is endured", HOST_WHY,
	 "look at the result of each, and fail with a reason, or go on with less",
	 SUBJECT_COMPONENT, check_refusing_host},
	{0},
};
