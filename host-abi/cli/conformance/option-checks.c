/* SPDX-License-Identifier: Apache-2.0 */
/* The option table against what the component does: each default, bound and choice is put into a
 * configuration by itself, and so is what lies beyond. Where a value is taken, an instance is made
 * of it. */
#include "cli/conformance/part.h"

#include "host/registry/describe-check.h"

#define VALUE_BYTES 4096

/* Calls fn for every option, blocks included, with its way through them. */
static void each_option(struct trial *t, const struct andiron_options *options,
			struct setting *setting,
			void (*fn)(struct trial *t, struct setting *setting))
{
	const struct andiron_option *o;
	size_t at = setting->n;

	for (uint32_t i = 0; at < OPTION_DEPTH && (o = option_at(options, i)); i++) {
		if (trial_is_over(t))
			return;
		setting->path[at] = o;
		setting->n = at + 1;
		if (o->type == ANDIRON_TYPE_BLOCK)
			each_option(t, o->block, setting, fn);
		else
			fn(t, setting);
	}
	setting->n = at;
}

static void run_each(struct trial *t, void (*fn)(struct trial *t, struct setting *setting))
{
	struct setting setting = {.n = 0};

	each_option(t, t->component->options, &setting, fn);
}

/* The component without the option must be possible, else nothing is learned. */
static bool has_arguments(struct trial *t)
{
	struct part_arguments a;
	int r;

	trial_doing(t, "make arguments (validate)");
	r = part_arguments_make(t, NULL, &a);
	if (r == 0 && !a.values)
		trial_skip(t, "arguments, by --with (%s)", a.refusal);
	part_arguments_fini(&a);
	return r == 0 && !trial_is_over(t);
}

static const struct andiron_option *option_of(const struct setting *s)
{
	return s->path[s->n - 1];
}

/* What was made of it cannot be another's: *ret_self is a pointer of the component's own. */
static void make_instance(struct trial *t, const struct setting *s, const struct part_arguments *a)
{
	static struct part p;
	int32_t r;

	p = (struct part){.t = t, .host = andiron_min_host()};
	if (andiron_min_open(&p.loop) < 0)
		return;
	part_renew(&p);
	trial_doing(t, "create with %s = %.60s", option_of(s)->name, s->value);
	r = t->component->create(p.min->host, (uint64_t)(uintptr_t)p.min, a->values, &p.min->self,
				 &p.min->error);
	if (r >= 0) {
		part_stop(&p);
		part_destroy(&p);
	} else if (!*p.min->error.text && r != -ENOMEM && r != -ENOENT) {
		trial_fail(t, "%s = %.100s was valid, and `create` fails (%s) without a reason",
			   option_of(s)->name, s->value, strerror(-r));
	}
	andiron_min_close(&p.loop);
}

/* `must_hold`: it is no good to refuse it. */
static void expect_taken(struct trial *t, const struct setting *s, const char *what, bool must_hold)
{
	struct part_arguments a;
	int r;

	trial_doing(t, "validate with %s = %.60s", option_of(s)->name, s->value);
	r = part_arguments_make(t, s, &a);
	if (r == 0 && !a.values && must_hold)
		trial_fail(t, "%s of %s, %.100s, is refused: %.300s", what, option_of(s)->name,
			   s->value, a.refusal);
	if (r == 0 && a.values)
		make_instance(t, s, &a);
	part_arguments_fini(&a);
}

static void expect_refused(struct trial *t, const struct setting *s, const char *what)
{
	struct part_arguments a;
	int r;

	trial_doing(t, "validate with %s = %.60s", option_of(s)->name, s->value);
	r = part_arguments_make(t, s, &a);
	if (r == 0 && a.values)
		trial_fail(t, "%s = %.100s is taken, and %s", option_of(s)->name, s->value, what);
	else if (r == 0 && !*a.refusal)
		trial_fail(t, "%s = %.100s is refused without a word", option_of(s)->name,
			   s->value);
	part_arguments_fini(&a);
}

/* Whether the blocks around an option may stand there without it. */
static bool is_block_taken(struct trial *t, struct setting without)
{
	struct part_arguments a;
	bool taken;

	without.n--;
	if (without.n == 0)
		return true;
	trial_doing(t, "validate with the block %s", option_of(&without)->name);
	taken = part_arguments_make(t, &without, &a) == 0 && a.values;
	part_arguments_fini(&a);
	return taken;
}

static void try_default(struct trial *t, struct setting *s)
{
	s->value = option_of(s)->default_text;
	if (s->value && is_block_taken(t, *s))
		expect_taken(t, s, "the default", true);
}

/* Where nothing is given the host fills defaults in; `value` is what was said of that. */
static void blame_default(struct trial *t, struct setting *s)
{
	const struct andiron_option *o = option_of(s);

	if (o->default_text && s->n == 1 && str_starts(str_of(s->value), str_of(o->name)))
		trial_fail(t, "the default of %s, %.100s, is refused: %.300s", o->name,
			   o->default_text, s->value);
}

static void check_defaults(struct trial *t)
{
	struct part_arguments a;
	struct setting s = {.n = 0};
	bool is_refused;
	int r;

	trial_doing(t, "make arguments (validate)");
	r = part_arguments_make(t, NULL, &a);
	is_refused = r == 0 && !a.values;
	s.value = a.refusal;
	if (is_refused)
		each_option(t, t->component->options, &s, blame_default);
	part_arguments_fini(&a);
	if (!trial_is_over(t) && has_arguments(t))
		run_each(t, try_default);
}

static void put_bound(const struct andiron_option *o, int64_t value, char text[VALUE_BYTES])
{
	snprintf(text, VALUE_BYTES, o->type == ANDIRON_TYPE_DURATION ? "\"%lldns\"" : "%lld",
		 (long long)value);
}

static bool is_bounded(const struct andiron_option *o)
{
	return o->min != o->max &&
	       (o->type == ANDIRON_TYPE_INT || o->type == ANDIRON_TYPE_DURATION);
}

static void try_within(struct trial *t, struct setting *s)
{
	const struct andiron_option *o = option_of(s);
	char text[VALUE_BYTES];
	struct setting with = *s;

	with.value = text;
	for (const char *const *c = o->choices; c && *c; c++) {
		snprintf(text, sizeof(text), "\"%s\"", *c);
		expect_taken(t, &with, "the choice", false);
	}
	if (is_bounded(o) && o->min != INT64_MIN) {
		put_bound(o, o->min, text);
		expect_taken(t, &with, "the least value", false);
	}
	if (is_bounded(o) && o->max != INT64_MAX) {
		put_bound(o, o->max, text);
		expect_taken(t, &with, "the greatest value", false);
	}
}

static void check_within(struct trial *t)
{
	if (has_arguments(t))
		run_each(t, try_within);
}

static void try_beyond(struct trial *t, struct setting *s)
{
	const struct andiron_option *o = option_of(s);
	char text[VALUE_BYTES];
	struct setting with = *s;

	with.value = text;
	if (o->choices) {
		snprintf(text, sizeof(text), "\"no such choice\"");
		expect_refused(t, &with, "is none of its choices");
	}
	if (is_bounded(o) && o->min != INT64_MIN) {
		put_bound(o, o->min - 1, text);
		expect_refused(t, &with, "lies below its least value");
	}
	if (is_bounded(o) && o->max != INT64_MAX) {
		put_bound(o, o->max + 1, text);
		expect_refused(t, &with, "lies above its greatest value");
	}
}

static void check_beyond(struct trial *t)
{
	if (has_arguments(t))
		run_each(t, try_beyond);
}

const struct check option_checks[] = {
	{"option-defaults", "each default is a value that the component takes",
	 "help and manual promise it, and a host may fill it in",
	 "correct default_text (\"15s\" needs its quotes inside), or `validate`", SUBJECT_COMPONENT,
	 check_defaults},
	{"option-range",
	 "bounds and choices are taken by `validate` and `create`, or refused with a "
	 "reason",
	 "help and manual promise them", "correct min, max or choices, or say why by error_add",
	 SUBJECT_COMPONENT, check_within},
	{"option-beyond", "what lies beyond bounds and choices is refused with a message",
	 "a mistake in a file is found when it is read, not in the night",
	 "do not make such an option LENIENT, or refuse it in `validate`", SUBJECT_COMPONENT,
	 check_beyond},
	{0},
};
