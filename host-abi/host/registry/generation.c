/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in generation.h. */
#include "host/registry/generation.h"

#include "base/check.h"
#include "base/str.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct plugin_generation *newest;

bool generation_is_file(const struct plugin_generation *g, const struct stat *st)
{
	return g->st.st_dev == st->st_dev && g->st.st_ino == st->st_ino;
}

static bool is_unchanged(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static bool is_build(const struct plugin_generation *g, const struct stat *st, const char *build_id)
{
	return *build_id && g->st.st_size == st->st_size && strcmp(g->build_id, build_id) == 0;
}

/* The lock is held. */
static const struct plugin_generation *of_file(const struct stat *st)
{
	for (const struct plugin_generation *g = newest; g; g = g->next)
		if (generation_is_file(g, st))
			return g;
	return NULL;
}

/* The lock is held. */
static const struct plugin_generation *of_build(const char *path, const struct stat *st,
						const char *build_id)
{
	for (const struct plugin_generation *g = newest; g; g = g->next)
		if (g->plugin && strcmp(g->path, path) == 0 && is_build(g, st, build_id))
			return g;
	return NULL;
}

int generation_find(const char *path, const struct stat *st, const char *build_id,
		    const struct plugin_generation **ret, struct error *err)
{
	const struct plugin_generation *g;

	pthread_mutex_lock(&lock);
	g = of_file(st);
	if (!g)
		g = of_build(path, st, build_id);
	pthread_mutex_unlock(&lock);
	if (g && !is_build(g, st, build_id) && !is_unchanged(&g->st, st))
		return error_set(err, -ENOEXEC,
				 "it was written over while this process runs it, so what runs may "
				 "be damaged: restart the process, and put a new file in place by "
				 "renaming it, as `install` and packages do");
	*ret = g && g->plugin ? g : NULL;
	return 0;
}

struct plugin_generation *generation_of_library(const void *library)
{
	struct plugin_generation *g;

	pthread_mutex_lock(&lock);
	for (g = newest; g && g->library != library;)
		g = g->next;
	pthread_mutex_unlock(&lock);
	return g;
}

const struct plugin_generation *generation_of(const struct andiron_plugin *plugin)
{
	const struct plugin_generation *g;

	pthread_mutex_lock(&lock);
	for (g = newest; g && (!plugin || g->plugin != plugin);)
		g = g->next;
	pthread_mutex_unlock(&lock);
	return g;
}

struct plugin_generation *generation_add(void *library, const char *path, const struct stat *st,
					 const char *build_id)
{
	struct plugin_generation *g = malloc(sizeof(*g));
	char *copy = str_dup(str_of(path));

	if (!g || !copy) {
		free(g);
		free(copy);
		return NULL;
	}
	*g = (struct plugin_generation){.library = library, .path = copy, .st = *st};
	check(strlen(build_id) < sizeof(g->build_id));
	memcpy(g->build_id, build_id, strlen(build_id));
	pthread_mutex_lock(&lock);
	g->next = newest;
	newest = g;
	pthread_mutex_unlock(&lock);
	return g;
}

void generation_accept(struct plugin_generation *g, const struct andiron_plugin *plugin)
{
	unsigned int number = 1;

	pthread_mutex_lock(&lock);
	check(!g->plugin);
	for (const struct plugin_generation *at = newest; at; at = at->next)
		number += at->plugin && strcmp(at->path, g->path) == 0;
	g->number = number;
	g->plugin = plugin;
	pthread_mutex_unlock(&lock);
}
