/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a plugin, and its tables as they stand. The first check is whether it loads at all: the
 * loader of andiron has refused it by then, with its reason. */
#include "cli/conformance/check.h"

#include "base/clock.h"
#include "host/registry.h"
#include "host/registry/describe-check.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define LOAD_NS   (10 * NS_PER_MSEC)
#define MAX_DEPTH 8

static void check_nothing(struct trial *t)
{
	if (t->plugin->n_components == 0)
		trial_fail(t, "it has no component");
}

/* CPU time, since what a disk takes is not the plugin's. Its libraries count. */
static void check_time(struct trial *t)
{
	int64_t before = clock_ns(CLOCK_PROCESS_CPUTIME_ID), took;
	struct error err = ERROR_NULL;
	void *library = dlopen(t->file, RTLD_NOW | RTLD_LOCAL);
	const struct andiron_plugin *plugin =
		library ? (const struct andiron_plugin *)dlsym(library, ANDIRON_PLUGIN_SYMBOL)
			: NULL;

	if (!plugin || registry_check(plugin, &err) < 0) {
		trial_skip(t, "a plugin that can be loaded");
		return;
	}
	took = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before;
	trial_figure(t, "%.1f ms of CPU time, 10 are meant", (double)took / (double)NS_PER_MSEC);
	if (took > 10 * LOAD_NS)
		trial_fail(
			t,
			"loading it and reading its tables takes %lld ms of CPU time, 10 are meant",
			(long long)(took / NS_PER_MSEC));
}

static void check_name(struct trial *t)
{
	const char *base = strrchr(t->file, '/');
	char expected[128];

	snprintf(expected, sizeof(expected), "/andiron-%s.so", t->plugin->name);
	if (!base || strcmp(base, expected) != 0)
		trial_fail(t, "its entry's name is \"%s\", so its file is to be %s",
			   t->plugin->name, expected + 1);
}

/* --- Options --- */

/* Text that a reader has to be told, since he cannot see it in the table's form. */
static void check_terms(struct trial *t, const struct andiron_option *o)
{
	bool has_bounds = o->type == ANDIRON_TYPE_INT || o->type == ANDIRON_TYPE_DURATION ||
			  o->type == ANDIRON_TYPE_UINT;

	if (o->min > o->max && o->type != ANDIRON_TYPE_UINT)
		trial_fail(t, "option %s has a least value above its greatest", o->name);
	if (o->min != o->max && !has_bounds)
		trial_fail(t, "option %s has bounds, and its type has none", o->name);
	if (o->choices && o->type != ANDIRON_TYPE_STRING)
		trial_fail(t, "option %s has choices, and is no string", o->name);
	if (o->type == ANDIRON_TYPE_BLOCK ? !o->block && !(o->flags & ANDIRON_OPTION_IGNORED)
					  : o->block != NULL)
		trial_fail(t, "option %s: a block has a table of options, and nothing else has",
			   o->name);
	if (o->flags & ANDIRON_OPTION_REQUIRED && o->default_text)
		trial_fail(t, "option %s is required and has a default", o->name);
}

static bool has_before(const struct andiron_options *options, uint32_t n, const char *name)
{
	const struct andiron_option *o;

	for (uint32_t i = 0; i < n && (o = option_at(options, i)); i++)
		if (strcmp(o->name, name) == 0)
			return true;
	return false;
}

static void check_options(struct trial *t, const struct andiron_options *options, int depth)
{
	const struct andiron_option *o;

	for (uint32_t i = 0; depth < MAX_DEPTH && (o = option_at(options, i)); i++) {
		check_terms(t, o);
		if (has_before(options, i, o->name))
			trial_fail(t, "it has two options named %s", o->name);
		if (o->type == ANDIRON_TYPE_BLOCK)
			check_options(t, o->block, depth + 1);
	}
}

static bool exports(const struct andiron_component *c, uint32_t type)
{
	for (uint64_t i = 0; i < c->n_exports; i++)
		if (c->exports[i].type == type)
			return true;
	return false;
}

static void check_tables(struct trial *t)
{
	const struct andiron_component *c = t->component;
	const struct andiron_option *o;

	check_options(t, c->options, 0);
	for (uint32_t i = 0; (o = option_at(c->options, i)); i++)
		if (o->type == ANDIRON_TYPE_TARGETS && !c->targets)
			trial_fail(t, "its option %s takes targets, and it has no `targets`",
				   o->name);
	if (c->batch && !exports(c, ANDIRON_EXPORT_RECEIVER))
		trial_fail(t, "it has `batch`, and exports no receiver");
	if (c->flags & ANDIRON_COMPONENT_WRITER && !c->batch)
		trial_fail(t, "it says that it is a writer, and has no `batch`");
	if (ANDIRON_HAS(c, andiron_component, resend) && !exports(c, ANDIRON_EXPORT_TARGETS))
		trial_fail(t, "it has `resend`, and exports no targets");
}

const struct check table_checks[] = {
	{"loads", "a host can load it, and its tables have the ABI's form", "no host would take it",
	 "correct what is said, and build it again", SUBJECT_PLUGIN, check_nothing},
	{"load-time",
	 "loading it and reading its tables takes at most 10 ms of CPU time, in no case "
	 "ten times that",
	 "a host loads all plugins to list them, and at every start",
	 "need fewer libraries, and have smaller tables with fewer relocations", SUBJECT_LOADING,
	 check_time},
	{"file-name", "its file is andiron-NAME.so",
	 "hosts look for files of this name, and of two plugins with one name take the first",
	 "give the file the name that ANDIRON_PLUGIN() has", SUBJECT_PLUGIN, check_name},
	{"tables", "its tables agree with themselves",
	 "help, manual and validation are made of them", "correct the table", SUBJECT_COMPONENT,
	 check_tables},
	{0},
};
