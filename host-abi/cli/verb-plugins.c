/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron plugins`: what is installed, what was refused and why. */
#include "cli/cli.h"
#include "cli/describe.h"
#include "cli/plugin-path.h"
#include "host/lang/isolation.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

struct plugins {
	struct texts plugin_dirs;
	bool json;
};

static void print_table(struct registry *registry)
{
	const struct registered_component *components;
	const struct registered_plugin *plugins;
	size_t n_components = registry_components(registry, &components);
	size_t n = registry_plugins(registry, &plugins);

	for (size_t i = 0; i < n_components; i++)
		printf("%-22s %-11s %s\n%-22s %-11s %s\n", components[i].component->name,
		       components[i].plugin->plugin->version, components[i].component->summary, "",
		       "", components[i].plugin->path);
	for (size_t i = 0; i < n; i++)
		if (plugins[i].refused)
			printf("refused: %s\n  %s\n", plugins[i].path, plugins[i].refused);
	if (n == 0)
		printf("no plugins in\n%s", registry_searched(registry));
}

static json_t *plugin_json(const struct registered_plugin *p)
{
	json_t *components = json_array();

	for (uint64_t i = 0; p->plugin && i < p->plugin->n_components; i++)
		json_array_append_new(components,
				      json_pack("{s:s, s:s}", "name",
						p->plugin->components[i]->name, "summary",
						p->plugin->components[i]->summary));
	return json_pack("{s:s, s:s?, s:s?, s:s?, s:o}", "path", p->path, "name",
			 p->plugin ? p->plugin->name : NULL, "version",
			 p->plugin ? p->plugin->version : NULL, "refused", p->refused, "components",
			 components);
}

static int print_json(struct registry *registry)
{
	const struct registered_plugin *plugins;
	size_t n = registry_plugins(registry, &plugins);
	json_t *all = json_array();
	int r;

	for (size_t i = 0; i < n; i++)
		json_array_append_new(all, plugin_json(&plugins[i]));
	r = json_array_size(all) == n ? json_dumpf(all, stdout, JSON_INDENT(2)) : -1;
	json_decref(all);
	putchar('\n');
	return r < 0 ? EXIT_FAILED : EXIT_OK;
}

/* A plugin or one of its components, by name. */
static int print_one(struct registry *registry, const char *name)
{
	const struct registered_component *c = registry_find(registry, str_of(name));
	const struct registered_plugin *plugins;
	size_t n = registry_plugins(registry, &plugins);

	if (c) {
		printf("%s", c->plugin->path);
		describe_component(c->component, stdout);
		if (!isolation_refusal(c)) /* the host's option, and in no component's table */
			puts("    isolate  bool, default false\n"
			     "        Whether it runs in a process of its own: a crash costs one "
			     "batch at most.");
		return EXIT_OK;
	}
	for (size_t i = 0; i < n; i++)
		if (plugins[i].plugin && strcmp(plugins[i].plugin->name, name) == 0) {
			describe_plugin(plugins[i].plugin, plugins[i].path, stdout);
			return EXIT_OK;
		}
	fprintf(stderr, "andiron plugins: there is no plugin or component \"%s\" in\n%s", name,
		registry_searched(registry));
	return EXIT_FAILED;
}

static int run(int argc, char **argv)
{
	struct plugins p = {0};
	struct registry *registry = NULL;
	int first, code = options_parse(&verb_plugins, &p, argc, argv, &first);

	if (code == OPTIONS_DONE && argc - first > 1)
		code = options_wrong(&verb_plugins, "one name at a time");
	if (code == OPTIONS_DONE && !(registry = plugin_path_open(&p.plugin_dirs, true)))
		code = EXIT_FAILED;
	if (code == OPTIONS_DONE && first < argc)
		code = print_one(registry, argv[first]);
	else if (code == OPTIONS_DONE && p.json)
		code = print_json(registry);
	else if (code == OPTIONS_DONE) {
		print_table(registry);
		code = EXIT_OK;
	}
	registry_free(registry);
	vec_free(&p.plugin_dirs);
	return code;
}

static const struct flag flags[] = {
	{"json", 0, FLAG_INTO(struct plugins, json), NULL, "print JSON"},
	PLUGIN_DIR_FLAG(struct plugins, plugin_dirs),
	{0},
};

const struct command verb_plugins = {
	.verb = "plugins",
	.run = run,
	.usage = "[OPTIONS] [NAME]",
	.brief = "list the plugins and components that are installed",
	.summary =
		"Lists all components with their plugins, and the plugins that were refused with "
		"the reason. With the name of a plugin or component: its options.",
	.examples = "andiron plugins pyroscope.write\n",
	.flags = flags,
	.mixed = true,
};
