/* SPDX-License-Identifier: Apache-2.0 */
/* See plugin-path.h. A directory named on the command line may be relative, since whoever types it
 * means it; one in the environment may not (the registry ignores it and says so), since the current
 * directory may be anybody's. */
#include "cli/plugin-path.h"

#include "base/check.h"
#include "base/arena.h"
#include "base/str.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_DIRS 64

struct list {
	struct arena arena;
	const char *dirs[MAX_DIRS + 1];
	size_t n;
	bool failed;
};

static void add(struct list *list, const char *dir)
{
	check(list->n <= MAX_DIRS);
	list->failed |= !dir;
	if (dir && list->n < MAX_DIRS)
		list->dirs[list->n++] = dir;
}

static void add_flag(struct list *list, const char *dir)
{
	char here[PATH_MAX];

	if (*dir == '/' || !getcwd(here, sizeof(here)))
		add(list, dir);
	else
		add(list, arena_printf(&list->arena, "%s/%s", here, dir));
}

static void add_environment(struct list *list)
{
	struct str rest = str_of(secure_getenv("ANDIRON_PLUGIN_PATH"));

	if (getenv("ANDIRON_PLUGIN_PATH") && !rest.p)
		fputs("andiron: ANDIRON_PLUGIN_PATH is ignored, since this process may do more "
		      "than who started it\n",
		      stderr);
	while (rest.n > 0)
		add(list, arena_str(&list->arena, str_cut(&rest, ':')).p);
}

static struct registry *open_registry(const struct texts *dirs,
				      const struct andiron_plugin *const *given, bool probe)
{
	struct registry *registry = NULL;
	struct list list = {.arena = ARENA_NULL};

	for (size_t i = 0; i < dirs->n; i++)
		add_flag(&list, dirs->p[i]);
	add_environment(&list);
	add(&list, ANDIRON_PLUGIN_DIR);
	if (list.failed || registry_new(list.dirs, given, probe, &registry) < 0)
		fprintf(stderr, "andiron: out of memory\n");
	arena_free(&list.arena);
	return registry;
}

struct registry *plugin_path_open(const struct texts *dirs, bool probe)
{
	return open_registry(dirs, NULL, probe);
}

struct registry *plugin_path_open_with(const struct texts *dirs,
				       const struct andiron_plugin *const *given)
{
	return open_registry(dirs, given, false);
}
